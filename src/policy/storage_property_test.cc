// Properties of the engine over random histories of claims, volumes, classes and limits: what was kept from what came
// before must say what a fresh engine says. BERTH_LONG=1 runs twenty times as many.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/testing.h"
#include "engine/testing.h"
#include "policy/registry.h"

namespace berth::policy {
namespace {

using namespace berth::engine;
using namespace berth::engine::testing;

// Plays the API server, the volume controller and the binder around one engine. Storage comes and goes at any time,
// and both sides of a binding are shown in any order.
class StorageHistory {
 public:
  explicit StorageHistory(uint64_t seed) : rng_(seed), driver_(default_policies(), kAtOnce) {
    for (int i = 0; i < 3; ++i) put_node();
  }

  void step() {
    switch (rng_.below(18)) {
      case 0: return put_node();
      case 1: return drop_node();
      case 2: return put(a_class());
      case 3: return put(a_claim());
      case 4: return put(a_volume());
      case 5: return put(limits());
      case 6: return put(model::StorageDriver{"csi", rng_.chance(80)});
      case 7:
      case 15: return put(capacity());
      case 8: return drop_any();
      case 9: return bind_some_claim();
      case 10: return relist();
      case 11: return drop_pod();
      case 12: return end_bind(rng_.chance(70));
      case 13: return void(cycle(Duration::millis(300), {.work = rng_.between(0, 6)}));
      case 14: return void(cycle(Duration::seconds(1)));
      default: return put_pod();
    }
  }
  // Ends all binds well, until nothing is decided any more and everybody has been told.
  void calm() {
    while (!driver_.outstanding().empty()) end_bind(true);
    for (int i = 0; cycle(Duration::seconds(i == 0 ? 400 : 31)); ++i) {
      ASSERT_LT(i, 40);
      while (!driver_.outstanding().empty()) end_bind(true);
    }
    cycle(Duration::seconds(31));
    for (const auto& [uid, pod] : pods_) driver_.add(pod);
  }
  // Tells another engine of everything as it is now.
  void tell(Driver& out) const {
    for (const auto& [place, object] : storage_) out.apply(StorageUpserted{object});
    PodsReplaced pods;
    for (const auto& [uid, pod] : pods_) pods.pods.push_back(pod);
    out.apply(pods);
    NodesReplaced nodes;
    for (const auto& [name, node] : nodes_) nodes.nodes.push_back(node);
    out.apply(nodes);
  }

  Driver& driver() { return driver_; }
  const std::map<std::string, model::Pod>& pods() const { return pods_; }
  const std::map<std::string, std::string>& told() const { return told_; }
  int binds() const { return binds_; }
  int chosen() const { return chosen_; }

 private:
  using Place = std::pair<model::StorageKind, std::string>;

  std::string pick(std::initializer_list<const char*> names) { return *(names.begin() + rng_.below(names.size())); }
  std::string zone() { return pick({"x", "y"}); }
  static std::vector<model::NodeSelectorTerm> in_zone(const std::string& zone) {
    return {{{{"zone", model::NodeSelectorOperator::kIn, {zone}}}, {}}};
  }

