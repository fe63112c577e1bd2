// What of a ResourceQuota or LimitRange does something else than whoever wrote it is likely to mean. Kubernetes stores
// these without a word. Each remark is a sentence about the object, without its name. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "api/limits.h"

namespace berth::limits {

std::vector<std::string> remarks(const api::ResourceQuota& quota);
std::vector<std::string> remarks(const api::LimitRange& range);

}  // namespace berth::limits
