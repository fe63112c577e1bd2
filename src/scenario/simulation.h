// Simulation: a cluster without machines, in virtual time, around the one engine.
//
// It stands where the API server, the controllers and the kubelets would: manifests become pods, a Bind decision starts
// a pod at once, a pod ends when its simulated runtime is over, a Job then starts its next one. `berth simulate`
// submits everything and runs to the end; a scenario also plays users, kubelets and broken networks, step by step. All
// reaches the engine as events through src/bridge, as in the daemon. Time jumps from one event to the next.
//
//   Simulation cluster({.policies = policy::default_policies()});
//   BERTH_TRY_VOID(cluster.submit(std::move(manifests)));
//   cluster.run_to_end();
//   std::cout << to_table(cluster.report());
//
// Owner thread only; deterministic. Invariants: 1. the engine has heard everything before a cycle runs; 2. UIDs and
// creation times follow the order of submission, whatever the order of delivery; 3. every pod made stays listed.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/rng.h"
#include "bridge/topology.h"
#include "limits/namespace_limits.h"
#include "mig/repartitioner.h"
#include "scenario/disruption_controller.h"
#include "scenario/event_log.h"
#include "scenario/manifests.h"
#include "scenario/pod_names.h"
#include "scenario/queue_controller.h"
#include "scenario/report.h"
#include "scenario/simulated_agent.h"
#include "scenario/simulated_work.h"
#include "scenario/simulation_options.h"
#include "scenario/storage_controller.h"

namespace berth::scenario {

class Simulation {
 public:
  explicit Simulation(SimulationOptions options);

  // Submits objects now, or at the arrival that they name. An error for more pods than kSimulatedPodsMax.
  Status submit(std::vector<Manifest> manifests);
  // Delivers what has happened and runs cycles until nothing more is decided at the present time.
  void settle();
  void advance(Duration duration);  // settles at each event on the way
  // Until nothing is left to happen; false: pods are replaced again and again, and none ends. `on_cycle`: each cycle.
  bool run_to_end(std::function<void()> on_cycle = {});

  // What others do to the cluster; each takes effect at the next settle(). Pods are named "namespace/name"; a namespace
  // "default" may be left out. An error when there is no such object, or none in a state for it.
  Status delete_pod(const std::string& name);  // a placed pod holds its room for its grace period
  Status finish_pod(const std::string& name);
  Status fail_pod(const std::string& name, const std::string& reason);  // its workload makes another
  Status lose_node(const std::string& name);                            // with its pods
  Status cordon_node(const std::string& name, bool unschedulable);
  // What the controller of an AdmissionCheck says of the Workload of what was submitted under this name.
  Status report_check(const std::string& name, quota::CheckReport report);
  Status set_active(const std::string& name, bool active);  // spec.active of its Workload
  Status update(Manifest manifest);  // of an existing Pod, Node or Namespace; of storage, new or not
  void plan_bind(const std::string& name, BindFate fate);    // of the pod's next bind
  Status settle_bind(const std::string& name, bool stored);  // what the server says about an unknown one
  void relist();                                             // everything is listed anew

  Time now() const { return now_; }
  int64_t pods_placed() const { return placed_pods_; }
  int64_t pods_expected() const { return std::max(made_pods_, expected_pods_); }  // in all, as far as is known
  const engine::Engine& engine() const { return engine_.engine(); }
  const EventLog& log() const { return engine_.log(); }
  const std::vector<RepartitionReport>& repartitions() const { return repartitions_; }  // as they began
  const std::vector<std::string>& broken() const { return broken_; }                    // invariants, with the time
  // The engine's view of a pod, with whom it could preempt (Engine::explain()); nothing: there is no such pod.
  std::optional<engine::Explanation> explain(const std::string& name);
  Report report();
  Report report_with_forecasts();  // costs as much as playing what comes next in a second engine

 private:
  using Workload = SimObject;
  using Due = std::tuple<Time, DueKind, uint64_t, size_t>;  // when, what, in which order, which

