// Leader election on a coordination.k8s.io/v1 Lease, compatible with client-go's.
//
// LeaseElector is the state machine, without I/O: it is told what was read and written and when, and says what to do
// next. LeaderElection drives it on a Transport of its own, so that renewal never waits for binds or for a cycle.
//
// Other holders are judged by how long *we* have seen their record unchanged, never by their clock. Our own leadership
// ends renew_deadline after the latest successful renewal was *sent*, by our monotonic clock: a renewal whose answer
// was late counts from its sending, and a paused process finds its deadline past.
//
// Invariants: 1. may_act() is false from the deadline on, without any thread having to run; 2. on_started and
// on_stopped alternate; 3. a write carries the resourceVersion that was read, so two candidates cannot both win; 4. the
// deadline lies at least lease_duration − renew_deadline before any other may take the lease, pauses and clock jumps
// included (rates of clocks are trusted to that margin).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/rng.h"
#include "base/time.h"
#include "kube/client.h"

namespace berth::kube {

struct LeaseOptions {
  std::string name_space = "kube-system";
  std::string name = "berth-scheduler";
  std::string identity{};  // unique per process: "<host>_<random>"
  Duration lease_duration = Duration::seconds(15);
  Duration renew_deadline = Duration::seconds(10);
  Duration retry_period = Duration::seconds(2);
  uint64_t seed = 1;  // of the jitter
};

// The fields of a Lease that election reads and writes.
struct LeaseRecord {
  std::string holder{};
  int32_t duration_s = 0;
  Time acquired{}, renewed{};  // wall, for people; no decision depends on them
  int32_t transitions = 0;
  friend bool operator==(const LeaseRecord&, const LeaseRecord&) = default;
};

// A lease as read: `json` whole, since a write must keep the fields that are not ours.
struct LeaseObject {
  LeaseRecord record{};
  std::string resource_version{};
  std::string json{};
};
// An Error where it is no Lease or a part has the wrong type: what may be another's is not taken.
Result<LeaseObject> decode_lease(std::string_view json);
// The object to PUT (`base` not null) or to POST.
std::string encode_lease(const LeaseOptions& options, const LeaseRecord& record, const LeaseObject* base);

// What to do next.
struct LeaseStep {
  enum class Kind { kRead, kCreate, kUpdate, kWait };
  Kind kind = Kind::kWait;
  LeaseRecord record{};  // for kCreate and kUpdate
  Time wait_until{};     // for kWait, monotonic
};

// Pure: one thread, time injected. Call next(), do what it says, report with one of the on_…() calls, repeat.
class LeaseElector {
 public:
  explicit LeaseElector(const LeaseOptions& options);

  LeaseStep next(Time mono, Time wall);
  void on_read(Result<LeaseObject> lease, Time mono);  // kNotFound is an answer: the lease is to be created
  // `sent`: monotonic time at which the write was handed to the transport.
  void on_written(Result<LeaseObject> lease, Time sent, Time now);
  // Ends leadership now; the record to write so that others need not wait, if we held it and know its version.
  std::optional<LeaseRecord> release(Time wall);

  bool leading(Time mono) const { return leading_ && mono < deadline_; }
  // Leadership ends here unless renewed; the epoch while not leading.
  Time deadline() const { return leading_ ? deadline_ : Time{}; }
  // Takes note that the deadline has passed; true if that ended our leadership.
  bool expire(Time mono);
  const std::optional<LeaseObject>& observed() const { return observed_; }

 private:
  void observe(LeaseObject lease, Time mono);
  Duration jittered(Duration period);
  bool held_by_other(Time mono) const;

  LeaseOptions options_;
  Rng rng_;
  std::optional<LeaseObject> observed_;  // as last read or written
  Time observed_at_{};                   // when its record last changed, by our monotonic clock
  bool must_read_ = true;
  bool missing_ = false;  // the last read found no lease
  bool leading_ = false;
  Time deadline_{};
  Time wait_until_{};
};

struct LeaseCallbacks {
  std::function<void()> on_started{};                       // on the transport's thread
  std::function<void(std::string reason)> on_stopped{};     // likewise; binds must already be fenced by may_act()
  std::function<void(const Error&)> on_error{};             // a read or write failed; the election goes on
  std::function<void()> on_answer{};                        // a read found the lease, or a write was taken
  std::function<void(std::string holder)> on_new_leader{};  // whenever the holder seen changes; empty: none
};

// Runs an election on `client`, whose transport should serve nothing else. Destroy before the client.
class LeaderElection {
 public:
  LeaderElection(Client& client, LeaseOptions options, LeaseCallbacks callbacks);
  ~LeaderElection();  // stops without releasing, as a crash would
  LeaderElection(const LeaderElection&) = delete;
  LeaderElection& operator=(const LeaderElection&) = delete;

  void start();
  // Graceful end: no longer leading, then writes an empty holder, waiting up to `limit` for the answer. Not on the
  // transport's thread. True if the lease is not ours any more, or never was.
  bool release(Duration limit);

  // True if a request that ends within `margin` from `mono_now` ends before our leadership does. Any thread, wait-free.
  bool may_act(Time mono_now, Duration margin) const;
  Time deadline_mono() const;  // the epoch while not leading
  // True if the lease was read or written within the last lease_duration: this candidate could take it over.
  bool in_touch(Time mono_now) const;

 private:
  class Loop;
  std::shared_ptr<Loop> loop_;
};

}  // namespace berth::kube
