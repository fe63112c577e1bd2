// StatusWriter: keeps PodScheduled conditions and nominations up to date, the latest per pod, a few writes at a time.
//
// A pod whose text changes again before its write went out gets one write, not two; a pod that is bound meanwhile gets
// none. Writes that fail for a passing reason are repeated, with back-off and for as long as they are wanted: the
// engine tells a verdict once. A 429 holds up all writes for as long as the server asks. A pod that is gone or is
// another by now is left alone. Thread-safe; never blocks.
//
// Invariant: of one pod at most one write is queued, under way or backing off, so that texts cannot overtake each
// other.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kube/client.h"

namespace berth::apps {

struct UnschedulableStatus {
  std::string namespace_name;
  std::string pod_name;
  std::string uid;
  std::shared_ptr<const std::string> message;
  int64_t generation = 0;  // of the pod, as scheduled
  bool first = false;      // the pod has no PodScheduled=False yet: lastTransitionTime is now
  std::string reason = "Unschedulable";
  std::optional<std::string> nominated_node = {};  // written if given; empty: the pod is nominated for no node
};

class StatusWriter {
 public:
  // `done` hears of each finished write, on the transport's thread. The client's transport must outlive the answers.
  StatusWriter(kube::Client& client, io::Transport& transport, int in_flight_max, std::function<void(bool ok)> done);

  void write(UnschedulableStatus status);
  // The pod has found a place or is gone: forget a write that has not gone out.
  // `then` runs at once, or, on the transport's thread, when a write under way has ended: a bind that overtook it would
  // leave a bound pod marked as unschedulable. True if a text was forgotten that the server has not seen.
  bool forget(const std::string& uid, std::function<void()> then);
  // Pods whose latest text is not stored.
  size_t queued() const;

 private:
  struct Shared;
  static void pump(const std::shared_ptr<Shared>& shared);
  static void send(const std::shared_ptr<Shared>& shared, UnschedulableStatus status);
  static void answered(const std::shared_ptr<Shared>& shared, const UnschedulableStatus& sent,
                       const Result<std::string>& result);

  std::shared_ptr<Shared> shared_;
};

}  // namespace berth::apps
