// load_configuration(): berth.yaml from disk, for every verb that takes --config.
#pragma once

#include <optional>
#include <string>

#include "apps/configuration.h"

namespace berth::apps {

// The configuration in `file`, that of all defaults where it is empty, or nothing after writing to standard error what
// is wrong with it.
std::optional<Configuration> load_configuration(const std::string& file);

}  // namespace berth::apps
