// Bytes: protobuf written by hand, for tests and benches.
//
//   Bytes().text(1, "name").message(8, Bytes().number(2, 5)).done()
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace berth::api {

class Bytes {
 public:
  Bytes& text(uint32_t field, std::string_view value) {
    varint(uint64_t{field} << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Bytes& message(uint32_t field, const Bytes& value) { return text(field, value.bytes_); }
  Bytes& number(uint32_t field, uint64_t value) {
    varint(uint64_t{field} << 3);
    varint(value);
    return *this;
  }
  // One entry of a map, to a string or to a Quantity.
  Bytes& pair(uint32_t field, std::string_view key, std::string_view value) {
    return message(field, Bytes().text(1, key).text(2, value));
  }
  Bytes& quantity(uint32_t field, std::string_view key, std::string_view amount) {
    return pair(field, key, Bytes().text(1, amount).done());
  }
  Bytes& raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  const std::string& done() const { return bytes_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace berth::api