  void put_node() {
    const std::string name = pick({"na", "nb", "nc", "nd"});
    model::Node node = make_node(name, {{"pods", rng_.between(1, 3)}});
    if (rng_.chance(80)) node.labels.set("zone", zone());
    nodes_[name] = node;
    driver_.add(node);
  }
  void drop_node() {
    const std::string name = pick({"na", "nb", "nc", "nd"});
    nodes_.erase(name);
    driver_.apply(NodeDeleted{name});
  }
  model::StorageObject a_class() {
    model::StorageClass out;
    out.name = pick({"local", "made", "now"});
    out.provisioner = out.name == "local" ? "kubernetes.io/no-provisioner" : "csi";
    out.waits_for_consumer = out.name != "now";
    if (out.name == "made" && rng_.chance(30)) out.allowed_topologies = in_zone(zone());
    return out;
  }
  model::StorageObject a_claim() {
    model::VolumeClaim out;
    out.namespace_name = "default";
    out.name = pick({"c0", "c1", "c2", "c3"});
    const model::VolumeClaim* before = find<model::VolumeClaim>(out.key());
    if (before != nullptr && before->bound()) return *before;  // a bound claim stays bound
    out.uid = before != nullptr ? before->uid : "uid-" + std::to_string(++claims_made_);
    out.storage_class = pick({"local", "made", "made", "now"});
    out.bytes = rng_.between(1, 3);
    out.access_modes = rng_.chance(70) ? model::kReadWriteOnce : model::kReadWriteOncePod;
    if (out.storage_class == "made" && rng_.chance(15)) out.selected_node = pick({"na", "nb"});
    return out;
  }
  model::StorageObject a_volume() {
    model::Volume out;
    out.name = pick({"v0", "v1", "v2", "v3"});
    if (const model::Volume* known = find<model::Volume>(out.name); known != nullptr && known->claim) return *known;
    out.storage_class = pick({"local", "local", "now"});
    out.bytes = rng_.between(1, 3);
    out.access_modes = model::kReadWriteOnce | model::kReadWriteOncePod;
    out.available = true;
    if (rng_.chance(70)) out.affinity = in_zone(zone());
    if (rng_.chance(50)) out.driver = "csi", out.handle = out.name;
    return out;
  }
  model::StorageObject limits() { return model::AttachLimits{pick({"na", "nb", "nc"}), {{"csi", rng_.between(0, 2)}}}; }
  model::StorageObject capacity() {
    model::LabelSelector nodes;
    nodes.requirements = {{"zone", model::NodeSelectorOperator::kIn, {zone()}}};
    return model::StorageCapacity{"default/" + pick({"x", "y"}), "made", rng_.between(0, 3), nodes};
  }
  void put(const model::StorageObject& object) {
    storage_.insert_or_assign(Place{model::kind_of(object), model::key_of(object)}, object);
    driver_.apply(StorageUpserted{object});
  }
  void drop_any() {
    if (storage_.empty()) return;
    const auto at = std::next(storage_.begin(), static_cast<ptrdiff_t>(rng_.below(storage_.size())));
    const auto [kind, key] = at->first;
    if (kind == model::StorageKind::kClaim && in_use(key)) return;
    storage_.erase(at);
    driver_.apply(StorageDeleted{kind, key});
  }
  // A claim outlives the pods that run with it (the finalizer kubernetes.io/pvc-protection).
  bool in_use(const std::string& claim) const {
    return std::any_of(pods_.begin(), pods_.end(), [&](const auto& entry) {
      const model::Pod& pod = entry.second;
      return !pod.node_name.empty() && std::any_of(pod.spec->claims.begin(), pod.spec->claims.end(),
                                                   [&](const model::ClaimUse& use) { return use.claim == claim; });
    });
  }
  void relist() {
    const auto kind = static_cast<model::StorageKind>(rng_.below(6));
    StorageReplaced list{kind, {}};
    for (const auto& [place, object] : storage_)
      if (place.first == kind) list.objects.push_back(object);
    driver_.apply(list);
  }
  template <typename T>
  const T* find(const std::string& key) const {
    const auto at = storage_.find({model::kind_of(T{}), key});
    return at == storage_.end() ? nullptr : &std::get<T>(at->second);
  }

  // Both sides of a binding, as the server has them from now on.
  void bind_claim(model::VolumeClaim claim, const std::string& volume_name) {
    model::Volume volume = *find<model::Volume>(volume_name);
    claim.volume_name = volume_name;
    claim.bind_completed = true;
    volume.claim = {claim.key(), claim.uid};
    volume.available = false;
    const bool claim_first = rng_.chance(50);
    if (claim_first) put(claim);
    put(volume);
    if (!claim_first) put(claim);
  }
  // What the volume controller does by itself for a class that does not wait.
  void bind_some_claim() {
    for (const auto& [place, object] : std::map(storage_)) {
      const auto* claim = std::get_if<model::VolumeClaim>(&object);
      if (claim == nullptr || claim->bound() || claim->storage_class != "now") continue;
      for (const auto& [other, candidate] : std::map(storage_))
        if (const auto* volume = std::get_if<model::Volume>(&candidate);
            volume != nullptr && volume->available && volume->storage_class == "now" && volume->bytes >= *claim->bytes)
          return bind_claim(*claim, volume->name);
    }
  }