  void arrive(size_t workload);
  void add_node(const api::Node& node);
  void add_pod(api::Pod pod, size_t workload, int32_t index, int32_t attempt, size_t group = SIZE_MAX);
  void begin_pod(size_t slot);  // the API server has stored it
  void add_made_pod(api::Pod pod, size_t workload, int32_t index);
  bool name_is_taken(const api::Pod& pod, size_t workload) const;
  void expand(size_t workload);
  void add_daemons(size_t workload, std::span<const api::Node> nodes);
  void next_job_pods(size_t workload);
  void drop_surplus_pods(size_t workload, const api::Job& job);
  void stop_job(size_t workload, const std::string& reason);
  bool keeps_name(const SimPod& pod) const;
  void schedule(Time from, Duration after, DueKind kind, size_t which);
  void process_due();
  std::optional<Time> next_time() const;
  void tell_pod(const SimPod& pod);
  void start(SimPod& pod, const std::string& node);
  void end(size_t pod, const std::string& phase, const std::string& reason, bool replace);
  void remove(size_t pod);
  void replace_pod(size_t pod);
  void account(SimPod& pod, bool running);
  void note_gpus_in_use(const std::optional<GpuCount>& told = {});
  // Work that waits in queues: simulation_queues.cc, simulation_groups.cc, simulation_resumed.cc.
  bool wait_in_queue(size_t workload);
  void expect_resumed(size_t workload);
  void adopt(api::Pod pod);
  void resume(size_t workload);
  void follow_resumed();
  void clear_out(QueueController::Owner owner);
  void make_pods_leave(size_t workload);
  void wait_in_queue(SimPod& pod);
  void join_group(SimPod& pod);
  void name_members(size_t group);
  void let_in(const QueueController::Admitted& given);
  void let_in(PodGroup& group);
  void follow_group(const SimPod& pod);
  void carry_out(const quota::AdmissionDecision& decision);
  void release_job(size_t workload, const QueueController::Admitted& given);
  void begin_workload(size_t workload);
  void make_leave(size_t pod);
  void follow_job(size_t workload);
  void let_go();
  void set_ready(SimPod& pod, bool ready);
  void await_readiness(SimPod& pod);
  void follow_readiness();
  void put_limit(const api::Object& object);  // LimitRanges and ResourceQuotas: simulation_limits.cc
  std::vector<limits::Usage> present_in(const std::string& space) const;
  void check_limits();
  void count_if_stored(size_t workload);
  bool admit_object(size_t workload);  // false: it is refused
  bool admit_pod(size_t slot);
  void retry_refused_pods();
  void recount(const api::Pod& pod, bool stored);
  RefusedPod refusal_of(const SimPod& pod) const;
  void report_limits(Report& out) const;
  void repartition();  // nodes with dynamic MIG: simulation_mig.cc
  void cut_node(size_t repartition);
  void begin_change(const std::string& node, const model::ResourceList& wanted);
  void adopt_change(const api::Node& node);
  void end_change(const std::string& node, bool given_up, const std::string& overtaken);
  void leave_uncut(const std::string& name);
  void expect_idle(const std::string& node);
  void tell_devices(const std::string& node);
  void deliver();
  void carry_out(const engine::Decision& decision);
  void evict(size_t pod, const std::string& preemptor_uid);
  void delete_gracefully(size_t pod);
  void await_end_of_grace(size_t pod);
  void update_budgets();
  Result<size_t> find(const std::string& name) const;
  PodReport report_pod(const SimPod& pod) const;
  engine::Forecasts forecast() const;

  SimulationOptions options_;
  RecordingEngine engine_;
  Rng rng_;
  Time now_, happened_;  // when something last arrived, started or ended; a verdict told again is no such thing
  uint64_t sequence_ = 0;
  int64_t made_pods_ = 0, placed_pods_ = 0, expected_pods_ = 0, ended_pods_ = 0;
  std::vector<Workload> workloads_;  // everything submitted, also bare pods, nodes and namespaces
  std::deque<SimPod> pods_;
  PodGroups groups_;
  ResumedWork resumed_;
  absl::flat_hash_map<std::string, size_t> by_uid_;
  absl::flat_hash_map<std::string, size_t> by_name_;  // "namespace/name": the latest
  PodNames names_;
  absl::btree_map<std::string, api::Node> nodes_;
  absl::btree_set<Due> due_;
  std::vector<engine::Event> outbox_;
  StorageController storage_{outbox_};
  DisruptionController budgets_{outbox_};
  QueueController queues_{outbox_};
  limits::NamespaceLimits limits_;
  std::map<size_t, RefusedPods> refused_pods_;  // by workload; none is empty
  absl::btree_set<QueueController::Owner> readiness_changed_;
  absl::flat_hash_map<std::string, std::deque<BindFate>> planned_;
  mig::Repartitioner repartitioner_;
  SimulatedAgent agent_;
  std::vector<RepartitionReport> repartitions_;
  std::optional<std::pair<Time, engine::Forecasts>> foreseen_;  // at that time, by run_to_end()
  std::optional<Time> wakeup_;
  bool in_vain_ = false;      // for all that is known, nobody starts at that time
  bool shares_gpus_ = false;  // some pod asks for a share, so that only the engine knows how many are in use
  GpuCount gpus_running_, gpus_peak_;
  std::vector<std::string> broken_;
  std::function<void()> on_cycle_;
};

}  // namespace berth::scenario
