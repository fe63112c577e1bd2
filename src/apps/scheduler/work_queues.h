// WorkQueues: work that waits in queues, for a session: what its watches bring becomes the engine's events, and what
// the engine decides is written to Workloads and Jobs (queueing/desk.h).
//
// Owner thread only, but for watches and answers, which come by `post` from the transports' threads. Nothing is sent
// unless `may_send` holds at that moment.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "apps/scheduler/queue_metrics.h"
#include "apps/scheduler/queue_watch.h"
#include "apps/scheduler/set_aside.h"
#include "base/time.h"
#include "engine/engine.h"
#include "kube/event_recorder.h"
#include "queueing/desk.h"
#include "queueing/jobs_in_sight.h"
#include "queueing/provisioning.h"
#include "queueing/queue_status.h"
#include "queueing/topology_gates.h"

namespace berth::apps {

// On its way to the owner thread.
using QueueMessage = std::variant<QueueUpdates, queueing::Answer>;

class WorkQueues {
 public:
  struct Hooks {
    std::function<void(QueueMessage)> post;  // any thread; reaches handle()
    std::function<bool()> may_send;          // any thread
    std::function<void(const std::string& kind, const kube::Malformed&)> quarantine;
  };
  struct Options {
    bridge::SchedulerNames served;
    bridge::TopologyLevels levels;
    Duration told_every;      // the reason why something waits is written at most this often
    bool pods_ready = false;  // the engine is to hear whether pods are ready
  };

  // All references outlive this object.
  WorkQueues(Options options, kube::Client& watch, kube::Client& write, engine::Engine& engine, SetAside& set_aside,
             kube::EventRecorder& events, QueueMetrics& metrics, Hooks hooks);

  void start() { watch_.start(); }
  void stop() { watch_.stop(); }

  // True: the store has lost what had been seen of it.
  bool handle(QueueMessage& message, const Clock& clock);
  // Every kind has been listed, or is not there to be.
  bool listed();
  // That takes too long: whoever names no queue does not wait for it any more.
  bool overdue(Time now);
  // Whether a pod is to wait for its Job, which has this UID; see queueing::JobsInSight::awaits().
  bool awaits_job(const std::string& uid, bool is_new, Time now);
  // Applies what the engine is to hear of workloads, once all is listed, and before that, whose pods need not wait for
  // their Job any more; true if there was something.
  bool tell_engine(Time now, Time wall);
  void decided(const std::vector<quota::AdmissionDecision>& decisions, Time wall);
  // Sends what is to be written. `wall` is for people.
  void write(Time now, Time wall);

  queueing::TopologyGates& topology_gates() { return topology_gates_; }

  // A decision is on its way to the server: what only tells of something gives way.
  bool decisions_under_way() const { return under_way_ > telling_; }

  std::string last_error() const { return watch_.last_error(); }
  auto stats() const { return watch_.stats(); }

 private:
  using Name = std::pair<std::string, std::string>;  // namespace, name

  bool handle(QueueUpdates& batch, Time wall);
  void handle(const queueing::Answer& answer, Time now);
  void take_in(QueueKind kind, SeenQueueObject&& seen, Time wall);
  void tell_problem(const queueing::SeenQueue& seen);
  void see_job(queueing::SeenJob&& seen);
  void see_local_queue(model::LocalQueue queue, const std::string& problem);
  void forget(QueueKind kind, const Name& name);
  void send(queueing::Write&& write);
  void call(QueueKind kind, queueing::Write&& write, kube::Client::Done answered);
  void tell(const std::vector<queueing::Note>& notes);

  const Options options_;
  kube::Client& client_;
  engine::Engine& engine_;
  SetAside& set_aside_;
  kube::EventRecorder& events_;
  QueueMetrics& metrics_;
  const Hooks hooks_;
  QueueWatch watch_;
  queueing::Desk desk_;
  queueing::JobsInSight jobs_in_sight_;
  queueing::Provisioning provisioning_;
  queueing::TopologyGates topology_gates_;
  queueing::QueueStatuses statuses_;
  std::optional<Time> counted_at_;   // what queues have
  std::optional<Time> waits_since_;  // for lists
  bool told_overdue_ = false;
  std::map<QueueKind, std::set<Name>> known_;                          // of the kinds that were listed
  std::map<std::pair<std::string, Name>, std::string> told_problems_;  // of queues, by kind
  size_t under_way_ = 0;                                               // writes that are not answered
  size_t telling_ = 0;                                                 // those of them that only tell
};

}  // namespace berth::apps
