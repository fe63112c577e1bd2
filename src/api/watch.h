// Lists and watch events: what the API server sends to an informer, decoded in one pass.
//
// Items that cannot be understood do not spoil the rest: they come back as Malformed, so that the caller quarantines
// them by name and goes on. Lenient as in api/decode.h. Thread-safe; no I/O.
// Source: the Kubernetes API reference, "API Concepts" (chunked lists, watch, bookmarks, 410 Gone).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/cluster.h"
#include "api/pod.h"
#include "base/result.h"

namespace berth::api {

struct Malformed {
  ObjectMeta metadata;  // as far as it could be read
  Error error;
};

template <typename T>
struct List {
  std::string resource_version;
  std::string continue_token;  // empty on the last page
  std::vector<T> items;
  std::vector<Malformed> malformed;
};

enum class WatchType { kAdded, kModified, kDeleted, kBookmark, kError };

template <typename T>
struct WatchEvent {
  WatchType type = WatchType::kError;
  std::string resource_version;        // of the object, the bookmark or nothing
  std::optional<T> object;             // kAdded, kModified, kDeleted, unless malformed
  std::optional<Malformed> malformed;  // instead of `object`
  std::optional<Error> error;          // kError: the Status that the server sent, for example kGone
};

// Instantiated for Pod, Node, Namespace and PriorityClass. An Error means that the text is not such a list or event.
template <typename T>
Result<List<T>> decode_list(std::string_view json);
template <typename T>
Result<WatchEvent<T>> decode_watch_event(std::string_view json);

// The Error that a Status object describes, its code from `http_status` (or, when that is 0, from the object's own
// code). `json` may be anything that a server or proxy answered: what is not a Status is quoted, cut short.
Error decode_status(std::string_view json, int http_status = 0);

// metadata of any single object.
Result<ObjectMeta> decode_metadata(std::string_view json);

}  // namespace berth::api
