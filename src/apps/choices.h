// Checks for options that take one of a few words; their errors say which these are.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

namespace berth::apps {

// What is wrong with the value; empty when nothing is.
inline std::string wrong_choice(const std::string& value, const std::vector<std::string>& words) {
  if (std::find(words.begin(), words.end(), value) != words.end()) return "";
  return fmt::format("'{}' is none of: {}", value, fmt::join(words, ", "));
}

inline CLI::Validator one_of(std::vector<std::string> words) {
  const auto check = [words = std::move(words)](const std::string& value) { return wrong_choice(value, words); };
  return CLI::Validator(check, "");
}

}  // namespace berth::apps
