// Claims, volumes and the engine: what a scenario cannot show, such as the middle of a bind and of a transaction.
#include <gtest/gtest.h>

#include "engine/testing.h"
#include "engine/txn.h"
#include "policy/registry.h"

namespace berth::policy {
namespace {

using namespace berth::engine;
using namespace berth::engine::testing;

model::VolumeClaim claim(const std::string& name, int64_t bytes = 1) {
  model::VolumeClaim out;
  out.namespace_name = "default";
  out.name = name;
  out.uid = "uid-" + name;
  out.storage_class = "local";
  out.bytes = bytes;
  out.access_modes = model::kReadWriteOnce;
  return out;
}

model::Volume volume(const std::string& name, const std::string& host, int64_t bytes = 1) {
  model::Volume out;
  out.name = name;
  out.storage_class = "local";
  out.bytes = bytes;
  out.access_modes = model::kReadWriteOnce;
  out.available = true;
  if (!host.empty()) out.affinity = {{{{{"kubernetes.io/hostname", model::NodeSelectorOperator::kIn, {host}}}, {}}}};
  return out;
}

model::VolumeClaim bound(model::VolumeClaim claim, std::string volume) {
  claim.volume_name = std::move(volume);
  claim.bind_completed = true;
  return claim;
}

model::Volume taken(model::Volume volume, const model::VolumeClaim& by) {
  volume.claim = {by.key(), by.uid};
  volume.available = false;
  return volume;
}

model::Pod pod_with(const std::string& name, std::vector<std::string> claims) {
  return with_spec(make_pod(name), [&](model::SchedulingSpec& spec) {
    for (std::string& each : claims) spec.claims.push_back({"default/" + each, "", ""});
  });
}

struct Volumes : ::testing::Test {
  Volumes() : driver(default_policies()) {
    for (const char* name : {"a", "b"}) driver.add(make_node(name));
    put(model::StorageClass{"local", "kubernetes.io/no-provisioner", true, {}});
  }
  void put(model::StorageObject object) { driver.apply(StorageUpserted{std::move(object)}); }
  // Claim "data", for which volume "disk" can be had on node b, and a pod on node a that others bound with it.
  void put_claim_that_a_foreign_pod_uses() {
    put(volume("disk", "b"));
    put(claim("data"));
    driver.add(bound_to(pod_with("foreign", {"data"}), "a"));
  }
  const ClaimRecord& record(const std::string& name) {
    return *driver.state().volumes().claims().at("default/" + name);
  }
  Driver driver;
};

TEST_F(Volumes, TheDecisionNamesTheVolumeThatTheClaimIsToBeBoundTo) {
  put(volume("disk", "b"));
  put(claim("data"));
  driver.add(pod_with("p", {"data"}));
  const CycleResult result = driver.cycle();
  ASSERT_EQ(result.decisions.size(), 1U);
  EXPECT_EQ(result.decisions[0].node_name, "b");
  EXPECT_EQ(result.decisions[0].volumes, (std::vector<VolumeBinding>{{"data", "uid-data", "disk"}}));
}

TEST_F(Volumes, AChosenVolumeIsFreeAgainWhenTheBindFails) {
  put(volume("disk", ""));
  put(claim("one"));
  put(claim("two"));
  driver.add(pod_with("p", {"one"}));
  driver.add(pod_with("q", {"two"}));
  driver.cycle();
  EXPECT_EQ(driver.phase_of("p"), PodPhase::kReserved);
  EXPECT_EQ(driver.phase_of("q"), PodPhase::kPending);
  driver.bind_progress("uid-p", BindOutcome::kFailed);
  EXPECT_FALSE(record("one").choice);
  driver.cycle();
  EXPECT_EQ(driver.phase_of("q"), PodPhase::kReserved);
  EXPECT_EQ(record("two").choice->volume, "disk");
}

TEST_F(Volumes, AChosenVolumeIsFreeAgainThoughAPodThatOthersBoundUsesTheClaim) {
  put_claim_that_a_foreign_pod_uses();
  driver.add(pod_with("p", {"data"}));
  ASSERT_EQ(driver.cycle().decisions.size(), 1U);
  ASSERT_TRUE(record("data").choice);
  driver.apply(PodDeleted{"uid-p"});
  EXPECT_FALSE(record("data").choice);
}

TEST_F(Volumes, AChoiceOutlivesThePodThatCarriedItOutUntilTheServerShowsIt) {
  put_claim_that_a_foreign_pod_uses();
  model::Pod pod = pod_with("p", {"data"});
  driver.add(pod);
  driver.cycle();
  pod.node_name = "b";
  driver.add(pod);  // bound; its claim is not shown yet
  driver.apply(PodDeleted{"uid-p"});
  EXPECT_TRUE(record("data").choice);
  put(bound(claim("data"), "disk"));
  put(taken(volume("disk", "b"), claim("data")));
  EXPECT_FALSE(record("data").choice);
}

TEST_F(Volumes, AChosenVolumeStaysTakenUntilBothWatchesHaveShownIt) {
  put(volume("disk", ""));
  put(claim("one"));
  put(claim("two"));
  driver.add(pod_with("p", {"one"}));
  driver.cycle();
  put(bound(claim("one"), "disk"));
  driver.add(pod_with("q", {"two"}));
  driver.cycle();
  EXPECT_EQ(driver.phase_of("q"), PodPhase::kPending);  // the volume still looks available
  EXPECT_TRUE(record("one").choice);
  put(taken(volume("disk", ""), claim("one")));
  EXPECT_FALSE(record("one").choice);
  driver.cycle();
  EXPECT_EQ(driver.phase_of("q"), PodPhase::kPending);
}

TEST_F(Volumes, ATransactionThatIsUndoneLeavesNoChoice) {
  put(volume("disk", "a"));
  put(claim("data"));
  State state;
  state.upsert_node(make_node("a"));
  state.upsert_storage(model::StorageClass{"local", "", true, {}});
  state.upsert_storage(volume("disk", "a"));
  state.upsert_storage(claim("data"));
  const PodSlot pod = state.add_pod(pod_with("p", {"data"}));
  state.mutable_pod(pod).phase = PodPhase::kPending;
  const uint64_t before = state.hash();
  {
    Txn txn(state);
    txn.place(pod, state.find_node("a"));
    EXPECT_EQ(state.volume_choices(pod).size(), 1U);
    EXPECT_NE(state.hash(), before);
  }
  EXPECT_EQ(state.hash(), before);
  EXPECT_TRUE(state.volumes().chosen_volumes().empty());
}

TEST_F(Volumes, AnEvictionThatIsUndoneGivesThePodItsOwnVolumeBack) {
  State state;
  state.upsert_node(make_node("a"));
  state.upsert_storage(model::StorageClass{"local", "", true, {}});
  state.upsert_storage(volume("large", "a", 10));
  state.upsert_storage(claim("data"));
  const PodSlot pod = state.add_pod(pod_with("p", {"data"}));
  {
    Txn txn(state);
    txn.place(pod, state.find_node("a"));
    txn.commit();
  }
  state.upsert_storage(volume("small", "a", 1));  // would be the better match by now
  const uint64_t before = state.hash();
  {
    Txn txn(state);
    txn.evict(pod);
    EXPECT_TRUE(state.volumes().chosen_volumes().empty());
  }
  EXPECT_EQ(state.hash(), before);
  EXPECT_EQ(state.volume_choices(pod).at(0).second.volume, "large");
}

TEST_F(Volumes, APodThatSharesAnUnboundClaimGoesWhereItIsBeingBound) {
  put(volume("disk", "b"));
  put(claim("data"));
  driver.add(pod_with("p", {"data"}));
  driver.add(pod_with("q", {"data"}));
  driver.cycle();
  EXPECT_EQ(driver.node_of("p"), "b");
  EXPECT_EQ(driver.node_of("q"), "b");
  driver.bind_progress("uid-p", BindOutcome::kFailed);
  EXPECT_TRUE(record("data").choice);  // q still counts on it
}

TEST_F(Volumes, TwoClaimsOfOnePodGetDifferentVolumesTheSmallerClaimFirst) {
  put(volume("small", "a", 1));
  put(volume("large", "a", 10));
  put(claim("wants-more", 5));
  put(claim("wants-less", 1));
  driver.add(pod_with("p", {"wants-more", "wants-less"}));
  driver.cycle();
  EXPECT_EQ(record("wants-more").choice->volume, "large");
  EXPECT_EQ(record("wants-less").choice->volume, "small");
}

TEST_F(Volumes, AClaimThatGoesAwayWakesItsPodsWithTheNews) {
  put(volume("disk", "c"));
  put(claim("data"));
  driver.add(pod_with("p", {"data"}));
  driver.cycle();
  driver.apply(StorageDeleted{model::StorageKind::kClaim, "default/data"});
  driver.cycle(Duration::seconds(60));
  EXPECT_EQ(driver.told("uid-p").back(),
            "0/2 nodes are available: persistentvolumeclaim \"data\" not found. not found");
}

TEST_F(Volumes, AListForgetsWhatItDoesNotName) {
  put(volume("disk", "a"));
  put(claim("data"));
  driver.apply(StorageReplaced{model::StorageKind::kVolume, {volume("other", "b")}});
  driver.add(pod_with("p", {"data"}));
  driver.cycle();
  EXPECT_EQ(driver.node_of("p"), "b");
}

TEST_F(Volumes, AChangedClaimIsLookedAtByTheClassesThatNameItOnly) {
  put(claim("one"));
  put(claim("two"));
  driver.add(pod_with("p", {"one"}));
  driver.add(pod_with("q", {"two"}));
  driver.cycle();
  put(volume("unrelated", "a"));  // the class waits on it: both look again
  EXPECT_GT(driver.cycle().work_used, 0);
  driver.confirm();
  driver.cycle();
  model::VolumeClaim changed = claim("two");
  changed.bytes = 7;
  put(changed);
  EXPECT_EQ(driver.cycle().work_used, 2);  // q's class on two nodes
}

}  // namespace
}  // namespace berth::policy
