// Periods of the calendar in UTC. A week begins on Monday.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/time.h"

namespace berth {

enum class Period : uint8_t { kDay, kWeek, kMonth };

// The first moment of the period that holds this one, and of the one after it; by the wall clock.
Time period_begin(Period period, Time wall);
Time period_end(Period period, Time wall);
std::string_view to_string(Period period);  // "day", "week", "month"

}  // namespace berth
