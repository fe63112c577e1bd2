// Session: one term as leader: from a fresh list of the cluster to the last bind.
//
// Owns one engine and the thread that drives it. Reflectors decode on their own transport's thread and put facts into
// the inbox; the owner thread applies them, runs a cycle, and hands decisions to the binder, the evictor, the status
// writer and the event recorder, none of which ever makes it wait, in bounded turns (apps/scheduler/turn_plan.h). A new
// term is a new Session with a new engine, so what an earlier term believed cannot leak into it.
//
// Invariants: 1. no cycle runs before all that is watched has been listed in this term; 2. nothing is decided or sent
// once `may_bind` is false; 3. at most max_outstanding_binds decisions wait for their answer; 4. no pod is evicted
// while disruption budgets cannot be read.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "apps/configuration.h"
#include "apps/scheduler/binder.h"
#include "apps/scheduler/closed_nodes.h"
#include "apps/scheduler/evictor.h"
#include "apps/scheduler/inbox.h"
#include "apps/scheduler/metrics.h"
#include "apps/scheduler/mig_writer.h"
#include "apps/scheduler/seen.h"
#include "apps/scheduler/set_aside.h"
#include "apps/scheduler/status_writer.h"
#include "apps/scheduler/storage_watch.h"
#include "apps/scheduler/told.h"
#include "apps/scheduler/turn_plan.h"
#include "apps/scheduler/volume_binder.h"
#include "apps/scheduler/work_queues.h"
#include "bridge/to_model.h"
#include "engine/engine.h"
#include "io/curl_transport.h"
#include "kube/client.h"
#include "kube/event_recorder.h"
#include "kube/reflector.h"
#include "mig/repartitioner.h"

namespace berth::apps {

struct SessionOptions {
  const Configuration* configuration = nullptr;  // outlives the session
  io::CurlTransportOptions transport;            // server and credentials; the session sets lanes
  std::function<bool()> may_bind;                // thread-safe: the lease outlasts a bind that starts now
  std::string instance;                          // "berth-<host>"
  Metrics* metrics = nullptr;                    // outlives the session
};

class Session {
 public:
  // Starts listing at once. Errors: the transports cannot be made.
  static Result<std::unique_ptr<Session>> start(SessionOptions options);
  ~Session();  // stop() without draining

  // True once everything has been listed and the first cycle has run.
  bool ready() const { return ready_; }
  // The store has lost writes that this session had seen: it must be replaced by a new one.
  bool doubtful() const { return doubtful_; }
  // When the owner thread last came round, monotonic.
  Time last_tick() const { return Time{last_tick_}; }
  // Objects that cannot be understood at present, a line each.
  std::vector<std::string> set_aside() const { return set_aside_.lines(); }
  std::string trouble() const;  // why lists or watches fail at present; empty when they do not
  // Stops deciding; waits up to `drain` for binds under way, then as long for their events; ends all threads.
  void stop(Duration drain);

 private:
  static constexpr size_t kEventsQueuedMax = 40'000;
  struct WakeUp {};
  using PodUpdates = std::vector<kube::WatchUpdate<SeenPod>>;
  using NodeUpdates = std::vector<kube::WatchUpdate<SeenNode>>;
  using NamespaceUpdates = std::vector<kube::WatchUpdate<SeenNamespace>>;
  using BudgetUpdates = std::vector<kube::WatchUpdate<model::DisruptionBudget>>;
  using Message = std::variant<PodUpdates, NodeUpdates, NamespaceUpdates, BudgetUpdates, StorageUpdates, QueueMessage,
                               ClaimPatched, BindReport, EvictionReport, NodePatched, WakeUp>;

  // The node that a waiting pod is nominated for.
  struct Nomination {
    std::string node;    // empty: none
    bool by_us = false;  // in this term: what the watch shows of it may be older
  };

