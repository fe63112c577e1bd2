#include "kube/watch_frames.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <cstring>

#include "api/protobuf.h"
#include "kube/reflector.h"

namespace berth::kube {
namespace {

namespace ondemand = simdjson::ondemand;
static_assert(kDecodePadding >= simdjson::SIMDJSON_PADDING);

// One parser for each thread, since its buffers are worth keeping.
ondemand::parser& parser() {
  static thread_local ondemand::parser instance;
  return instance;
}

std::string string_at(simdjson::simdjson_result<ondemand::value> value) {
  std::string_view text;
  return value.get_string().get(text) == simdjson::SUCCESS ? std::string(text) : std::string{};
}

Error not_json(std::string_view what, simdjson::error_code error) {
  return not_kubernetes(what, simdjson::error_message(error));
}

std::optional<WatchFrame::Kind> kind_of(std::string_view type) {
  if (type == "ADDED") return WatchFrame::Kind::kAdded;
  if (type == "MODIFIED") return WatchFrame::Kind::kModified;
  if (type == "DELETED") return WatchFrame::Kind::kDeleted;
  if (type == "BOOKMARK") return WatchFrame::Kind::kBookmark;
  if (type == "ERROR") return WatchFrame::Kind::kError;
  return std::nullopt;
}

simdjson::error_code read_list_metadata(simdjson::simdjson_result<ondemand::value> value, ListPage& page) {
  ondemand::object metadata;
  if (const auto error = value.get_object().get(metadata)) return error;
  for (auto entry : metadata) {
    std::string_view key;
    if (const auto error = entry.unescaped_key().get(key)) return error;
    if (key == "resourceVersion") page.resource_version = string_at(entry.value());
    if (key == "continue") page.continue_token = string_at(entry.value());
  }
  return simdjson::SUCCESS;
}

simdjson::error_code read_items(simdjson::simdjson_result<ondemand::value> value,
                                const std::function<void(std::string_view json)>& item) {
  ondemand::value items;
  if (const auto error = value.get(items)) return error;
  if (items.is_null()) return simdjson::SUCCESS;  // an empty list of a Go server
  ondemand::array array;
  if (const auto error = items.get_array().get(array)) return error;
  for (auto each : array) {
    ondemand::object object;
    std::string_view text;
    if (const auto error = each.get_object().get(object)) return error;
    if (const auto error = object.raw_json().get(text)) return error;
    item(text);
  }
  return simdjson::SUCCESS;
}

// metav1.ListMeta in protobuf. An Error rather than a part: without its continue token a page would be the last.
Status read_list_metadata(std::string_view message, ListPage& page) {
  constexpr uint32_t kResourceVersion = 2, kContinue = 3;
  api::ProtobufCursor metadata(message);
  while (metadata.next()) {
    if (metadata.number() == kResourceVersion) page.resource_version = metadata.bytes();
    if (metadata.number() == kContinue) page.continue_token = metadata.bytes();
  }
  return metadata.wrong().empty() ? Status{} : fail(not_kubernetes("list", metadata.wrong()));
}

}  // namespace

Error not_kubernetes(std::string_view what, std::string_view why) {
  return Error{
      ErrorCode::kUnavailable,
      fmt::format("the server's {} is not what Kubernetes sends ({}); check what stands between here and the server",
                  what, why),
      0, 0};
}

Result<ListPage> read_list_page(std::string& body, const std::function<void(std::string_view json)>& item) {
  body.reserve(body.size() + kDecodePadding);
  ListPage page;
  ondemand::document document;
  ondemand::object list;
  auto error = parser().iterate(body.data(), body.size(), body.size() + kDecodePadding).get(document);
  if (error == simdjson::SUCCESS) error = document.get_object().get(list);
  if (error != simdjson::SUCCESS) return fail(not_json("list", error));
  for (auto field : list) {
    std::string_view key;
    error = field.unescaped_key().get(key);
    if (error == simdjson::SUCCESS && key == "metadata") error = read_list_metadata(field.value(), page);
    if (error == simdjson::SUCCESS && key == "kind") page.kind = string_at(field.value());
    if (error == simdjson::SUCCESS && key == "items") error = read_items(field.value(), item);
    if (error != simdjson::SUCCESS) return fail(not_json("list", error));
  }
  if (page.resource_version.empty()) return fail(not_json("list", simdjson::NO_SUCH_FIELD));
  return page;
}

// Numbers as in PodList, NodeList and their like.
Result<ListPage> read_protobuf_page(std::string_view body, const api::ProtobufMessage& table,
                                    const ProtobufItem& item) {
  constexpr uint32_t kMetadata = 1, kItems = 2;
  const auto list = api::protobuf_envelope(body);
  if (!list) return fail(not_kubernetes("list", list.error().message));
  ListPage page;
  page.kind = list->kind;
  std::string json;
  api::ProtobufCursor fields(list->object);
  while (fields.next()) {
    if (fields.number() != kMetadata && fields.number() != kItems) continue;
    if (fields.wire_type() != api::WireType::kBytes) return fail(not_kubernetes("list", "a part has another type"));
    if (fields.number() == kMetadata) {
      BERTH_TRY_VOID(read_list_metadata(fields.bytes(), page));
      continue;
    }
    json.clear();
    const Status whole = api::append_protobuf_as_json(fields.bytes(), table, json);
    json.reserve(json.size() + kDecodePadding);
    item(json, whole);
  }
  if (!fields.wrong().empty()) return fail(not_kubernetes("list", fields.wrong()));
  if (page.resource_version.empty()) return fail(not_kubernetes("list", "it has no resourceVersion"));
  return page;
}

Result<WatchFrame> read_watch_frame(std::string_view line) {
  WatchFrame frame;
  ondemand::document document;
  ondemand::object event, object;
  std::string_view type;
  auto error = parser().iterate(line.data(), line.size(), line.size() + kDecodePadding).get(document);
  if (error == simdjson::SUCCESS) error = document.get_object().get(event);
  if (error == simdjson::SUCCESS) error = event["type"].get_string().get(type);
  if (error != simdjson::SUCCESS) return fail(not_json("watch event", error));
  const auto kind = kind_of(type);
  if (!kind) return fail(not_json("watch event", simdjson::INCORRECT_TYPE));
  frame.kind = *kind;
  error = event["object"].get_object().get(object);
  if (error == simdjson::SUCCESS) error = object.raw_json().get(frame.object);
  if (error != simdjson::SUCCESS) return fail(not_json("watch event", error));
  if (frame.kind == WatchFrame::Kind::kError) return frame;
  if (!object.reset().error()) frame.resource_version = string_at(object["metadata"]["resourceVersion"]);
  return frame;
}

Malformed malformed_object(std::string_view json, Error error, bool deleted) {
  Malformed out;
  out.error = std::move(error);
  out.deleted = deleted;
  ondemand::parser own;  // the caller may be within a page of the shared one
  const simdjson::padded_string copy(json);
  ondemand::document document;
  if (own.iterate(copy).get(document) != simdjson::SUCCESS) return out;
  ondemand::object metadata;
  if (document["metadata"].get_object().get(metadata) != simdjson::SUCCESS) return out;
  out.name_space = string_at(metadata["namespace"]);
  out.name = string_at(metadata["name"]);
  out.uid = string_at(metadata["uid"]);
  const auto member_of = [&](const char* part, const char* member) {
    ondemand::object found;
    document.rewind();
    return document[part].get_object().get(found) == simdjson::SUCCESS ? string_at(found[member]) : std::string();
  };
  out.node_name = member_of("spec", "nodeName");
  const std::string phase = member_of("status", "phase");
  out.terminal = phase == "Succeeded" || phase == "Failed";
  return out;
}

void WatchFrames::append(std::string_view chunk) {
  if (begin_ > 0) {
    buffer_.erase(0, begin_);  // what is left is less than a line
    searched_ -= begin_;
    begin_ = 0;
  }
  buffer_.reserve(buffer_.size() + chunk.size() + kDecodePadding);
  buffer_.append(chunk);
}

std::optional<std::string_view> WatchFrames::next() {
  const size_t end = buffer_.find('\n', searched_);
  if (end == std::string::npos) {
    searched_ = buffer_.size();
    return std::nullopt;
  }
  const std::string_view line(buffer_.data() + begin_, end - begin_);
  begin_ = searched_ = end + 1;
  return line;
}

}  // namespace berth::kube
