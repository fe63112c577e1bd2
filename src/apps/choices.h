// one_of(): a check for options that take one of a few words, which says in its error which these are.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

namespace berth::apps {

inline CLI::Validator one_of(std::vector<std::string> words) {
  const auto check = [words = std::move(words)](const std::string& value) {
    if (std::find(words.begin(), words.end(), value) != words.end()) return std::string();
    return fmt::format("'{}' is none of: {}", value, fmt::join(words, ", "));
  };
  return CLI::Validator(check, "");
}

}  // namespace berth::apps
