// What the files of Reader share of simdjson, so that reader.h need not include it.
#pragma once

#include <fmt/format.h>
#include <simdjson.h>

#include <bit>
#include <string>
#include <type_traits>

namespace berth::api {

// A Reader::Raw as the simdjson value that it holds.
template <typename T, typename Raw>
T thaw(const Raw& raw) {
  static_assert(sizeof(T) == sizeof(Raw) && std::is_trivially_copyable_v<T>);
  return std::bit_cast<T>(raw);
}

// Shortest text that reads back as the same number, for messages and quantities.
inline std::string number_text(const simdjson::dom::element& element) {
  if (element.is_int64()) return fmt::format("{}", int64_t(element));
  if (element.is_uint64()) return fmt::format("{}", uint64_t(element));
  return fmt::format("{}", double(element));
}

}  // namespace berth::api