  void put_pod() {
    const std::string name = "p" + std::to_string(rng_.below(8));
    model::Pod pod = make_pod(name);
    if (const auto known = pods_.find(pod.uid); known != pods_.end()) return;
    pod.priority = static_cast<int32_t>(rng_.below(3));
    pods_[pod.uid] = with_spec(pod, [&](model::SchedulingSpec& spec) {
      std::set<std::string> claims;
      for (uint64_t i = rng_.below(3); i > 0; --i) claims.insert("default/" + pick({"c0", "c1", "c2", "c3"}));
      for (const std::string& claim : claims) spec.claims.push_back({claim, "", ""});
    });
    driver_.add(pods_[pod.uid]);
  }
  void drop_pod() {
    const std::string uid = "uid-p" + std::to_string(rng_.below(8));
    if (pods_.erase(uid) > 0) forget(uid);
  }
  void forget(const std::string& uid) {
    bindings_.erase(uid);
    told_.erase(uid);
    driver_.apply(PodDeleted{uid});
  }
  // True: not only told somebody something.
  bool cycle(Duration after, const CycleLimits& limits = {}) {
    bool acts = false;
    for (const Decision& decision : driver_.cycle(after, limits).decisions) {
      acts = acts || decision.kind != DecisionKind::kUnschedulable;
      if (decision.message) told_[decision.pod_uid] = *decision.message;
      if (decision.kind == DecisionKind::kEvict && pods_.erase(decision.pod_uid) > 0) forget(decision.pod_uid);
      if (decision.kind != DecisionKind::kBind) continue;
      bindings_[decision.pod_uid] = decision.volumes;
      ++binds_;
      chosen_ += decision.volumes.empty() ? 0 : 1;
    }
    return acts;
  }
  // The claims of the pod are bound as decided, where they are still there, and then the pod is.
  void end_bind(bool well) {
    if (driver_.outstanding().empty()) return;
    const auto [uid, node] = *driver_.outstanding().begin();
    bool possible = nodes_.contains(node);
    for (const VolumeBinding& chosen : bindings_[uid]) {
      const auto* claim = find<model::VolumeClaim>("default/" + chosen.claim);
      if (claim == nullptr || claim->bound()) possible = possible && claim != nullptr;
      else if (const std::string name = chosen.volume.empty() ? "of-" + chosen.claim : chosen.volume;
               well && possible) {
        if (chosen.volume.empty()) put(made(name, *claim, nodes_.at(node)));
        const auto* volume = find<model::Volume>(name);
        possible = volume != nullptr && (!volume->claim || volume->reserved_for(*claim));
        if (possible) bind_claim(model::VolumeClaim(*claim), name);
      }
    }
    driver_.bind_progress(uid, well && possible ? BindOutcome::kSucceeded : BindOutcome::kFailed);
    if (!well || !possible) return;
    pods_.at(uid).node_name = node;
    driver_.add(pods_.at(uid));
  }
  static model::Volume made(const std::string& name, const model::VolumeClaim& claim, const model::Node& node) {
    model::Volume out;
    out.name = name;
    out.storage_class = claim.storage_class;
    out.bytes = *claim.bytes;
    out.access_modes = claim.access_modes;
    if (const std::string* zone = node.labels.find("zone"); zone != nullptr) out.affinity = in_zone(*zone);
    out.driver = "csi";
    out.handle = name;
    return out;
  }

  Rng rng_;
  Driver driver_;
  std::map<std::string, model::Node> nodes_;
  std::map<std::string, model::Pod> pods_;
  std::map<Place, model::StorageObject> storage_;
  std::map<std::string, std::vector<VolumeBinding>> bindings_;  // by UID of pods whose bind is decided
  std::map<std::string, std::string> told_;                     // by UID, the latest verdict
  int binds_ = 0, chosen_ = 0, claims_made_ = 0;
};

TEST(StorageProperty, AfterAnyHistoryWhatPodsAreToldIsWhatAFreshEngineSays) {
  const uint64_t seeds = histories_to_play(2000, 40'000);
  uint64_t binds = 0, chosen = 0, waiting = 0;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    StorageHistory history(seed);
    for (int i = 0; i < 150; ++i) ASSERT_NO_THROW(history.step());
    history.calm();
    Driver fresh(default_policies(), kAtOnce);
    history.tell(fresh);
    fresh.cycle(history.driver().now() - fresh.now());
    ASSERT_EQ(history.driver().state().hash(), fresh.state().hash());
    for (const auto& [uid, pod] : history.pods()) {
      if (!pod.node_name.empty()) continue;
      ++waiting;
      const std::string truth = fresh.explain(uid).message;
      EXPECT_EQ(history.driver().explain(uid).message, truth);
      EXPECT_EQ(history.told().at(uid), truth);
    }
    binds += history.binds();
    chosen += history.chosen();
    if (HasFailure()) return;
  }
  EXPECT_GT(binds, seeds / 2);  // a history in which nothing happens proves nothing
  EXPECT_GT(chosen, seeds / 20);
  EXPECT_GT(waiting, seeds / 20);
}

}  // namespace
}  // namespace berth::policy
