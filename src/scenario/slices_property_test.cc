// Pods that have to share domains, all of a set or slice by slice, over random fleets: a workload is let in exactly
// where some way to place its pods exists, whatever the scores, and its pods then stand so, also after some were lost.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "base/rng.h"
#include "base/testing.h"
#include "engine/testing.h"
#include "policy/registry.h"
#include "quota/admission.h"

namespace berth::scenario {
namespace {

using namespace berth::engine;
using namespace berth::engine::testing;

constexpr std::string_view kGpu = "nvidia.com/gpu";
constexpr const char *kBlock = "block", *kRack = "rack", *kHost = "kubernetes.io/hostname";

// Blocks of racks of hosts with a few GPUs each, some in use; weights such that scores may lead anywhere.
class Fleet {
 public:
  explicit Fleet(uint64_t seed) : rng_(seed), driver_(policies(seed)) {
    driver_.apply(QueueObjectUpserted{model::ResourceFlavor{"plain", {}, {}, {}}});
    model::ClusterQueue queue;
    queue.name = "team";
    queue.namespaces = {};
    queue.groups = {{{std::string(kGpu)}, {{"plain", {{std::string(kGpu), {1000, {}, {}}}}}}}};
    driver_.apply(QueueObjectUpserted{queue});
    driver_.apply(QueueObjectUpserted{model::LocalQueue{"default", "team", "team", model::StopPolicy::kNone}});
    const uint64_t hosts = 1 + rng_.below(8);
    for (uint64_t i = 0; i < hosts; ++i) add_host();
  }

  void run() {
    submit();
    driver_.cycle();
    driver_.cycle();
    const bool fits = can_be();
    ASSERT_EQ(admitted(), fits) << driver_.engine().admission().status(id()).message << picture();
    if (!fits) return;
    make_pods();
    check();
    for (int i = 0; i < 6 && !::testing::Test::HasFatalFailure(); ++i) {
      change();
      make_pods();
      check();
    }
  }

 private:
  static PolicySet policies(uint64_t seed) {
    PolicySet out = policy::default_policies();
    if (seed % 2 == 0)
      for (WeightedScore& score : out.scores) score.weight = score.policy->name == "pack" ? 10 : score.weight;
    return out;
  }

  void add_host() {
    const std::string name = "h" + std::to_string(hosts_made_++);
    const auto gpus = static_cast<int64_t>(1 + rng_.below(6));
    model::Node node = make_node(name, {{std::string(kGpu), gpus}});
    const std::string block = std::to_string(rng_.below(2)), rack = block + "-" + std::to_string(rng_.below(3));
    node.labels = {{kBlock, block}, {kRack, rack}, {kHost, name}};
    if (rng_.below(12) == 0) node.labels = {{kHost, name}};
    hosts_[name] = {node, gpus};
    driver_.add(node);
    if (rng_.below(3) > 0) return;
    model::Pod other = make_pod(
        "other-" + name, {{std::string(kGpu), static_cast<int64_t>(1 + rng_.below(static_cast<uint64_t>(gpus)))}});
    other.node_name = name;
    hosts_[name].free -= other.spec->requests.get(kGpu);
    driver_.add(other);
  }

