// What the webhook says of Jobs and pods where it looks at the cluster.
#include "webhook/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace berth::webhook {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kQuota =
    R"({"metadata":{"name":"gpu-quota","namespace":"ml"},"spec":{"hard":{"requests.nvidia.com/gpu":"8"}},)"
    R"("status":{"hard":{"requests.nvidia.com/gpu":"8"},"used":{"requests.nvidia.com/gpu":"5"}}})";

struct Known : Cluster {
  QueueIs queue = QueueIs::kThere;
  NamespaceSeen seen;
  int asked = 0;
  std::string missing;
  std::string missing_cluster_queue(const std::string&, const std::string&) override { return missing; }
  QueueIs local_queue(const std::string&, const std::string&) override { return ++asked, queue; }
  bool default_queue = false;
  bool has_default_queue(const std::string& namespace_name) override { return default_queue && namespace_name == "ml"; }
  NamespaceSeen limits_of(const std::string&) override { return seen; }
};

Json job(int pods, bool suspended = true) {
  Json out = Json::parse(
      R"({"metadata":{"name":"j","labels":{"kueue.x-k8s.io/queue-name":"lq"}},"spec":{"template":{"spec":{"containers":)"
      R"([{"name":"main","image":"app","resources":{"limits":{"nvidia.com/gpu":"2"}}}]}}}})");
  out["spec"]["parallelism"] = out["spec"]["completions"] = pods;
  out["spec"]["suspend"] = suspended;
  return out;
}

AdmissionRequest create(Json object, const char* group = "batch", const char* kind = "Job") {
  AdmissionRequest request;
  request.group = group;
  request.kind = kind;
  request.operation = "CREATE";
  request.namespace_name = "ml";
  request.object = std::move(object);
  return request;
}

TEST(MutateIn, AJobThatNamesNoQueueWaitsInTheDefaultOneOfItsNamespace) {
  Known cluster;
  Json unnamed = job(1, false);
  unnamed["metadata"].erase("labels");
  EXPECT_TRUE(mutate_in(cluster, create(unnamed), {}).object.is_null());
  cluster.default_queue = true;
  const AdmissionAnswer answer = mutate_in(cluster, create(unnamed), {});
  EXPECT_EQ(answer.object["metadata"]["labels"].dump(), R"({"kueue.x-k8s.io/queue-name":"default"})");
  EXPECT_EQ(answer.object["spec"]["suspend"], true);
  EXPECT_EQ(answer.object["spec"]["template"]["spec"]["schedulerName"], "berth");
  EXPECT_EQ(mutate_in(cluster, create(job(1)), {}).object["metadata"]["labels"].dump(),
            R"({"kueue.x-k8s.io/queue-name":"lq"})")
      << "what it names counts";
  EXPECT_TRUE(mutate_in(cluster, create(unnamed, "", "Pod"), {}).object.is_null()) << "pods name theirs";
  Json part = unnamed;
  part["metadata"]["ownerReferences"] = Json::parse(
      R"([{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","name":"s","uid":"u","controller":true}])");
  EXPECT_TRUE(mutate_in(cluster, create(part), {}).object.is_null());
  AdmissionRequest update = create(unnamed);
  update.operation = "UPDATE";
  EXPECT_TRUE(mutate_in(cluster, update, {}).object.is_null()) << "one that runs goes on";
}

TEST(ValidateIn, AQueueThatIsMissingIsRefusedWithTheWayOut) {
  Known cluster;
  cluster.queue = QueueIs::kMissing;
  for (const auto& [group, kind] : {std::pair{"batch", "Job"}, std::pair{"", "Pod"}}) {
    const AdmissionAnswer answer = validate_in(cluster, create(job(1), group, kind), {});
    EXPECT_EQ(answer.code, 422);
    EXPECT_THAT(answer.message, HasSubstr("there is no LocalQueue of this name in namespace ml"));
    EXPECT_THAT(answer.message, HasSubstr("kubectl get localqueues -n ml"));
  }
}

