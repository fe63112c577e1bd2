#include "api/told_places.h"

#include <algorithm>

#include "api/names.h"

namespace berth::api {

bool ToldPlaces::within(const std::string& path) const {
  if (at(path)) return true;
  if (path.empty()) return !places_.empty();
  for (const char step : {'.', '['}) {
    const std::string below = path + step;
    const auto next = places_.lower_bound(below);
    if (next != places_.end() && next->starts_with(below)) return true;
  }
  return false;
}

bool ToldPlaces::misspelt(const std::string& object, std::string_view key) const {
  const auto found = unknown_.find(object);
  return found != unknown_.end() && std::any_of(found->second.begin(), found->second.end(),
                                                [&](const std::string& name) { return !closest(name, {key}).empty(); });
}

}  // namespace berth::api
