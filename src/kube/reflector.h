// Reflector<T>: follows one resource by list and watch and hands on typed changes; the first step in a pod's life.
//
// Lists in pages (a consistent read, so never older than what was seen before), then watches with bookmarks from the
// list's resourceVersion; after a lost connection it watches on from the last version seen; on 410 Gone, as a status or
// as an ERROR event, it lists again. Errors back off exponentially with jitter; Retry-After is honoured. A watch that
// is silent for too long may be dead and is replaced, which is no failure. Where `protobuf` is given, lists are asked
// for in protobuf, which costs the server less (docs/performance.md); watches stay JSON, for which it makes no
// difference.
//
// Threads: `decode` and `sink` run on the transport's thread, which should therefore not be the one that sends binds.
// After stop() returns neither is called again.
//
// Invariants: 1. the first update is a ListReplaced, which holds every object that decoded; 2. between two
// ListReplaced, changes come in the order of the server; 3. an object that does not decode is Malformed, the rest goes
// on; 4. consumers must still be idempotent by UID and resourceVersion: a watch that is resumed may repeat.
//
//   Reflector<Pod> pods(client, {.resource = kPods}, &decode_pod, [&](auto updates) { queue.push(std::move(updates));
//   }); pods.start();
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "api/protobuf_json.h"
#include "base/result.h"
#include "kube/client.h"

namespace berth::kube {

// Bytes after the end of the text given to `decode` that may be read (simdjson wants them), though not relied on.
inline constexpr size_t kDecodePadding = 64;

// Replaces everything known of this resource. `went_back`: the version is below one seen before, so the store has lost
// writes (etcd restored from a backup): everything built on it is to be doubted.
template <typename T>
struct ListReplaced {
  std::vector<T> objects{};
  std::string resource_version{};
  bool went_back = false;
};
template <typename T>
struct Upserted {
  T object;
};
// Carries the object's last state.
template <typename T>
struct Deleted {
  T object;
};
// An object that did not decode; those of a list follow its ListReplaced, in the same batch. Empty fields: not even
// these could be read.
struct Malformed {
  std::string name_space{}, name{}, uid{};
  Error error{};
  bool deleted = false;
  std::string node_name{};  // spec.nodeName, of a pod: where it holds something
  bool terminal = false;    // status.phase of a pod that holds nothing any more
};
template <typename T>
using WatchUpdate = std::variant<ListReplaced<T>, Upserted<T>, Deleted<T>, Malformed>;

struct ReflectorOptions {
  Resource resource{};
  std::string name_space{};      // empty: all
  std::string field_selector{};  // for example "status.phase!=Succeeded"
  std::string label_selector{};
  const api::ProtobufMessage* protobuf = nullptr;  // of the objects; null: lists are asked for in JSON
  int page_size = 500;
  Duration backoff_min = Duration::millis(800);
  Duration backoff_max = Duration::seconds(30);
  Duration watch_min = Duration::seconds(300);   // timeoutSeconds is drawn from [watch_min, 2 × watch_min]
  Duration idle_limit = Duration::seconds(150);  // bookmarks come about once a minute
  uint64_t seed = 1;                             // of the jitter
};

struct ReflectorStats {
  uint64_t lists = 0, watches = 0, gone = 0, bookmarks = 0, events = 0, failures = 0;
};

// Text in, text out; Reflector<T> gives it types. Callbacks as for Reflector.
class RawReflector {
 public:
  struct Callbacks {
    std::function<void()> list_begin{};  // forget the objects of a list that was begun and not ended
    std::function<void(std::string_view json, const Status& whole)> list_item{};  // whole: see watch_frames.h
    std::function<void(std::string resource_version, bool went_back)> list_end{};
    std::function<void(std::string_view json, bool deleted)> changed{};
    std::function<void()> batch_end{};  // the end of what arrived at once
  };

  RawReflector(Client& client, ReflectorOptions options, Callbacks callbacks);
  ~RawReflector();  // stop()
  RawReflector(const RawReflector&) = delete;
  RawReflector& operator=(const RawReflector&) = delete;

  void start();
  void stop();
  bool synced() const;             // a list has been delivered, and no 410 or error has cast doubt on it since
  std::string last_error() const;  // of the latest failure; empty after the next success
  bool refused() const;            // that failure: we may not (403), or the server has no such resource (404)
  ReflectorStats stats() const;
  Time last_contact() const;  // monotonic: the latest byte from the server

 private:
  class Loop;
  std::shared_ptr<Loop> loop_;
};

// Who an undecodable object is, as far as it can be read.
Malformed malformed_object(std::string_view json, Error error, bool deleted);

template <typename T>
class Reflector {
 public:
  using Decode = std::function<Result<T>(std::string_view json)>;  // list items lack kind and apiVersion
  using Sink = std::function<void(std::vector<WatchUpdate<T>>)>;

  Reflector(Client& client, ReflectorOptions options, Decode decode, Sink sink)
      : state_(std::make_shared<State>(State{std::move(decode), std::move(sink), {}, {}, {}})),
        raw_(client, std::move(options), callbacks()) {}

  void start() { raw_.start(); }
  void stop() { raw_.stop(); }
  bool synced() const { return raw_.synced(); }
  std::string last_error() const { return raw_.last_error(); }
  bool refused() const { return raw_.refused(); }
  ReflectorStats stats() const { return raw_.stats(); }
  Time last_contact() const { return raw_.last_contact(); }

 private:
  struct State {
    Decode decode;
    Sink sink;
    std::vector<T> listed{};
    std::vector<Malformed> listed_malformed{};
    std::vector<WatchUpdate<T>> batch{};
  };

  RawReflector::Callbacks callbacks() {
    RawReflector::Callbacks calls;
    calls.list_begin = [s = state_] { s->listed.clear(), s->listed_malformed.clear(); };
    calls.list_item = [s = state_](std::string_view json, const Status& whole) {
      Result<T> object = whole ? s->decode(json) : fail(whole.error());
      if (object) s->listed.push_back(std::move(*object));
      else s->listed_malformed.push_back(malformed_object(json, object.error(), false));
    };
    calls.list_end = [s = state_](std::string version, bool went_back) {
      auto& list = std::get<ListReplaced<T>>(s->batch.emplace_back(std::in_place_type<ListReplaced<T>>));
      list.objects.swap(s->listed);
      list.resource_version = std::move(version);
      list.went_back = went_back;
      for (Malformed& each : std::exchange(s->listed_malformed, {}))
        s->batch.emplace_back(std::in_place_type<Malformed>, std::move(each));
    };
    calls.changed = [s = state_](std::string_view json, bool deleted) {
      Result<T> object = s->decode(json);
      if (!object) {
        s->batch.emplace_back(std::in_place_type<Malformed>, malformed_object(json, object.error(), deleted));
      } else if (deleted) {
        s->batch.emplace_back(Deleted<T>{std::move(*object)});
      } else {
        s->batch.emplace_back(Upserted<T>{std::move(*object)});
      }
    };
    calls.batch_end = [s = state_] {
      if (!s->batch.empty()) s->sink(std::exchange(s->batch, {}));
    };
    return calls;
  }

  std::shared_ptr<State> state_;
  RawReflector raw_;
};

}  // namespace berth::kube
