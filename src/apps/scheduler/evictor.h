// Evictor: carries Evict decisions to the API server, in a lane of its own beside binds.
//
// An eviction is two writes: the condition DisruptionTarget on the victim, from which its owner knows that it did not
// fail by itself, then its deletion by UID, with the grace period that the pod names. A victim that is gone, or is
// another pod by now, is no longer in anybody's way. What may pass (429, 5xx, lost connections and time-outs,
// conflicts) is tried again with back-off, for as long as the eviction is wanted; 403 a few times, since a server that
// has just started does not know its roles yet. Both writes are idempotent, so an answer that was lost costs nothing
// but another.
//
// Thread-safe; never blocks; reports come on the transport's thread or on that of withdraw(). No write is sent unless
// `may_send` holds at that moment (design I6).
//
// Invariant: of one victim at most one eviction is queued, under way or backing off.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/time.h"
#include "kube/client.h"
#include "kube/event_recorder.h"

namespace berth::apps {

struct Eviction {
  kube::EventTarget victim;
  kube::EventTarget preemptor;
  std::string node_name;
  std::string scheduler_name;     // of the preemptor
  int64_t victim_generation = 0;  // metadata.generation
};

enum class EvictionEnd : uint8_t {
  kEvicted,    // its deletion has begun
  kGone,       // it no longer existed
  kRefused,    // the server will not have it
  kWithdrawn,  // the preemptor needs it no more; nothing was deleted
};
std::string_view to_string(EvictionEnd end);

struct EvictionReport {
  Eviction eviction;
  EvictionEnd end = EvictionEnd::kEvicted;
  std::string error;       // kRefused: why
  bool forbidden = false;  // kRefused: our role does not allow it
};

class Evictor {
 public:
  using Sink = std::function<void(EvictionReport)>;

  // `client` and its transport must outlive the answers, which transport.stop() brings.
  Evictor(kube::Client& client, io::Transport& transport, int in_flight_max, Duration timeout,
          std::function<bool()> may_send, Sink sink);

  void evict(Eviction eviction);
  // The preemptor has its place, or is gone: of its evictions those end that surely have deleted nothing.
  void withdraw(std::string_view preemptor_uid);
  // Evictions whose end has not been reported, and those of them that do not back off.
  size_t outstanding() const;
  size_t under_way() const;

 private:
  struct Shared;
  static void pump(const std::shared_ptr<Shared>& shared);
  static void send(const std::shared_ptr<Shared>& shared, const std::string& uid);
  static void answered(const std::shared_ptr<Shared>& shared, const std::string& uid,
                       const Result<std::string>& result);

  std::shared_ptr<Shared> shared_;
};

}  // namespace berth::apps
