// Streams of events for property tests and the fuzzer: four small numbers are a step, any list of steps is a stream.
//
// A Stream plays the API server, its watch and the binder around one engine: it keeps the objects as the server stores
// them and turns a step into what such a cluster could send next, awkward things included: late and stale watch events,
// binds that fail after the node or the pod has gone, lists in the middle of binds, another scheduler's binds, nodes
// that shrink. The same steps always give the same calls. Owner thread only.
//
//   Stream stream(default_policies());
//   for (const Step& step : steps) stream.play(step);     // throws BrokenInvariant where the engine is wrong
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/testing.h"
#include "engine/testing_peers.h"

namespace berth::engine::testing {

struct Step {
  uint8_t what = 0;  // which kind of event; see Stream::play()
  uint8_t a = 0;     // its parameters: which object, which variant
  uint8_t b = 0;
  uint8_t c = 0;
  friend bool operator==(const Step&, const Step&) = default;
};

class Stream {
 public:
  static constexpr int kNodes = 6;
  static constexpr int kPods = 14;
  static constexpr int kSpecs = 31;

  explicit Stream(PolicySet policies, EngineOptions options = kAtOnce)
      : driver_(std::move(policies), std::move(options)) {}

  // Called before and after each cycle that has no bounds, with its decisions.
  std::function<void(Time now)> before_full_cycle;
  std::function<void(const CycleResult&)> after_full_cycle;

  void play(const Step& s) {
    switch (s.what % 24) {
      case 0:
      case 1: return put_node(s);
      case 2: return drop_node(node_name(s.a));
      case 3: return replace_nodes(s);
      case 4:
      case 5:
      case 6: return put_pod(s);
      case 7: return drop_pod(pod_uid(s.a));
      case 8: return bind_by_others(s);
      case 9: return finish_pod(s);
      case 10: return resize_pod(s);
      case 11: return put_namespace(s.a, s.b);
      case 12: return end_bind(s.a, BindOutcome::kSucceeded);
      case 13: return end_bind(s.a, BindOutcome::kFailed);
      case 14:
        return end_bind(s.a, s.b % 3 == 0   ? BindOutcome::kUnknown
                             : s.b % 3 == 1 ? BindOutcome::kSent
                                            : BindOutcome::kPreBinding);
      case 15: return echo(pod_uid(s.a), s.b % 4 == 0);
      case 16: return replace_pods(s.b % 4 == 0);
      case 17: return bounded_cycle(s);
      case 18: return s.b % 8 == 0 ? drop_budget(s.a) : put_budget(s);
      case 19:
      case 20: return go_on_evicting(s);
      default: full_cycle(Duration::millis(int64_t{s.a} * (s.b % 8 == 0 ? 2000 : 20)));
    }
  }

  // Ends every outstanding bind well and shows all objects as they are.
  void calm() {
    while (!driver_.outstanding().empty()) succeed(driver_.outstanding().begin()->first);
    for (auto& [uid, pod] : pods_) {
      if (const PodSlot slot = driver_.state().find_pod(uid); slot.valid() && driver_.state().pod(slot).evicting)
        pod.terminating = true;
      seen(pod);
    }
  }
  CycleResult full_cycle(Duration step) {
    if (before_full_cycle) before_full_cycle(driver_.now() + step);
    CycleResult result = cycle(step, {});
    if (after_full_cycle) after_full_cycle(result);
    return result;
  }
  CycleResult cycle(Duration step, const CycleLimits& limits) {
    CycleResult result = driver_.cycle(step, limits);
    log_.insert(log_.end(), result.decisions.begin(), result.decisions.end());
    return result;
  }

  Driver& driver() { return driver_; }
  const State& state() const { return driver_.state(); }
  const std::vector<Decision>& log() const { return log_; }  // every decision so far
  // The objects as the server has them.
  const std::map<std::string, model::Node>& nodes() const { return nodes_; }
  const std::map<std::string, model::Pod>& pods() const { return pods_; }
  const std::map<std::string, NamespaceUpserted>& namespaces() const { return namespaces_; }
  std::vector<model::DisruptionBudget> budgets() const {
    std::vector<model::DisruptionBudget> out;
    for (const auto& [key, budget] : budgets_) out.push_back(budget);
    return out;
  }
  std::set<std::string> protecting_namespaces() const {
    std::set<std::string> out;
    for (const auto& [name, facts] : namespaces_)
      if (facts.protects_pods) out.insert(name);
    return out;
  }