  void submit() {
    const int32_t inner = 1 + static_cast<int32_t>(rng_.below(3)),
                  outer = inner * (1 + static_cast<int32_t>(rng_.below(2)));
    work_.namespace_name = "default";
    work_.name = "train";
    work_.uid = "uid-train";
    work_.owner_uid = "owner";
    work_.queue = "team";
    model::PodSet set;
    set.name = "main";
    set.count = outer * (1 + static_cast<int32_t>(rng_.below(2)));
    switch (rng_.below(5)) {
      case 0: set.slices = {{kRack, inner}}; break;
      case 1: set.slices = {{kHost, inner}}; break;
      case 2: set.slices = {{kBlock, outer}, {kRack, inner}}; break;
      case 3: set.slices = {{kRack, outer}, {kHost, inner}}; break;
      default: break;
    }
    if (set.slices.empty() || rng_.below(3) == 0) required_ = rng_.below(2) == 0 ? kBlock : kRack;
    gpus_ = static_cast<int64_t>(1 + rng_.below(2));
    set.requests.set(std::string(kGpu), gpus_);
    auto spec = std::make_shared<model::SchedulingSpec>(*make_pod("any", set.requests).spec);
    if (!required_.empty()) {
      model::PodAffinityTerm term;
      term.peers.namespaces = {"default"};
      term.peers.pods.requirements = {{"owner UID", model::NodeSelectorOperator::kIn, {"owner"}}};
      term.topology_key = required_;
      term.gathers = true;
      spec->peers.affinity.push_back(term);
      set.labels = std::make_shared<const model::Labels>(model::Labels{{"owner UID", "owner"}});
    }
    set.spec = spec;
    numbered_ = rng_.below(2) == 0;
    work_.pod_sets = {set};
    driver_.apply(WorkloadUpserted{work_});
  }

  quota::WorkloadId id() const { return driver_.engine().admission().find(work_.uid); }
  bool admitted() const { return driver_.engine().admission().status(id()).phase == quota::WorkloadPhase::kAdmitted; }
  std::string domain(const std::string& host, const std::string& key) const {
    const std::string* value = hosts_.at(host).node.labels.find(key);
    return value == nullptr ? "" : *value;
  }

  // Every way to put pod after pod on some host, as long as those that share a slice, or all, share a domain.
  bool can_be() const {
    const model::PodSet& set = work_.pod_sets.front();
    std::vector<std::pair<std::string, int32_t>> layers;
    if (!required_.empty()) layers.emplace_back(required_, set.count);
    for (const model::SliceLayer& layer : set.slices) layers.emplace_back(layer.key, layer.size);
    std::map<std::string, int64_t> free;
    for (const auto& [name, host] : hosts_) free[name] = host.free / gpus_;
    std::vector<std::string> at;
    std::set<std::pair<size_t, std::string>> failed;  // how many are placed, and what is left then
    const std::function<bool()> place = [&] {
      if (std::ssize(at) == set.count) return true;
      const auto number = static_cast<int32_t>(at.size());
      std::string left;
      for (const auto& [name, room] : free) left += std::to_string(room) + ",";
      for (const auto& [key, size] : layers) {
        const int32_t first = number - number % size;
        left += first == number ? ";" : ";" + domain(at[static_cast<size_t>(first)], key);
      }
      if (failed.contains({at.size(), left})) return false;
      for (auto& entry : free) {
        const std::string& name = entry.first;
        int64_t& room = entry.second;
        const bool allowed = room > 0 && std::ranges::all_of(layers, [&](const auto& layer) {
                               const int32_t first = number / layer.second * layer.second;
                               return !domain(name, layer.first).empty() &&
                                      (first == number || domain(at[static_cast<size_t>(first)], layer.first) ==
                                                              domain(name, layer.first));
                             });
        if (!allowed) continue;
        --room;
        at.push_back(name);
        if (place()) return true;
        at.pop_back();
        ++room;
      }
      failed.insert({at.size(), left});
      return false;
    };
    return place();
  }

  // Those that lack; a pod with a number has that of one that has gone.
  void make_pods() {
    const model::PodSet& set = work_.pod_sets.front();
    for (int32_t number = 0; number < set.count; ++number) {
      if (pods_.contains(number)) continue;
      model::Pod pod = make_pod("train-" + std::to_string(pods_made_++));
      pod.spec = set.spec;
      pod.labels = set.labels;
      pod.owner_uid = "owner";
      pod.workload = work_.full_name();
      pod.pod_set = "main";
      if (numbered_) pod.index = number;
      pods_[number] = pod;
      driver_.add(pod);
    }
    for (int i = 0; i < 4; ++i) {
      driver_.cycle();
      driver_.confirm();
    }
  }

