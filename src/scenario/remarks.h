// What of a manifest has no effect on a simulation, or is not taken as it stands, beside its annotations.
#pragma once

#include <string>
#include <vector>

#include "api/decode.h"

namespace berth::scenario {

// Parts of sentences, each to stand behind the object's name and a colon. Pure; thread-safe.
std::vector<std::string> remarks(const api::Object& object);

}  // namespace berth::scenario