  static std::string node_name(int i) { return std::string("n") + static_cast<char>('a' + i % kNodes); }
  static std::string pod_uid(int i) { return "uid-p" + std::to_string(i % kPods); }

  static model::Node node_of(int which, int variant, int flags) {
    static constexpr int64_t kGpus[] = {0, 0, 2, 4};
    model::Node node = make_node(node_name(which), {{"cpu", 1000 * (1 + variant % 3)}, {"pods", 2 + variant % 4}});
    if (const int64_t gpus = kGpus[variant / 3 % 4]; gpus > 0) node.allocatable.set("nvidia.com/gpu", gpus);
    if (flags % 8 == 1) node.unschedulable = true;
    if (flags % 4 == 2) node.taints.push_back({"gpu", "true", model::TaintEffect::kNoSchedule});
    if (flags % 5 == 3) node.taints.push_back({"spot", "", model::TaintEffect::kPreferNoSchedule});
    if (flags % 7 == 4) node.taints.push_back({"gone", "", model::TaintEffect::kNoExecute});
    if (flags / 8 % 3 > 0) node.labels.set("zone", flags / 8 % 3 == 1 ? "x" : "y");
    if (flags % 3 > 0) node.labels.set(std::string(kGpuProductLabel), flags % 3 == 1 ? "L4" : "H100-SHARED");
    if (flags / 8 % 2 > 0) node.labels.set("level", std::to_string(variant % 4));
    if (variant / 12 % 3 > 0) node.images = {{"app:1", int64_t{variant} << 24}, {"big:1", int64_t{9} << 30}};
    return node;
  }

  static std::shared_ptr<const model::SchedulingSpec> spec_of(int i) {
    using Op = model::NodeSelectorOperator;
    const auto term = [](std::string key, Op op, std::vector<std::string> values) {
      return model::NodeSelectorTerm{{{std::move(key), op, std::move(values)}}, {}};
    };
    model::Pod pod = make_pod("x", {{"cpu", 100 + 400 * (i % 3)}});
    pod = with_spec(pod, [&](model::SchedulingSpec& spec) {
      if (i % 2 > 0) spec.images = {"app:1", "big:1"};
      switch (i % kSpecs) {
        case 0: spec.requests = {{"pods", 1}}; break;
        case 1: spec.requests.set("nvidia.com/gpu", 1); break;
        case 2:
          spec.requests.set("nvidia.com/gpu", 2);
          spec.peers = testing::peers_of(13);
          break;
        case 3: spec.node_selector.set("zone", "x"); break;
        case 4: spec.tolerations = {{.key = "gpu", .value = "true"}}; break;
        case 5: spec.tolerations = {{.key = "", .value = "", .op = model::TolerationOperator::kExists}}; break;
        case 6: spec.host_ports = {{.port = 80}}; break;
        case 7:
          spec.host_ports = {{.ip = "10.0.0.1", .port = 80}, {.protocol = model::Protocol::kUdp, .port = 53}};
          break;
        case 8: spec.affinity.required = {{term("zone", Op::kIn, {"x", "y"})}}; break;
        case 9: spec.affinity.required = {{term("level", Op::kGt, {"1"}), term("zone", Op::kDoesNotExist, {})}}; break;
        case 10:
          spec.affinity.preferred = {{60, term("zone", Op::kIn, {"y"})}, {40, term("level", Op::kExists, {})}};
          break;
        case 11: spec.affinity.required = {{{{}, {{"metadata.name", Op::kIn, {"na", "nc"}}}}}}; break;
        case 12: spec.requests.set("memory", INT64_MAX); break;  // hostile: fits nowhere
        case 13: spec.requests.set("example.com/none", 1); break;
        default: spec.peers = testing::peers_of(i % kSpecs - 14); break;
      }
    });
    return pod.spec;
  }

