// The text of lists and watches, taken apart without copying the objects: pages into items, chunks into frames.
//
// Private to the reflector. Every object text handed out is followed by at least kDecodePadding readable bytes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "api/protobuf_json.h"
#include "base/result.h"

namespace berth::kube {

struct ListPage {
  std::string kind{};  // "PodList"
  std::string resource_version{};
  std::string continue_token{};  // empty: this was the last page
};

// Of an answer that some proxy may have made.
Error not_kubernetes(std::string_view what, std::string_view why);

// Calls `item` for each object of a List. `body` gets room for padding behind its end. Errors: not a List.
Result<ListPage> read_list_page(std::string& body, const std::function<void(std::string_view json)>& item);

// The same for a List in protobuf, whose objects become JSON by `table`. `whole`: what of the object could not be read,
// if anything; the JSON then has the rest.
using ProtobufItem = std::function<void(std::string_view json, const Status& whole)>;
Result<ListPage> read_protobuf_page(std::string_view body, const api::ProtobufMessage& table, const ProtobufItem& item);

// One line of a watch, {"type": …, "object": …}; the views point into the line.
struct WatchFrame {
  enum class Kind { kAdded, kModified, kDeleted, kBookmark, kError };
  Kind kind = Kind::kAdded;
  std::string_view object;
  std::string resource_version{};  // of the object; empty for kError
};

// `line` must be followed by kDecodePadding readable bytes. Errors: not a frame.
Result<WatchFrame> read_watch_frame(std::string_view line);

// Cuts a stream of chunks into lines. Each byte is copied once and searched once.
class WatchFrames {
 public:
  static constexpr size_t kMaxLine = 32 << 20;  // etcd holds 1.5 MiB an object by default

  void append(std::string_view chunk);
  // The next whole line, without its end; valid until append().
  std::optional<std::string_view> next();
  bool too_long() const { return buffer_.size() - begin_ > kMaxLine; }

 private:
  std::string buffer_;
  size_t begin_ = 0;     // of the first line not handed out
  size_t searched_ = 0;  // no line end before here
};

}  // namespace berth::kube
