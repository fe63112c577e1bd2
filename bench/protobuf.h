// Just enough protobuf for the writes that wire_bench compares: a Binding and an Event as the API server takes them in
// application/vnd.kubernetes.protobuf, that is in a runtime.Unknown behind the magic "k8s\0".
//
// Field numbers are those of generated.proto in k8s.io/api core/v1 and events/v1, and of k8s.io/apimachinery.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace berth::bench {

inline constexpr std::string_view kProtobuf = "application/vnd.kubernetes.protobuf";

class Message {
 public:
  Message& text(int field, std::string_view value) {
    if (value.empty()) return *this;
    varint(static_cast<uint64_t>(field) << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& number(int field, uint64_t value) {
    varint(static_cast<uint64_t>(field) << 3);
    varint(value);
    return *this;
  }
  Message& message(int field, const Message& value) { return text(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

inline Message object_meta(std::string_view name_space, std::string_view name, std::string_view uid) {
  return Message().text(1, name).text(3, name_space).text(5, uid);
}

inline std::string enveloped(std::string_view api_version, std::string_view kind, const Message& object) {
  const Message type = Message().text(1, api_version).text(2, kind);
  return std::string("k8s\0", 4) + Message().message(1, type).message(2, object).bytes();
}

inline std::string binding_protobuf(std::string_view name_space, std::string_view pod, std::string_view uid,
                                    std::string_view node) {
  const Message target = Message().text(1, "Node").text(3, node);
  return enveloped("v1", "Binding", Message().message(1, object_meta(name_space, pod, uid)).message(2, target));
}

// A Scheduled event; `micros` since 1970.
inline std::string event_protobuf(std::string_view pod, std::string_view uid, std::string_view name,
                                  std::string_view note, int64_t micros) {
  const Message at = Message().number(1, micros / 1'000'000).number(2, micros % 1'000'000 * 1000);
  const Message regarding = Message().text(1, "Pod").text(2, "default").text(3, pod).text(4, uid).text(5, "v1");
  return enveloped("events.k8s.io/v1", "Event",
                   Message()
                       .message(1, object_meta("default", name, ""))
                       .message(2, at)
                       .text(4, "bench")
                       .text(5, "bench-1")
                       .text(6, "Binding")
                       .text(7, "Scheduled")
                       .message(8, regarding)
                       .text(10, note)
                       .text(11, "Normal"));
}

// The first value of length-delimited field `field` of a message; empty where there is none.
inline std::string_view field_of(std::string_view message, uint64_t field) {
  const auto varint = [&message] {
    uint64_t value = 0;
    for (int shift = 0; !message.empty() && shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(message.front());
      message.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) break;
    }
    return value;
  };
  while (!message.empty()) {
    const uint64_t key = varint();
    if ((key & 7) == 0) {
      varint();
      continue;
    }
    if ((key & 7) != 2) return {};
    const uint64_t size = varint();
    if (size > message.size()) return {};
    if (key >> 3 == field) return message.substr(0, size);
    message.remove_prefix(size);
  }
  return {};
}

}  // namespace berth::bench
