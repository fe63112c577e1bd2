// The version of this build, as `berth version`, logs and the User-Agent say it. CMakeLists.txt sets it.
#pragma once

#include <string_view>

namespace berth {

std::string_view version();

}  // namespace berth
