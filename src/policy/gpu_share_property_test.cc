// Properties of shared GPUs over random histories of nodes, whole pods and shares: no device is given beyond what it
// has, nobody waits who fits somewhere by the books kept here, and what the engine kept from before is what a fresh one
// makes of the facts. BERTH_LONG=1 runs twenty times as many.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "base/rng.h"
#include "base/testing.h"
#include "engine/testing.h"
#include "policy/registry.h"

namespace berth::policy {
namespace {

using namespace berth::engine;
using namespace berth::engine::testing;

constexpr int64_t kGiB = int64_t{1} << 30;
constexpr double kOne = 1 + 1e-9;  // a whole device; the parts that occur here differ by more

// What is taken of a node, summed up from its pods, and from what its agent says.
struct Books {
  int64_t taken = 0;  // of the resource, open devices and those of strangers included
  int64_t kept = 0;   // the same once those have left who are told to
  std::map<int32_t, double> devices;
  std::map<int32_t, double> stay;     // of them, what those have who stay
  std::set<int32_t> stay_or_come;     // with those of promised shares
  std::vector<double> come;           // promised shares
  std::vector<int64_t> of_one;        // replicas that each share takes of one device
  model::DeviceSet whole = 0;         // that pods have whole
  model::DeviceSet leaves_whole = 0;  // of them, that those have who leave
  model::DeviceSet strangers = 0;     // that the agent gives to pods that are not bound there, or ask for no GPU

  Books(const State& state, const NodeState& node, bool with_nominees) {
    for (const PodSlot slot : node.pods) {
      const PodState& pod = state.pod(slot);
      if (!with_nominees && pod.phase == PodPhase::kNominated) continue;
      const int64_t asked = pod.pod.spec->requests.get(node.node.gpus.resource);
      double part = part_of(pod.pod.spec->gpu_share, node.node.gpus);
      const bool measured = part > 0 && part <= kOne;
      if (!measured) part = 1;  // whoever bound it
      const bool comes = pod.phase == PodPhase::kNominated, leaves = !comes && (pod.evicting || pod.pod.terminating);
      taken += asked;
      kept += leaves ? 0 : asked;
      if (node.node.gpus.sharing == model::GpuSharing::kReplicas && pod.pod.spec->gpu_share.asked()) {
        taken += measured ? std::max(asked, replicas_of(part, node.node.gpus)) - asked : node.node.gpus.replicas;
        of_one.push_back(measured ? replicas_of(part, node.node.gpus) : node.node.gpus.replicas);
      }
      if (pod.devices.device >= 0) {
        devices[pod.devices.device] += part;
        if (!leaves) stay_or_come.insert(pod.devices.device);
        if (comes) come.push_back(part);
        else if (!leaves) stay[pod.devices.device] += part;
      }
      whole |= pod.devices.whole;
      if (leaves) leaves_whole |= pod.devices.whole;
    }
    strangers = strangers_of(state, node);
    taken += static_cast<int64_t>(devices.size()) + std::popcount(strangers);
    kept += static_cast<int64_t>(stay_or_come.size()) + std::popcount(strangers);
  }

