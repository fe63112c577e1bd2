#include "api/volumes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/decode.h"

namespace berth::api {
namespace {

using ::testing::ElementsAre;

TEST(DecodeVolumes, AClaimKeepsWhatSchedulingNeeds) {
  const auto claim = decode_json<PersistentVolumeClaim>(R"({"metadata": {"name": "data", "namespace": "ns", "uid": "u",
      "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
    "spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Block", "volumeName": "pv", "storageClassName": "fast",
      "resources": {"requests": {"storage": "1Gi"}}, "selector": {"matchLabels": {"tier": "ssd"}}},
    "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}})");
  ASSERT_TRUE(claim) << claim.error().message;
  EXPECT_EQ(claim->spec.storage_bytes, int64_t{1} << 30);
  EXPECT_THAT(claim->spec.access_modes, ElementsAre("ReadWriteOnce"));
  EXPECT_EQ(claim->spec.volume_mode, "Block");
  EXPECT_EQ(claim->phase, "Bound");
  EXPECT_TRUE(claim->spec.selector->matches({{"tier", "ssd"}}));
  EXPECT_FALSE(claim->spec.selector->matches({{"tier", "hdd"}}));
  EXPECT_EQ(claim->storage_class(), "fast");
}

TEST(DecodeVolumes, TheBetaAnnotationGoesBeforeTheClassField) {
  const auto claim = decode_json<PersistentVolumeClaim>(
      R"({"metadata": {"name": "c", "annotations": {"volume.beta.kubernetes.io/storage-class": "old"}},
          "spec": {"storageClassName": "new"}})");
  EXPECT_EQ(claim->storage_class(), "old");
}

TEST(DecodeVolumes, AVolumeKnowsItsClaimItsNodesAndItsDriver) {
  const auto volume = decode_json<PersistentVolume>(R"({"metadata": {"name": "pv"},
    "spec": {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteMany"], "storageClassName": "fast",
      "csi": {"driver": "disk.example.com", "volumeHandle": "h1"},
      "claimRef": {"namespace": "ns", "name": "data", "uid": "u"},
      "nodeAffinity": {"required": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}}},
    "status": {"phase": "Available"}})");
  ASSERT_TRUE(volume) << volume.error().message;
  EXPECT_EQ(volume->csi_driver, "disk.example.com");
  EXPECT_EQ(volume->csi_handle, "h1");
  EXPECT_EQ(volume->claim->name, "data");
  ASSERT_EQ(volume->node_affinity->size(), 1U);
  EXPECT_TRUE(volume->node_affinity->front().matches({{"zone", "a"}}, ""));
}

TEST(DecodeVolumes, EphemeralVolumesCarryTheClaimThatIsMade) {
  const auto pod = decode_pod(R"({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}], "volumes": [
    {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}},
    {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "tmp", "emptyDir": {}}]}})");
  ASSERT_TRUE(pod) << pod.error().message;
  ASSERT_EQ(pod->spec.claim_volumes.size(), 2U);
  EXPECT_EQ(pod->spec.claim_volumes[0].made->storage_class_name, "fast");
  EXPECT_EQ(pod->spec.claim_volumes[1].claim_name, "data");
}

}  // namespace
}  // namespace berth::api
