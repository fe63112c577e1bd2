#include "api/watch.h"

#include <fmt/format.h>

#include "api/decoders.h"
#include "base/printable.h"

namespace berth::api {
namespace {

constexpr Field<ObjectMeta> kAnyObject[] = {
    {"metadata", [](const Reader& r, ObjectMeta& m) { read_object_meta(r, m); }},
};

// Reads one object of a list or event; its problems are taken out of the sink and belong to it alone.
template <typename T>
std::optional<Malformed> read_item(const Reader& reader, ProblemSink& sink, T& out) {
  read_value(reader, out);
  if (sink.problems.empty()) return std::nullopt;
  Malformed malformed{{}, Error{ErrorCode::kInvalidInput, to_string(sink.problems.front()), 0, 0}};
  read_object(reader, kAnyObject, malformed.metadata);
  sink.problems.clear();
  return malformed;
}

template <typename T>
struct ListTarget {
  List<T> list;
  ProblemSink* sink;
};

template <typename T>
void read_items(const Reader& reader, ListTarget<T>& target) {
  if (!reader.expect(JsonType::kArray)) return;
  target.list.items.reserve(reader.size());
  for (Items items(reader); items.next();) {
    auto malformed = read_item(items.value(), *target.sink, target.list.items.emplace_back());
    if (!malformed) continue;
    target.list.items.pop_back();
    target.list.malformed.push_back(std::move(*malformed));
  }
}

template <typename T>
constexpr Field<ListTarget<T>> kListMeta[] = {
    {"resourceVersion", [](const Reader& r, ListTarget<T>& t) { r.read(t.list.resource_version); }},
    {"continue", [](const Reader& r, ListTarget<T>& t) { r.read(t.list.continue_token); }},
};
template <typename T>
constexpr Field<ListTarget<T>> kList[] = {
    {"kind"},
    {"apiVersion"},
    {"metadata", [](const Reader& r, ListTarget<T>& t) { read_object(r, kListMeta<T>, t); }},
    {"items", &read_items<T>},
};

struct ApiStatus {
  int32_t code = 0;
  std::string reason;
  std::string message;
  int32_t retry_after_s = 0;
};

constexpr Field<ApiStatus> kStatusDetails[] = {
    {"retryAfterSeconds", [](const Reader& r, ApiStatus& s) { r.read(s.retry_after_s); }},
};
constexpr Field<ApiStatus> kStatus[] = {
    {"message", [](const Reader& r, ApiStatus& s) { r.read(s.message); }},
    {"reason", [](const Reader& r, ApiStatus& s) { r.read(s.reason); }},
    {"details", [](const Reader& r, ApiStatus& s) { read_object(r, kStatusDetails, s); }},
    {"code", [](const Reader& r, ApiStatus& s) { r.read(s.code); }},
};

ErrorCode code_of(int http_status) {
  switch (http_status) {
    case 401:
    case 403: return ErrorCode::kUnauthorized;
    case 404: return ErrorCode::kNotFound;
    case 408:
    case 504: return ErrorCode::kTimeout;
    case 409: return ErrorCode::kConflict;
    case 410: return ErrorCode::kGone;
    case 429: return ErrorCode::kThrottled;
    default: return http_status >= 500 ? ErrorCode::kUnavailable : ErrorCode::kInvalidInput;
  }
}

Error to_error(const ApiStatus& status, int http_status) {
  const int code = http_status != 0 ? http_status : status.code;
  std::string message = printable(status.message, 1000);
  if (message.empty()) message = fmt::format("the API server answered {} {}", code, printable(status.reason));
  return Error{code_of(code), std::move(message), code, status.retry_after_s};
}

WatchType type_of(std::string_view text) {
  if (text == "ADDED") return WatchType::kAdded;
  if (text == "MODIFIED") return WatchType::kModified;
  if (text == "DELETED") return WatchType::kDeleted;
  return text == "BOOKMARK" ? WatchType::kBookmark : WatchType::kError;
}

template <typename T>
void read_event_object(const Reader& reader, ProblemSink& sink, WatchEvent<T>& out) {
  if (out.type == WatchType::kError) {
    ApiStatus status;
    read_object(reader, kStatus, status);
    out.error = to_error(status, 0);
    return;
  }
  if (out.type == WatchType::kBookmark) {
    ObjectMeta metadata;
    read_object(reader, kAnyObject, metadata);
    out.resource_version = std::move(metadata.resource_version);
    return;
  }
  out.malformed = read_item(reader, sink, out.object.emplace());
  if (out.malformed) out.object.reset();
  out.resource_version = out.object ? out.object->metadata.resource_version : out.malformed->metadata.resource_version;
}

Error first_problem(const ProblemSink& sink) {
  return Error{ErrorCode::kInvalidInput, to_string(sink.problems.front()), 0, 0};
}

}  // namespace

template <typename T>
Result<List<T>> decode_list(std::string_view json) {
  ProblemSink sink;
  ListTarget<T> target{{}, &sink};
  BERTH_TRY_VOID(read_json(json, sink, [&](const Reader& reader) { read_object(reader, kList<T>, target); }));
  if (!sink.problems.empty()) return fail(first_problem(sink));
  return std::move(target.list);
}

template <typename T>
Result<WatchEvent<T>> decode_watch_event(std::string_view json) {
  ProblemSink sink;
  WatchEvent<T> event;
  BERTH_TRY_VOID(read_json(json, sink, [&](const Reader& reader) {
    std::string_view type;
    for (Members members(reader); members.next();)
      if (members.key() == "type") members.value().read(type);
    if (type.empty()) return reader.problem_at("type", "a watch event needs a type");
    event.type = type_of(type);
    bool found = false;
    for (Members members(reader); members.next();) {
      if (members.key() != "object") continue;
      found = true;
      read_event_object(members.value(), sink, event);
    }
    if (!found) reader.problem_at("object", "a watch event needs an object");
  }));
  if (!sink.problems.empty()) return fail(first_problem(sink));
  return event;
}

Error decode_status(std::string_view json, int http_status) {
  ProblemSink sink;
  ApiStatus status;
  const Status parsed = read_json(json, sink, [&](const Reader& reader) { read_object(reader, kStatus, status); });
  if (parsed && sink.problems.empty() && (!status.message.empty() || !status.reason.empty()))
    return to_error(status, http_status);
  constexpr size_t kQuotedBytesMax = 200;
  return Error{code_of(http_status), fmt::format("HTTP status {}: {}", http_status, printable(json, kQuotedBytesMax)),
               http_status, 0};
}

Result<ObjectMeta> decode_metadata(std::string_view json) {
  ProblemSink sink;
  ObjectMeta metadata;
  BERTH_TRY_VOID(read_json(json, sink, [&](const Reader& reader) { read_object(reader, kAnyObject, metadata); }));
  if (!sink.problems.empty()) return fail(first_problem(sink));
  return metadata;
}

template Result<List<Pod>> decode_list<Pod>(std::string_view);
template Result<List<Node>> decode_list<Node>(std::string_view);
template Result<List<Namespace>> decode_list<Namespace>(std::string_view);
template Result<List<PriorityClass>> decode_list<PriorityClass>(std::string_view);
template Result<WatchEvent<Pod>> decode_watch_event<Pod>(std::string_view);
template Result<WatchEvent<Node>> decode_watch_event<Node>(std::string_view);
template Result<WatchEvent<Namespace>> decode_watch_event<Namespace>(std::string_view);
template Result<WatchEvent<PriorityClass>> decode_watch_event<PriorityClass>(std::string_view);

}  // namespace berth::api
