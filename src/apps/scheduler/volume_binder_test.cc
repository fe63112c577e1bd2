#include "apps/scheduler/volume_binder.h"

#include <gtest/gtest.h>

#include "engine/testing.h"
#include "io/fake_transport.h"
#include "policy/registry.h"

namespace berth::apps {
namespace {

using namespace berth::engine;
using namespace berth::engine::testing;
using io::FakeReply;

// A pod that has a place, and whose claim is to be bound to the volume "disk".
struct VolumeBinderTest : ::testing::Test {
  VolumeBinderTest() {
    driver.add(make_node("a"));
    driver.apply(StorageUpserted{model::StorageClass{"local", "kubernetes.io/no-provisioner", true, {}}});
    model::Volume volume;
    volume.name = "disk";
    volume.storage_class = "local";
    volume.bytes = 1;
    volume.access_modes = model::kReadWriteOnce;
    volume.available = true;
    driver.apply(StorageUpserted{volume});
    model::VolumeClaim claim;
    claim.namespace_name = "default";
    claim.name = "data";
    claim.uid = "uid-data";
    claim.storage_class = "local";
    claim.bytes = 1;
    claim.access_modes = model::kReadWriteOnce;
    driver.apply(StorageUpserted{claim});
    driver.add(with_spec(make_pod("p"), [](auto& spec) { spec.claims = {{"default/data", "", ""}}; }));
    decision = driver.cycle().decisions.at(0);
    driver.bind_progress("uid-p", BindOutcome::kPreBinding);
    transport.on_request([this](const io::HttpRequest&) { return reply; });
  }
  // As the owner thread: a turn each second.
  void run_for(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      transport.run_for(Duration::seconds(1));
      binder.tick(now());
    }
  }
  Time now() const { return transport.clock().monotonic(); }

  Driver driver{policy::default_policies()};
  Decision decision;
  io::FakeTransport transport;
  kube::Client client{transport};
  FakeReply reply = FakeReply::json(200, "{}");
  std::string failed;
  VolumeBinder binder{driver.engine(),
                      client,
                      Duration::seconds(600),
                      Duration::seconds(5),
                      {.post = [this](const ClaimPatched& answer) { binder.handle(answer, now()); },
                       .may_send = [] { return true; },
                       .bound = [](const Decision&) {},
                       .failed = [this](const Decision&, const std::string& why) { failed = why; }}};
};

TEST_F(VolumeBinderTest, ABusyServerIsAskedAgainWhenItSays) {
  reply = FakeReply::json(429, "{}").with_header("retry-after", "20");
  binder.begin(decision, {}, now());
  run_for(19);
  EXPECT_EQ(transport.requests().size(), 1u);
  reply = FakeReply::json(200, "{}");
  run_for(3);
  EXPECT_EQ(transport.requests().size(), 2u);
  run_for(100);
  EXPECT_EQ(transport.requests().size(), 2u) << "stored: what follows is the volume controller's";
  EXPECT_EQ(binder.waiting(), 1u);
  EXPECT_EQ(failed, "");
}

TEST_F(VolumeBinderTest, WithoutAWordFromTheServerItTriesAgainEachSecond) {
  reply = FakeReply::json(503, "{}");
  binder.begin(decision, {}, now());
  run_for(10);
  EXPECT_GE(transport.requests().size(), 5u);
  EXPECT_LE(transport.requests().size(), 11u);
  EXPECT_EQ(failed, "");
}

TEST_F(VolumeBinderTest, ARefusalGivesThePodUp) {
  reply = FakeReply::json(403, R"({"reason":"Forbidden","message":"no"})");
  binder.begin(decision, {}, now());
  run_for(2);
  EXPECT_EQ(transport.requests().size(), 1u);
  EXPECT_NE(failed.find("Forbidden"), std::string::npos) << failed;
  EXPECT_EQ(binder.waiting(), 0u);
}

}  // namespace
}  // namespace berth::apps