  explicit Session(SessionOptions options);
  Status open_lanes();
  Status open();
  void run();
  void fetch(Duration wait);
  void turn();
  bool apply_messages();
  void cycle(Time now);
  void handle(PodUpdates& updates);
  void handle(NodeUpdates& updates);
  void handle(NamespaceUpdates& updates);
  void handle(StorageUpdates& batch);
  void handle(ClaimPatched& answer) { volumes_->handle(answer, clock_.monotonic()); }
  void handle(BindReport& report);
  void handle(BudgetUpdates& updates);
  void handle(EvictionReport& report);
  void handle(NodePatched& answer) { mig_->handle(answer, clock_.monotonic()); }
  void handle(QueueMessage& message) { doubtful_ = queues_->handle(message, clock_) || doubtful_; }
  void handle(WakeUp&) {}
  void list_pods(kube::ListReplaced<SeenPod>& list, const PodUpdates& batch);
  void take_in(SeenPod& seen);
  void take_in(const SeenNamespace& seen, const std::string& told);
  void forget_pod(const std::string& uid);
  void quarantine(const char* kind, const kube::Malformed& object, const std::string& then = "");
  std::optional<model::Pod> known_of(const kube::Malformed& object) const;
  void handle_malformed_pod(const kube::Malformed& object);
  void close_node(const ClosedNodes::PodName& pod, const std::string& node);
  void open_node_of(const std::string& name_space, const std::string& name);
  void carry_out(const engine::Decision& decision);
  void send_bind(const engine::Decision& decision);
  void give_up(const engine::Decision& decision, const std::string& why);
  bool storage_listed();
  void remember_version(const SeenStorage& seen);
  void forget_storage(model::StorageKind kind, const std::string& key);
  VolumeBinder::Hooks volume_hooks();
  bool budgets_listed();
  void set_preemption(bool allowed);
  void evict(const engine::Decision& decision);
  bool take_in(SeenNode& seen);  // this and what follows, dynamic MIG: session_mig.cc
  void forget_node(const std::string& name);
  void follow_cuts(Time now);
  void hear(const MigOutcome& outcome, Time now);
  void repartition(Time now);
  void begin_cut(const mig::RepartitionStep& step, Time now);
  void end_cut(const engine::NodeRepartitioning& over, bridge::MigDesired::State how, const std::string& why, Time now);
  void adopt_cut(const std::string& node, const bridge::MigDesired& desired, Time now);
  void tell_node(const std::string& node, const char* reason, const std::string& note, bool warning = false);
  void count_victims(const std::vector<engine::Decision>& decisions);
  bool tell_waiting(const engine::Decision& decision);
  void tell_error(const engine::Decision& decision, const std::string& text);
  void write_condition(const engine::Decision& decision, const char* reason, const Told::Text& message, bool first,
                       std::optional<std::string> nominated_node);
  void remind(Time now);
  void look_at_gate(const model::Pod& pod);
  Duration waited(const model::Pod& pod);
  void balance_lanes();
  void publish(Time now);

  const SessionOptions options_;
  const Configuration& config_;
  const Clock& clock_;
  bridge::SchedulerNames served_;
  std::unique_ptr<io::CurlTransport> watch_transport_, bind_transport_, evict_transport_, note_transport_;
  std::unique_ptr<io::CurlTransport> queue_transport_;
  std::unique_ptr<kube::Client> watch_client_, bind_client_, evict_client_, note_client_, queue_client_;
  std::unique_ptr<kube::EventRecorder> events_;
  std::unique_ptr<StatusWriter> statuses_;
  std::unique_ptr<Binder> binder_;
  std::unique_ptr<Evictor> evictor_;
  std::unique_ptr<kube::Reflector<SeenPod>> pods_;
  std::unique_ptr<kube::Reflector<SeenNode>> nodes_;
  std::unique_ptr<kube::Reflector<SeenNamespace>> namespaces_;
  std::unique_ptr<kube::Reflector<model::DisruptionBudget>> budgets_;
  std::unique_ptr<StorageWatch> storage_;
  Inbox<Message> inbox_;
  SetAside set_aside_;

  // Owner thread only.
  engine::Engine engine_;
  TurnPlan plan_;
  std::deque<Message> backlog_;  // taken from the inbox, not yet applied
  Told told_;
  absl::flat_hash_map<std::string, Nomination> nominations_;        // by UID
  absl::flat_hash_map<std::string, Time> gate_fell_;                // by UID, of waiting pods: wall time
  absl::flat_hash_map<std::string, std::string> other_schedulers_;  // by UID: schedulerName, where it is not our first
  absl::flat_hash_set<std::string> held_back_;  // UIDs of pods that would preempt, if budgets could be read
  absl::flat_hash_map<std::string, std::string> namespaces_seen_;  // by name: the problem that was told, if any
  ClosedNodes closed_;
  std::unique_ptr<VolumeBinder> volumes_;
  std::unique_ptr<WorkQueues> queues_;
  mig::Repartitioner repartitioner_;
  std::unique_ptr<MigWriter> mig_;
  std::map<std::string, std::string> node_problems_;        // by node: what was told of it last
  std::map<std::string, std::string> volume_versions_;      // resourceVersion by name
  absl::flat_hash_set<model::StorageKind> storage_listed_;  // or refused to us
  bool pods_listed_ = false, nodes_listed_ = false, namespaces_listed_ = false;
  bool budgets_refused_ = false, cycle_due_ = false, all_listed_ = false;
  bool notes_held_ = false;  // events give way to binds
  bool has_wakeup_ = false;
  Time wakeup_, published_at_, held_back_at_;

  std::atomic<bool> ready_{false}, doubtful_{false}, deciding_{true}, stopping_{false}, budgets_listed_{false};
  std::atomic<int64_t> last_tick_{0};
  std::thread owner_;
};

}  // namespace berth::apps
