#include "limits/namespace_limits.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"
#include "limits/amounts.h"
#include "limits/limits_testing.h"

namespace berth::limits {
namespace {

api::Pod gpus(int count) { return pod_with("{limits: {nvidia.com/gpu: " + std::to_string(count) + "}}"); }

std::string admit(NamespaceLimits& limits, api::Pod pod) {
  const auto refusal = limits.admit(pod);
  return refusal ? refusal->message("pods", "Pod", pod.metadata.name) : "";
}

TEST(NamespaceLimits, RefusesInKubernetesWords) {
  NamespaceLimits limits;
  limits.put(quota_of("{hard: {requests.nvidia.com/gpu: 4, pods: 10}}"), {usage_of(gpus(1))});
  EXPECT_EQ(admit(limits, gpus(2)), "");
  EXPECT_EQ(admit(limits, gpus(2)),
            "pods \"train\" is forbidden: exceeded quota: gpu-quota, requested: requests.nvidia.com/gpu=2, used: "
            "requests.nvidia.com/gpu=3, limited: requests.nvidia.com/gpu=4");
  EXPECT_EQ(admit(limits, gpus(1)), "");
}

TEST(NamespaceLimits, TellsOfEveryResourceThatIsExceeded) {
  NamespaceLimits limits;
  limits.put(quota_of("{hard: {requests.nvidia.com/gpu: 4, pods: 0, requests.cpu: 4}}"), {});
  EXPECT_EQ(
      admit(limits, pod_with("{limits: {nvidia.com/gpu: 8, cpu: 1}}")),
      "pods \"train\" is forbidden: exceeded quota: gpu-quota, requested: pods=1,requests.nvidia.com/gpu=8, used: "
      "pods=0,requests.nvidia.com/gpu=0, limited: pods=0,requests.nvidia.com/gpu=4");
}

TEST(NamespaceLimits, AQuotaThatIsOverdrawnLetsInWhatAsksForNothingOfIt) {
  NamespaceLimits limits;
  limits.put(quota_of("{hard: {requests.nvidia.com/gpu: 1}}"), {usage_of(gpus(4))});
  EXPECT_EQ(admit(limits, pod_with("{requests: {cpu: 1}}")), "");
  EXPECT_NE(admit(limits, gpus(1)), "");
}

TEST(NamespaceLimits, MissingAmountsAreToldBeforeQuotaThatIsShort) {
  NamespaceLimits limits;
  limits.put(quota_of("{hard: {requests.nvidia.com/gpu: 0}}", "a"), {});
  limits.put(quota_of("{hard: {requests.cpu: 4, limits.memory: 8Gi}}", "b"), {});
  EXPECT_EQ(
      admit(limits, gpus(1)),
      "pods \"train\" is forbidden: failed quota: b: must specify limits.memory for: main; requests.cpu for: main");
}

TEST(NamespaceLimits, DefaultsCountAndSatisfyTheQuota) {
  NamespaceLimits limits;
  limits.put(quota_of("{hard: {requests.cpu: 4}}"), {});
  limits.put(range_of("{type: Container, defaultRequest: {cpu: 3}}"));
  EXPECT_EQ(admit(limits, gpus(1)), "");
  EXPECT_EQ(admit(limits, gpus(1)),
            "pods \"train\" is forbidden: exceeded quota: gpu-quota, requested: requests.cpu=3, used: requests.cpu=3, "
            "limited: requests.cpu=4");
}

TEST(NamespaceLimits, ARefusedPodIsAsItWas) {
  NamespaceLimits limits;
  limits.put(range_of("{type: Container, default: {cpu: 2}, max: {nvidia.com/gpu: 4}}"));
  api::Pod pod = gpus(8);
  const api::Pod before = pod;
  ASSERT_TRUE(limits.admit(pod));
  EXPECT_EQ(pod, before);
}

TEST(NamespaceLimits, AllDefaultsAreGivenBeforeAnyBoundIsHeldAgainst) {
  NamespaceLimits limits;
  limits.put(range_of("{type: Pod, max: {cpu: 4}}", "a"));
  EXPECT_EQ(admit(limits, pod_with("{}")),
            "pods \"train\" is forbidden: maximum cpu usage per Pod is 4.  No limit is specified");
  limits.put(range_of("{type: Container, default: {cpu: 2}}", "b"));
  EXPECT_EQ(admit(limits, pod_with("{}")), "");
  EXPECT_EQ(admit(limits, pod_with("{requests: {cpu: 3}}")),
            "Pod \"train\" is invalid: spec.containers[0].resources.requests: Invalid value: \"3\": must be less than "
            "or equal to cpu limit of 2");
}

TEST(NamespaceLimits, CountsJobsAndClaims) {
  NamespaceLimits limits;
  limits.put(quota_of("{hard: {count/jobs.batch: 1, requests.storage: 1Gi}}"), {});
  EXPECT_FALSE(limits.admit("ml", "jobs.batch"));
  EXPECT_EQ(limits.admit("ml", "jobs.batch").value_or(Refusal{}).text,
            "exceeded quota: gpu-quota, requested: count/jobs.batch=1, used: count/jobs.batch=1, limited: "
            "count/jobs.batch=1");
  const auto claim = read<api::PersistentVolumeClaim>(
      "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: d, namespace: ml}, spec: {accessModes: "
      "[ReadWriteOnce], resources: {requests: {storage: 2Gi}}}}");
  EXPECT_EQ(limits.admit(claim).value_or(Refusal{}).text,
            "exceeded quota: gpu-quota, requested: requests.storage=2Gi, used: requests.storage=0, limited: "
            "requests.storage=1Gi");
}

TEST(NamespaceLimits, OtherNamespacesAreFree) {
  NamespaceLimits limits;
  limits.put(quota_of("{hard: {pods: 0}}"), {});
  api::Pod pod = gpus(1);
  pod.metadata.namespace_name = "nlp";
  EXPECT_EQ(admit(limits, pod), "");
}

TEST(NamespaceLimits, SaysWhereRoomHasCome) {
  NamespaceLimits limits;
  limits.put(quota_of("{hard: {pods: 1}}"), {usage_of(gpus(1))});
  EXPECT_EQ(limits.take_relieved(), std::set<std::string>{"ml"});
  EXPECT_NE(admit(limits, gpus(1)), "");
  EXPECT_TRUE(limits.take_relieved().empty());
  limits.forget("ml", usage_of(gpus(1)));
  EXPECT_EQ(limits.take_relieved(), std::set<std::string>{"ml"});
  EXPECT_EQ(admit(limits, gpus(1)), "");
}

// Whatever comes and goes, what is used is the sum of what is there, and never more than the quota unless it was so.
TEST(NamespaceLimits, UsageIsTheSumOfWhatIsThere) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    NamespaceLimits limits;
    limits.put(quota_of("{hard: {requests.nvidia.com/gpu: 12, pods: 6}}"), {});
    std::vector<int> there;
    for (int step = 0; step < 60; ++step) {
      if (!there.empty() && rng.below(3) == 0) {
        const size_t which = rng.below(there.size());
        limits.forget("ml", usage_of(gpus(there[which])));
        there.erase(there.begin() + static_cast<std::ptrdiff_t>(which));
      } else {
        const int count = static_cast<int>(1 + rng.below(6));
        int sum = count;
        for (const int each : there) sum += each;
        const bool fits = sum <= 12 && there.size() < 6;
        ASSERT_EQ(admit(limits, gpus(count)).empty(), fits) << "seed " << seed << ", step " << step;
        if (fits) there.push_back(count);
      }
      int sum = 0;
      for (const int each : there) sum += each;
      const QuotaUse use = limits.uses().at(0);
      ASSERT_EQ(use.used.get("requests.nvidia.com/gpu"), sum);
      ASSERT_EQ(use.used.get("pods"), static_cast<int64_t>(there.size()));
    }
  }
}

}  // namespace
}  // namespace berth::limits