  static model::DeviceSet strangers_of(const State& state, const NodeState& node) {
    model::DeviceSet out = 0;
    for (size_t i = 0; i < node.node.devices.devices.size(); ++i) {
      const model::GpuDevice& device = node.node.devices.devices[i];
      if (device.pods.empty() || is_ill(node.node, static_cast<int32_t>(i))) continue;
      const bool known = std::ranges::any_of(node.pods, [&](PodSlot slot) {
        const PodState& pod = state.pod(slot);
        const bool asks = pod.pod.spec->gpu_share.asked() || pod.pod.spec->requests.get("nvidia.com/gpu") > 0 ||
                          pod.pod.spec->requests.get("nvidia.com/gpu.shared") > 0;
        return asks && may_be_listed(pod) && std::ranges::count(device.pods, pod.pod.full_name()) > 0;
      });
      if (!known) out |= model::DeviceSet{1} << i;
    }
    return out;
  }
  // Whether shares can lie so that each is on one device, tried share by share; `rooms`: of the devices.
  static bool lie(const std::vector<int64_t>& shares, size_t first, std::vector<int64_t> rooms) {
    if (first == shares.size()) return true;
    for (int64_t& room : rooms) {
      if (room < shares[first]) continue;
      room -= shares[first];
      if (lie(shares, first + 1, rooms)) return true;
      room += shares[first];
    }
    return false;
  }
  bool lies(const model::Node& node, std::optional<int64_t> more) const {
    std::vector<int64_t> shares = of_one, rooms;
    if (more) shares.push_back(*more);
    std::ranges::sort(shares, std::greater<>());
    for (int64_t left = node.allocatable.get(node.gpus.resource); left > 0; left -= node.gpus.replicas)
      rooms.push_back(std::min(left, node.gpus.replicas));
    return lie(shares, 0, rooms);
  }
  // Whether all that is promised has room once those have left who are told to.
  bool keeps_promises(const model::Node& node) const {
    constexpr double kUnits = 1e6;
    std::vector<int64_t> shares, rooms;
    for (const double part : come) shares.push_back(static_cast<int64_t>(part * kUnits));
    for (const auto& [device, used] : stay)
      rooms.push_back(takes_shares(node, device, leaves_whole) ? std::llround((kOne - used) * kUnits) : 0);
    const auto beside = kept - static_cast<int64_t>(stay_or_come.size()) + static_cast<int64_t>(stay.size());
    const int64_t idle = node.allocatable.get(node.gpus.resource) - beside;
    rooms.insert(rooms.end(), static_cast<size_t>(std::max<int64_t>(idle, 0)), std::llround(kUnits));
    std::ranges::sort(shares, std::greater<>());
    return idle >= 0 && lie(shares, 0, rooms);
  }
  bool takes_shares(const model::Node& node, int32_t device, model::DeviceSet left = 0) const {
    return !is_ill(node, device) && (((whole & ~left) | strangers) >> device & 1) == 0;
  }

  // Of a device; 0: not known.
  static double part_of(const model::GpuShare& share, const model::NodeGpus& gpus) {
    if (share.memory_bytes == 0) return static_cast<double>(share.micros) / 1e6;
    if (gpus.memory_bytes == 0) return 0;
    return static_cast<double>(share.memory_bytes) / static_cast<double>(gpus.memory_bytes);
  }
  static int64_t replicas_of(double part, const model::NodeGpus& gpus) {
    return static_cast<int64_t>(std::ceil(part * static_cast<double>(gpus.replicas) - 1e-9));
  }
  static bool is_ill(const model::Node& node, int32_t device) {
    const auto& listed = node.devices.devices;
    if (listed.empty()) return false;
    if (device >= std::ssize(listed)) return true;
    return !listed[static_cast<size_t>(device)].unhealthy.empty() || listed[static_cast<size_t>(device)].mig_enabled;
  }
  // `there`: the same without those who are only promised room. Beside promises a share may join one that stays, where
  // all of them are kept all the same.
  bool fits(const model::SchedulingSpec& spec, const model::Node& node, const Books& there) const {
    const model::NodeGpus& gpus = node.gpus;
    const int64_t all = node.allocatable.get(gpus.resource), asked = spec.requests.get(gpus.resource);
    for (const auto& [name, amount] : spec.requests)
      if (amount > 0 && name != gpus.resource && model::is_gpu_resource(name)) return false;
    if (asked > 0 && taken + asked > all) return false;
    if (!spec.gpu_share.asked()) return true;
    const double part = part_of(spec.gpu_share, gpus);
    if (gpus.resource.empty() || part <= 0 || part > kOne) return false;
    if (gpus.sharing == model::GpuSharing::kReplicas)
      return taken + std::max(asked, replicas_of(part, gpus)) <= all && lies(node, replicas_of(part, gpus));
    if (gpus.sharing == model::GpuSharing::kNone) return false;
    const bool joins = taken > all && there.taken <= all && kept <= all;
    for (const auto& [device, used] : devices)
      if (used + part <= kOne && (joins ? stay.contains(device) : taken <= all) && takes_shares(node, device))
        return true;
    return taken + 1 <= all;
  }
};

class ShareHistory {
 public:
  ShareHistory(uint64_t seed, bool priorities)
      : rng_(seed), priorities_(priorities), driver_(default_policies(), {.preemption_retry = Duration{}}) {
    for (int i = 0; i < 3; ++i) put_node();
  }

