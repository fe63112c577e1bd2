// JSON text into a Tree, keeping lines, finding duplicate keys and saying where the text is broken.
//
// For files only, where lines matter; JSON from the API server goes straight to simdjson (api/reader.h).
#pragma once

#include <cstdint>
#include <string_view>

#include "api/tree.h"

namespace berth::api {

enum class JsonOutcome { kValue, kEnd, kBroken };

// Reads the next JSON value of `text` from `at` into `builder` and moves `at` and `line` behind it. kEnd when only
// white space was left; kBroken after a problem was reported.
JsonOutcome read_json_text(std::string_view text, size_t& at, uint32_t& line, TreeBuilder& builder);

}  // namespace berth::api
