// trace_svg(): the curves of a run, as a picture that reads well in light and dark.
#pragma once

#include <string>

#include "scenario/trace_run.h"

namespace berth::scenario {

// Allocation and fragmentation against what has arrived, in percent, as one SVG document. A pure function.
std::string trace_svg(const TraceResult& result);

}  // namespace berth::scenario