  void step() {
    switch (rng_.below(12)) {
      case 0: return put_node();
      case 1: return drop_node();
      case 2: return bind_by_others();
      case 3: return drop_pod();
      case 4: return relist();
      case 5:
      case 6: return end_bind();
      case 7:
      case 8: return cycle();
      default: return put_pod();
    }
  }
  size_t compared() const { return compared_; }
  void calm() {
    for (int i = 0; i < 12; ++i) {
      while (!driver_.outstanding().empty()) end_bind();
      let_go();
      cycle();
    }
    EXPECT_TRUE(driver_.outstanding().empty());
  }
  // Nobody waits who fits. A pod that has lost its turn to a nominee's room does not fit, either.
  void expect_nobody_waits_in_vain() const {
    const State& state = driver_.state();
    for (const PodSlot slot : state.pods()) {
      const PodState& pod = state.pod(slot);
      if (pod.phase != PodPhase::kPending) continue;
      for (const auto& [name, node] : state.nodes_by_name())
        if (const NodeState& seen = state.node(node); seen.present) {
          EXPECT_FALSE(Books(state, seen, true).fits(*pod.pod.spec, seen.node, Books(state, seen, false)))
              << pod.pod.name << " fits on " << name;
        }
    }
  }
  void expect_same_as_fresh() {
    const State& state = driver_.state();
    // Whoever comes anew cannot know that a list is older than a pod that it names.
    if (std::ranges::any_of(state.pods(), [&](PodSlot slot) { return state.pod(slot).listed_before; })) return;
    Driver fresh(default_policies());
    PodsReplaced pods;
    for (const auto& [uid, pod] : pods_) pods.pods.push_back(pod);
    fresh.apply(pods);
    NodesReplaced nodes;
    for (const auto& [name, node] : nodes_) nodes.nodes.push_back(node);
    fresh.apply(nodes);
    const CycleResult result = fresh.cycle(Duration::seconds(1));
    for (const Decision& decision : result.decisions)
      EXPECT_NE(decision.kind, DecisionKind::kBind) << decision.pod_name;
    for (const auto& [name, slot] : fresh.state().nodes_by_name()) {
      // Shares whose devices are guessed may lie in fewer devices than somebody finds who sees them all at once.
      const NodeView seen = fresh.state().view(slot), kept = state.view(state.find_node(name));
      if (state.find_node(name).valid() && seen.free(seen.share_resource()) < 0 &&
          kept.free(kept.share_resource()) >= 0)
        return;
    }
    EXPECT_EQ(fresh.state().hash(), state.hash());
  }