  // A pod ends, or a host is lost or comes.
  void change() {
    if (const uint64_t what = rng_.below(4); what == 0 && hosts_.size() > 1) {
      const std::string name = std::next(hosts_.begin(), static_cast<std::ptrdiff_t>(rng_.below(hosts_.size())))->first;
      for (auto at = pods_.begin(); at != pods_.end();) {
        const bool gone = driver_.node_of(at->second.name) == name;
        if (gone) driver_.apply(PodDeleted{at->second.uid});
        at = gone ? pods_.erase(at) : std::next(at);
      }
      if (driver_.state().find_pod("uid-other-" + name).valid()) driver_.apply(PodDeleted{"uid-other-" + name});
      driver_.apply(NodeDeleted{name});
      hosts_.erase(name);
    } else if (what == 1) {
      add_host();
    } else if (!pods_.empty()) {
      const auto at = std::next(pods_.begin(), static_cast<std::ptrdiff_t>(rng_.below(pods_.size())));
      driver_.apply(PodDeleted{at->second.uid});
      pods_.erase(at);
    }
  }

  // By slot for pods without a number, whose slices are those that the engine gave them: then each domain that is not
  // the last has whole slices, as far as all are there.
  void check() const {
    ASSERT_TRUE(admitted());
    const model::PodSet& set = work_.pod_sets.front();
    std::map<int32_t, std::string> at;
    for (const auto& [number, pod] : pods_)
      if (const std::string node = driver_.node_of(pod.name); !node.empty()) at[number] = node;
    const auto one_domain = [&](const std::string& key, int32_t size) {
      std::map<int32_t, std::set<std::string>> seen;
      for (const auto& [number, host] : at) seen[number / size].insert(domain(host, key));
      return std::ranges::all_of(seen, [](const auto& slice) { return slice.second.size() == 1; });
    };
    ASSERT_TRUE(required_.empty() || one_domain(required_, set.count)) << picture();
    for (const model::SliceLayer& layer : set.slices) {
      ASSERT_TRUE(!numbered_ || one_domain(layer.key, layer.size)) << layer.key << " " << layer.size << picture();
      if (std::ssize(at) < set.count) continue;
      std::map<std::string, int32_t> pods;
      for (const auto& [number, host] : at) ++pods[domain(host, layer.key)];
      for (const auto& [value, count] : pods) ASSERT_EQ(count % layer.size, 0) << layer.key << value << picture();
    }
  }

  std::string picture() const {
    std::string out = "; " + std::to_string(work_.pod_sets.front().count) + " pods of " + std::to_string(gpus_) +
                      ", required " + required_;
    for (const model::SliceLayer& layer : work_.pod_sets.front().slices)
      out += ", " + std::to_string(layer.size) + " by " + layer.key;
    for (const auto& [name, host] : hosts_)
      out += "; " + name + " rack " + domain(name, kRack) + ": " + std::to_string(host.free);
    for (const auto& [number, pod] : pods_)
      out += "; " + std::to_string(number) + " " + pod.name + " at " + driver_.node_of(pod.name);
    return out;
  }

  struct Host {
    model::Node node;
    int64_t free = 0;  // GPUs, when nothing of the workload is there
  };
  Rng rng_;
  Driver driver_;
  std::map<std::string, Host> hosts_;
  model::Workload work_;
  std::string required_;  // a key that all pods share a domain of
  int64_t gpus_ = 1;
  bool numbered_ = false;
  std::map<int32_t, model::Pod> pods_;
  int hosts_made_ = 0, pods_made_ = 0;
};

TEST(SlicesProperty, AWorkloadStartsWhereThereIsAWayAndStandsSo) {
  const uint64_t fleets = histories_to_play(600, 20'000);
  for (uint64_t seed = 1; seed <= fleets; ++seed) {
    SCOPED_TRACE(seed);
    ASSERT_NO_THROW(Fleet(seed).run());
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace berth::scenario