 private:
  void put_node(const Step& s) {
    model::Node node = node_of(s.a, s.b, s.c);
    nodes_[node.name] = node;
    driver_.add(node);
  }
  void drop_node(const std::string& name) {
    nodes_.erase(name);
    driver_.apply(NodeDeleted{name});
  }
  void replace_nodes(const Step& s) {
    NodesReplaced list;
    for (int i = kNodes; i-- > 0;) {
      const std::string name = node_name(i);
      if ((s.b >> i & 1) != 0) nodes_.erase(name);
      if ((s.c >> i & 1) != 0) nodes_[name] = node_of(i, s.a, s.b);
      if (nodes_.contains(name)) list.nodes.push_back(nodes_[name]);
    }
    driver_.apply(list);
  }

  void seen(const model::Pod& pod) {
    shown_.insert(pod.uid);
    driver_.add(pod);
  }
  // A new pod, or new facts of one that waits.
  void put_pod(const Step& s) {
    const std::string uid = pod_uid(s.a);
    model::Pod& pod = pods_[uid];
    pod.uid = uid;
    pod.name = "p" + std::to_string(s.a / kPods % 2 == 0 ? s.a % kPods : 0);  // now and then the name of another one
    pod.namespace_name = std::string("ns") + static_cast<char>('0' + s.a % 3);
    pod.owner_uid = s.a % 3 == 0 ? "owner" : "";
    model::Labels labels;
    if (s.b % 4 > 0) labels.set("app", s.b % 4 == 1 ? "web" : "db");
    if (s.b % 4 > 1) labels.set(std::string(kQueueNameLabel), s.b % 4 == 2 ? "train" : "batch");
    pod.labels = s.b % 4 > 0 ? std::make_shared<model::Labels>(std::move(labels)) : nullptr;
    if (pod.node_name.empty() && !driver_.outstanding().contains(uid)) pod.spec = spec_of(s.b);
    if (pod.spec == nullptr) pod.spec = spec_of(s.b);
    pod.priority = s.c % 4 == 0 ? 10 + s.b % 2 : s.c % 4 == 1 ? 5 : 0;
    pod.preempts = s.b % 16 != 9;
    pod.preemptible = s.c % 8 != 6;
    pod.daemon = s.b % 8 == 5;
    if (s.b % 4 == 2) pod.started = Time{1 + s.a % 3};
    if (s.c % 3 > 0) pod.runtime = Duration::seconds(1 + s.b % 32);
    pod.created = Time{s.c / 4 % 4 * 1'000'000'000LL};
    pod.gated = s.c / 16 % 8 == 7;
    pod.placement = s.c / 16 % 8 == 3 ? model::Placement::kSpread : model::Placement::kDefault;
    pod.ours = s.c / 16 % 8 != 5;
    pod.terminating = s.c / 16 == 14;
    if (pod.node_name.empty() || shown_.contains(uid)) driver_.add(pod);
  }
  void drop_pod(const std::string& uid) {
    pods_.erase(uid);
    shown_.erase(uid);
    driver_.apply(PodDeleted{uid});
  }
  void bind_by_others(const Step& s) {
    const auto at = pods_.find(pod_uid(s.a));
    if (at == pods_.end() || !at->second.node_name.empty()) return;
    at->second.node_name = node_name(s.b);  // which need not exist
    seen(at->second);
  }
  void finish_pod(const Step& s) {
    const auto at = pods_.find(pod_uid(s.a));
    if (at == pods_.end()) return;
    model::Pod pod = at->second;
    pods_.erase(at);
    shown_.erase(pod.uid);
    pod.terminal = true;
    pod.rejected_by_kubelet = s.b % 2 == 0;
    driver_.add(pod);
  }
  void resize_pod(const Step& s) {
    const auto at = pods_.find(pod_uid(s.a));
    if (at == pods_.end()) return;
    at->second = with_spec(at->second, [&](auto& spec) { spec.requests.set("cpu", s.b % 2 == 0 ? 50 : s.c * 40); });
    if (at->second.node_name.empty() || shown_.contains(at->first)) driver_.add(at->second);
  }
  void put_namespace(int which, int what) {
    const std::string name = std::string("ns") + static_cast<char>('0' + which % 3);
    namespaces_[name] = {name, static_cast<model::Placement>(what % 3), {}};
    namespaces_[name].protects_pods = what / 12 % 2 > 0;
    if (what / 3 % 2 > 0) namespaces_[name].labels.set("team", what / 6 % 2 > 0 ? "red" : "blue");
    driver_.apply(namespaces_[name]);
  }

  void succeed(const std::string& uid) {
    pods_.at(uid).node_name = driver_.outstanding().at(uid);
    driver_.bind_progress(uid, BindOutcome::kSucceeded);
  }
  void end_bind(int which, BindOutcome outcome) {
    const std::string uid = pod_uid(which);
    if (!driver_.outstanding().contains(uid)) {
      // A late report about a bind that the watch, or a deletion, has settled; one of success cannot come without a
      // bind.
      if (outcome != BindOutcome::kSucceeded) driver_.bind_progress(uid, outcome);
    } else if (outcome == BindOutcome::kSucceeded) {
      succeed(uid);
    } else {
      driver_.bind_progress(uid, outcome);
    }
  }
  void put_budget(const Step& s) {
    model::DisruptionBudget budget;
    budget.namespace_name = std::string("ns") + static_cast<char>('0' + s.a % 3);
    budget.name = "budget" + std::to_string(s.a / 3 % 2);
    if (s.b % 3 > 0)
      budget.pods.requirements = {{"app", model::NodeSelectorOperator::kIn, {s.b % 3 == 1 ? "web" : "db"}}};
    budget.allowed = s.c % 3;
    budgets_[budget.key()] = budget;
    driver_.apply(BudgetUpserted{budget});
  }
  void drop_budget(int which) {
    if (budgets_.empty()) return;
    const auto at = std::next(budgets_.begin(), which % static_cast<int>(budgets_.size()));
    const std::string key = at->first;
    budgets_.erase(at);
    driver_.apply(BudgetDeleted{key});
  }
  // A pod that was told to leave is seen to be leaving, or gone, or may stay.
  void go_on_evicting(const Step& s) {
    std::vector<std::string> leaving;
    for (const auto& [uid, pod] : pods_)
      if (const PodSlot slot = driver_.state().find_pod(uid); slot.valid() && driver_.state().pod(slot).evicting)
        leaving.push_back(uid);
    if (leaving.empty()) return;
    const std::string uid = leaving[static_cast<size_t>(s.a) % leaving.size()];
    if (s.b % 4 == 0) return driver_.apply(EvictionFailed{uid});
    if (s.b % 4 == 1) return drop_pod(uid);
    pods_.at(uid).terminating = true;
    if (pods_.at(uid).node_name.empty() || shown_.contains(uid)) driver_.add(pods_.at(uid));
  }
  // The watch shows the pod; `stale`: as it was before its bind.
  void echo(const std::string& uid, bool stale) {
    const auto at = pods_.find(uid);
    if (at == pods_.end()) return;
    if (!stale) return seen(at->second);
    model::Pod pod = at->second;
    if (shown_.contains(uid)) return;
    pod.node_name.clear();
    driver_.add(pod);
  }
  // A list; `old`: from before the binds that the watch has not shown yet.
  void replace_pods(bool old) {
    PodsReplaced list;
    for (const auto& [uid, pod] : pods_) {
      list.pods.push_back(pod);
      if (old && !shown_.contains(uid)) list.pods.back().node_name.clear();
      else shown_.insert(uid);
    }
    driver_.apply(list);
  }
  void bounded_cycle(const Step& s) {
    CycleLimits limits;
    limits.work = s.a % 16;
    if (s.b % 2 == 0) limits.max_binds = s.b / 2 % 4;
    if (s.c % 2 == 0) limits.max_reports = s.c / 2 % 4;
    cycle(Duration::millis(s.c), limits);
  }

  Driver driver_;
  std::map<std::string, model::Node> nodes_;
  std::map<std::string, model::Pod> pods_;
  std::set<std::string> shown_;  // pods whose binding, if any, the watch has shown
  std::map<std::string, NamespaceUpserted> namespaces_;
  std::map<std::string, model::DisruptionBudget> budgets_;
  std::vector<Decision> log_;
};

}  // namespace berth::engine::testing