 private:
  void put_node() {
    static constexpr int64_t kMemory[] = {0, 16, 24};
    const std::string name = "n" + std::to_string(rng_.below(3));
    model::Node node = make_node(name);
    model::NodeGpus& gpus = node.gpus;
    const auto count = static_cast<int64_t>(1 + rng_.below(3));
    gpus.memory_bytes = kMemory[rng_.below(3)] * kGiB;
    gpus.resource = rng_.chance(80) ? "nvidia.com/gpu" : "nvidia.com/gpu.shared";
    const auto kind = rng_.below(10);
    gpus.sharing = kind < 6   ? model::GpuSharing::kDevices
                   : kind < 9 ? model::GpuSharing::kReplicas
                              : model::GpuSharing::kNone;
    if (gpus.sharing == model::GpuSharing::kReplicas) gpus.replicas = static_cast<int64_t>(2 + rng_.below(4));
    else gpus.resource = "nvidia.com/gpu";
    if (rng_.chance(10)) gpus = {};
    else node.allocatable.set(gpus.resource, count * gpus.replicas - (rng_.chance(20) ? gpus.replicas / 2 : 0));
    if (gpus.sharing == model::GpuSharing::kDevices && gpus.resource == "nvidia.com/gpu" && rng_.chance(60))
      list_devices(node, static_cast<uint32_t>(count));
    nodes_[name] = node;
    driver_.add(node);
  }
  void list_devices(model::Node& node, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      model::GpuDevice device;
      device.uuid = "GPU-" + std::to_string((i + 1) % count);
      device.numa_node = static_cast<int32_t>(rng_.below(2));
      device.pcie_root = "r" + std::to_string(rng_.below(2));
      if (rng_.chance(20)) device.unhealthy = "XID 79";
      if (rng_.chance(30)) device.pods.push_back("default/p" + std::to_string(rng_.below(12)));
      node.devices.devices.push_back(device);
    }
    if (rng_.chance(20)) {  // kubelet does not count it, and it has the first number
      node.devices.devices.insert(node.devices.devices.begin(), model::GpuDevice{});
      node.devices.devices.front().uuid = "GPU-mig";
      node.devices.devices.front().mig_enabled = true;
    } else if (count > 1 && rng_.chance(50)) {
      node.devices.devices[0].nvlinks = {{count - 1, 4}};
      node.devices.devices[count - 1].nvlinks = {{0, 4}};
    }
    node.capacity.set("nvidia.com/gpu", count);
    node.allocatable.set("nvidia.com/gpu", std::popcount(model::whole_devices(node.devices)));
  }
  void drop_node() {
    const std::string name = "n" + std::to_string(rng_.below(3));
    nodes_.erase(name);
    driver_.apply(NodeDeleted{name});
  }
  void put_pod() {
    static constexpr int64_t kMicros[] = {200'000, 250'000, 333'333, 500'000, 700'000, 1'000'000};
    model::Pod pod = make_pod("p" + std::to_string(rng_.below(12)));
    if (pods_.contains(pod.uid)) return;
    pod = with_spec(pod, [&](model::SchedulingSpec& spec) {
      const auto kind = rng_.below(8);
      if (kind < 2) spec.requests.set("nvidia.com/gpu", static_cast<int64_t>(1 + kind));
      else if (kind < 6) spec.gpu_share.micros = kMicros[rng_.below(6)];
      else spec.gpu_share.memory_bytes = static_cast<int64_t>(4 + 4 * rng_.below(5)) * kGiB;
      if (kind == 5) spec.requests.set("nvidia.com/gpu.shared", 1);
    });
    if (priorities_) pod.priority = static_cast<int32_t>(rng_.below(3));
    pods_[pod.uid] = pod;
    driver_.add(pod);
  }
  void drop_pod() {
    const std::string uid = "uid-p" + std::to_string(rng_.below(12));
    pods_.erase(uid);
    driver_.apply(PodDeleted{uid});
  }
  void bind_by_others() {
    const auto at = pods_.find("uid-p" + std::to_string(rng_.below(12)));
    if (at == pods_.end() || !at->second.node_name.empty() || driver_.outstanding().contains(at->first)) return;
    at->second.node_name = "n" + std::to_string(rng_.below(4));
    at->second.gpu_devices.clear();
    if (const uint64_t device = rng_.below(4); device > 0) at->second.gpu_devices.push_back(std::to_string(device - 1));
    driver_.add(at->second);
  }
  void relist() {
    PodsReplaced list;
    for (const auto& [uid, pod] : pods_) list.pods.push_back(pod);
    driver_.apply(list);
  }
  void end_bind() {
    if (driver_.outstanding().empty()) return;
    const auto [uid, node] = *driver_.outstanding().begin();
    if (rng_.chance(20)) return driver_.bind_progress(uid, BindOutcome::kFailed);
    pods_.at(uid).node_name = node;
    const engine::DeviceNames given = driver_.state().devices_of(driver_.state().find_pod(uid));
    pods_.at(uid).gpu_devices.clear();
    for (size_t i = 0; i < given.numbers.size(); ++i)
      pods_.at(uid).gpu_devices.push_back(given.uuids.empty() ? std::to_string(given.numbers[i]) : given.uuids[i]);
    driver_.bind_progress(uid, BindOutcome::kSucceeded);
    driver_.add(pods_.at(uid));
  }
  void let_go() {
    std::vector<std::string> leaving;
    for (const auto& [uid, pod] : pods_)
      if (driver_.state().pod(driver_.state().find_pod(uid)).evicting) leaving.push_back(uid);
    for (const std::string& uid : leaving) {
      pods_.erase(uid);
      driver_.apply(PodDeleted{uid});
    }
  }
  std::set<std::string> nodes_that_keep_promises() const {
    std::set<std::string> out;
    const State& state = driver_.state();
    for (const auto& [name, slot] : state.nodes_by_name()) {
      const NodeState& node = state.node(slot);
      if (!node.present || node.node.gpus.sharing != model::GpuSharing::kDevices) continue;
      if (Books(state, node, true).keeps_promises(node.node)) out.insert(name);
    }
    return out;
  }
  void cycle() {
    const std::set<std::string> before = nodes_that_keep_promises();
    const CycleResult result = driver_.cycle(Duration::seconds(11));
    const std::set<std::string> after = nodes_that_keep_promises();
    EXPECT_TRUE(std::ranges::includes(after, before)) << "a promise is broken";
    const State& state = driver_.state();
    if (!result.unfinished) expect_nobody_waits_in_vain();
    for (const Decision& decision : result.decisions) {
      if (decision.kind != DecisionKind::kBind) continue;
      const NodeState& node = state.node(state.find_node(decision.node_name));
      const PodState& pod = state.pod(state.find_pod(decision.pod_uid));
      const Books books(state, node, false);
      EXPECT_EQ(decision.devices, pod.devices) << decision.pod_name;
      if (pod.pod.spec->gpu_share.asked()) {
        EXPECT_TRUE(pod.devices.device < 0 || books.takes_shares(node.node, pod.devices.device)) << decision.pod_name;
      } else {
        expect_own_devices(result, decision, node);
      }
      EXPECT_TRUE(pod.devices.device < 0 || books.devices.at(pod.devices.device) <= kOne) << decision.pod_name;
      if (pod.devices.replicas > 0) {
        EXPECT_TRUE(books.lies(node.node, {})) << decision.pod_name << " needs two devices";
      }
      const bool asks = pod.pod.spec->gpu_share.asked() || pod.pod.spec->requests.get(node.node.gpus.resource) > 0;
      const int64_t whole = node.node.allocatable.get(node.node.gpus.resource);
      EXPECT_TRUE(!asks || books.taken <= whole) << decision.pod_name;
    }
  }

  // Whole devices are as many as asked for, healthy, nobody else's, and those that go best together.
  void expect_own_devices(const CycleResult& result, const Decision& decision, const NodeState& node) {
    const State& state = driver_.state();
    const PodSlot slot = state.find_pod(decision.pod_uid);
    const PodState& pod = state.pod(slot);
    const int64_t asked = pod.pod.spec->requests.get("nvidia.com/gpu");
    if (node.node.devices.devices.empty() || asked == 0) {
      EXPECT_EQ(decision.devices.whole, 0U) << decision.pod_name;
      return;
    }
    const model::DeviceSet own = decision.devices.whole;
    model::DeviceSet others = Books::strangers_of(state, node);
    bool guesses = false;
    for (const PodSlot other : node.pods) {
      if (other == slot) continue;
      others |= state.pod(other).devices.whole;
      if (state.pod(other).devices.device >= 0) others |= model::DeviceSet{1} << state.pod(other).devices.device;
      guesses |= state.pod(other).devices.guessed;
    }
    const model::DeviceSet healthy = model::whole_devices(node.node.devices);
    EXPECT_EQ(std::popcount(own), asked) << decision.pod_name;
    EXPECT_EQ(own & others, 0U) << decision.pod_name;
    EXPECT_EQ(own & ~healthy, 0U) << decision.pod_name;
    const auto here = std::ranges::count_if(result.decisions, [&](const Decision& d) {
      return d.kind == DecisionKind::kBind && d.node_name == decision.node_name;
    });
    if (here > 1 || guesses) return;
    EXPECT_EQ(own, model::DeviceTopology(node.node.devices).choose(healthy & ~others, static_cast<int>(asked)));
    ++compared_;
  }

  Rng rng_;
  bool priorities_;
  size_t compared_ = 0;
  Driver driver_;
  std::map<std::string, model::Node> nodes_;
  std::map<std::string, model::Pod> pods_;
};

void play(bool priorities) {
  const uint64_t histories = histories_to_play(1'000, 20'000);
  size_t compared = 0;  // choices of whole devices
  for (uint64_t seed = 1; seed <= histories && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ShareHistory history(seed, priorities);
    for (int i = 0; i < 60; ++i) history.step();
    history.calm();
    history.expect_nobody_waits_in_vain();
    if (!priorities) history.expect_same_as_fresh();
    compared += history.compared();
  }
  EXPECT_GT(compared, histories / 10);
}

// Shares that have to leave for more important ones on one node, until everybody has come to rest.
size_t evictions(uint64_t seed, bool listed) {
  constexpr int64_t kMicros[] = {200'000, 250'000, 300'000, 500'000, 600'000, 750'000, 1'000'000};
  Rng rng(seed);
  Driver driver(default_policies(), {.preemption_retry = Duration{}});
  const auto gpus = static_cast<int64_t>(2 + rng.below(2));
  model::Node node = make_node("n", {{"nvidia.com/gpu", gpus}});
  node.gpus = {model::GpuSharing::kDevices, "nvidia.com/gpu", 0, 1};
  node.capacity.set("nvidia.com/gpu", gpus);
  node.devices.keeps_shares = listed;
  for (int64_t i = 0; listed && i < gpus; ++i) node.devices.devices.emplace_back().uuid = "GPU-" + std::to_string(i);
  driver.add(node);
  const auto put = [&](const std::string& name, int32_t priority) {
    const int64_t micros = kMicros[rng.below(7)];
    driver.add(with_spec(with_priority(make_pod(name), priority), [&](auto& spec) { spec.gpu_share.micros = micros; }));
  };
  for (int i = 0; i < 4 + 2 * gpus; ++i) put("low" + std::to_string(i), 0);
  driver.cycle(Duration::seconds(1));
  driver.confirm();
  for (int i = 0; i < 4; ++i) put("high" + std::to_string(i), 1 + static_cast<int32_t>(rng.below(2)));
  size_t out = 0;
  for (int i = 0; i < 12; ++i) {
    std::vector<std::string> leaving;
    for (const Decision& decision : driver.cycle(Duration::seconds(1)).decisions)
      if (decision.kind == DecisionKind::kEvict) leaving.push_back(decision.pod_uid);
    out += leaving.size();
    driver.confirm();
    for (const std::string& uid : leaving) driver.apply(PodDeleted{uid});
  }
  return out;
}

// Which devices there are is the same, whether an agent says it or only their number is known.
TEST(GpuShareProperty, AsManyHaveToLeaveWhereAnAgentListsTheDevices) {
  size_t all = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const size_t listed = evictions(seed, true), counted = evictions(seed, false);
    EXPECT_EQ(listed, counted) << "seed " << seed;
    all += listed;
  }
  EXPECT_GT(all, 300U);
}

TEST(GpuShareProperty, NoDeviceIsOversoldAndNobodyWaitsInVain) { play(false); }
TEST(GpuShareProperty, AlsoWhereSomeHaveToLeave) { play(true); }

}  // namespace
}  // namespace berth::policy