TEST(ValidateIn, AQueueWithoutItsClusterQueueIsWarnedOf) {
  Known cluster;
  EXPECT_THAT(validate_in(cluster, create(job(1)), {}).warnings, IsEmpty());
  cluster.missing = "team";
  for (const auto& [group, kind] : {std::pair{"batch", "Job"}, std::pair{"", "Pod"}}) {
    const AdmissionAnswer answer = validate_in(cluster, create(job(1), group, kind), {});
    EXPECT_TRUE(answer.allowed);
    EXPECT_THAT(answer.warnings,
                ElementsAre(HasSubstr("there is no ClusterQueue \"team\", which LocalQueue \"lq\" names")));
  }
}

TEST(ValidateIn, WhatIsNotCertainPassesWithAWarning) {
  Known cluster;
  cluster.queue = QueueIs::kUnknown;
  const AdmissionAnswer answer = validate_in(cluster, create(job(1)), {});
  EXPECT_TRUE(answer.allowed);
  EXPECT_THAT(answer.warnings, ElementsAre(HasSubstr("could not be found out")));
}

TEST(ValidateIn, WhoKeepsTheQueueOrBelongsToAWholeIsNotAskedAbout) {
  Known cluster;
  cluster.queue = QueueIs::kMissing;
  AdmissionRequest update = create(job(1));
  update.operation = "UPDATE";
  update.old_object = update.object;
  EXPECT_TRUE(validate_in(cluster, update, {}).allowed);
  update.old_object["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "other";
  EXPECT_FALSE(validate_in(cluster, update, {}).allowed);
  Json part = job(1);
  part["metadata"]["ownerReferences"] =
      Json::array({{{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"name", "j"}, {"controller", true}}});
  EXPECT_TRUE(validate_in(cluster, create(std::move(part), "", "Pod"), {}).allowed);
  AdmissionRequest outside = create(job(1));
  outside.namespace_name = "../../secrets";
  EXPECT_TRUE(validate_in(cluster, outside, {}).allowed);
  EXPECT_EQ(cluster.asked, 1);
}

TEST(ValidateIn, AJobOverItsQuotaIsToldInKubernetesWordsAndWhatFits) {
  Known cluster;
  cluster.seen.quotas.push_back(*decode_quota(kQuota));
  const AdmissionAnswer answer = validate_in(cluster, create(job(4)), {});
  EXPECT_TRUE(answer.allowed);
  EXPECT_THAT(answer.warnings, ElementsAre("exceeded quota: gpu-quota, requested: requests.nvidia.com/gpu=2, used: "
                                           "requests.nvidia.com/gpu=7, limited: requests.nvidia.com/gpu=8",
                                           HasSubstr("1 of 4 fit now; it is suspended")));
  EXPECT_THAT(validate_in(cluster, create(job(1)), {}).warnings, IsEmpty());
  EXPECT_THAT(validate_in(cluster, create(job(4), "", "Pod"), {}).warnings, IsEmpty());
  EXPECT_THAT(validate_in(cluster, create(job(4, false)), {}).warnings[1], Not(HasSubstr("suspended")));
}

TEST(ValidateIn, AsManyPodsAreTriedAsTakeNoTimeFromOthers) {
  Known cluster;
  cluster.seen.quotas.push_back(*decode_quota(kQuota));
  Json large = job(4);
  large["spec"]["template"]["metadata"]["annotations"]["note"] = std::string(3 << 20, 'x');
  EXPECT_THAT(validate_in(cluster, create(large), {}).warnings, IsEmpty());  // its first pod fits
  cluster.seen.quotas[0].used.set("requests.nvidia.com/gpu", 8);
  EXPECT_THAT(validate_in(cluster, create(large), {}).warnings[1], HasSubstr("0 of 4 fit now"));
}

TEST(ValidateIn, ARangeThatRefusesThePodsIsToldOfAnObjectWithoutATemplateNothing) {
  Known cluster;
  api::LimitRange range;
  range.metadata.name = "bounds";
  range.metadata.namespace_name = "ml";
  range.items.emplace_back().type = "Container";
  range.items[0].max.set("nvidia.com/gpu", 1);
  cluster.seen.ranges.push_back(range);
  EXPECT_THAT(validate_in(cluster, create(job(1)), {}).warnings,
              ElementsAre("maximum nvidia.com/gpu usage per Container is 1, but limit is 2", HasSubstr("0 of 1 fit")));
  Json bare = job(1);
  bare["spec"].erase("template");
  EXPECT_THAT(validate_in(cluster, create(std::move(bare)), {}).warnings, IsEmpty());
}

}  // namespace
}  // namespace berth::webhook
