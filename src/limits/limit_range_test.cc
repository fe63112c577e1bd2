#include "limits/limit_range.h"

#include <gtest/gtest.h>

#include "limits/limits_testing.h"

namespace berth::limits {
namespace {

std::string refused(const std::string& items, const api::Pod& pod) { return refusal(range_of(items), pod.spec); }

TEST(LimitRange, GivesContainersWhatTheyDoNotName) {
  api::Pod pod = pod_of(
      "{containers: [{name: a, image: app, resources: {limits: {cpu: 4}}}, {name: b, image: app}], "
      "initContainers: [{name: i, image: app}]}");
  set_defaults(range_of("{type: Container, default: {cpu: 2, memory: 8Gi}, defaultRequest: {cpu: 1}}"), pod.spec);
  EXPECT_EQ(pod.spec.containers[0].resources.limits.get("cpu"), 4000);
  EXPECT_EQ(pod.spec.containers[0].resources.requests.get("cpu"), 4000);  // as its limit, before any LimitRange
  EXPECT_EQ(pod.spec.containers[0].resources.requests.get("memory"), int64_t{8} << 30);
  EXPECT_EQ(pod.spec.containers[1].resources.limits.get("cpu"), 2000);
  EXPECT_EQ(pod.spec.containers[1].resources.requests.get("cpu"), 1000);
  EXPECT_EQ(pod.spec.init_containers[0].resources.requests.get("cpu"), 1000);
}

TEST(LimitRange, ARequestAboveTheLimitThatWasGivenIsInvalid) {
  api::Pod pod = pod_with("{requests: {cpu: 4}}");
  EXPECT_EQ(invalid_with_defaults(pod.spec), "");
  set_defaults(range_of("{type: Container, default: {cpu: 2}}"), pod.spec);
  EXPECT_EQ(
      invalid_with_defaults(pod.spec),
      "spec.containers[0].resources.requests: Invalid value: \"4\": must be less than or equal to cpu limit of 2");
}

TEST(LimitRange, TellsOfTheMaximumInKubernetesWords) {
  const std::string four = "{type: Container, max: {nvidia.com/gpu: 4}}";
  EXPECT_EQ(refused(four, pod_with("{limits: {nvidia.com/gpu: 4}}")), "");
  EXPECT_EQ(refused(four, pod_with("{limits: {nvidia.com/gpu: 8}}")),
            "maximum nvidia.com/gpu usage per Container is 4, but limit is 8");
  EXPECT_EQ(refused("{type: Container, max: {memory: 64Gi}}", pod_with("{requests: {memory: 128Gi}}")),
            "maximum memory usage per Container is 64Gi.  No limit is specified");
}

TEST(LimitRange, TellsOfTheMinimumInKubernetesWords) {
  const std::string tenth = "{type: Container, min: {cpu: 100m}}";
  EXPECT_EQ(refused(tenth, pod_with("{requests: {cpu: 100m}}")), "");
  EXPECT_EQ(refused(tenth, pod_with("{requests: {cpu: 50m}}")),
            "minimum cpu usage per Container is 100m, but request is 50m");
  EXPECT_EQ(refused(tenth, pod_with("{}")), "minimum cpu usage per Container is 100m.  No request is specified");
}

TEST(LimitRange, ComparesLimitsWithRequests) {
  const std::string twice = "{type: Container, maxLimitRequestRatio: {cpu: 2}}";
  EXPECT_EQ(refused(twice, pod_with("{limits: {cpu: 2}, requests: {cpu: 1}}")), "");
  EXPECT_EQ(refused(twice, pod_with("{limits: {cpu: 5}, requests: {cpu: 2}}")),
            "cpu max limit to request ratio per Container is 2, but provided ratio is 2.500000");
  EXPECT_EQ(refused(twice, pod_with("{requests: {cpu: 2}}")),
            "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0");
  EXPECT_EQ(refused(twice, pod_with("{}")),
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0");
}

TEST(LimitRange, APodIsTheSumOfItsContainersAndSidecars) {
  const std::string eight = "{type: Pod, max: {nvidia.com/gpu: 8}}";
  const std::string four = "resources: {limits: {nvidia.com/gpu: 4}}";
  EXPECT_EQ(refused(eight, pod_of("{containers: [{name: a, image: app, " + four + "}, {name: b, image: app, " + four +
                                  "}], initContainers: [{name: i, image: app, " + four + "}]}")),
            "");
  EXPECT_EQ(refused(eight, pod_of("{containers: [{name: a, image: app, " + four + "}, {name: b, image: app, " + four +
                                  "}], initContainers: [{name: i, image: app, restartPolicy: Always, " + four + "}]}")),
            "maximum nvidia.com/gpu usage per Pod is 8, but limit is 12");
}

TEST(LimitRange, AMaximumOfPodsRefusesThoseWithoutALimit) {
  EXPECT_EQ(refused("{type: Pod, max: {nvidia.com/gpu: 8}}", pod_with("{}")),
            "maximum nvidia.com/gpu usage per Pod is 8.  No limit is specified");
}

TEST(LimitRange, TellsOfSeveralThingsOnce) {
  EXPECT_EQ(
      refused("{type: Container, max: {cpu: 1, nvidia.com/gpu: 4}}", pod_with("{limits: {cpu: 2, nvidia.com/gpu: 8}}")),
      "[maximum cpu usage per Container is 1, but limit is 2, maximum nvidia.com/gpu usage per Container is 4, "
      "but limit is 8]");
  EXPECT_EQ(aggregate({"a", "b", "a"}), "[a, b]");
}

TEST(LimitRange, BoundsWhatAClaimAsksFor) {
  const auto claim = [](const std::string& storage) {
    return read<api::PersistentVolumeClaim>(
               "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: d}, spec: {accessModes: "
               "[ReadWriteOnce], resources: {requests: {storage: " +
               storage + "}}}}")
        .spec;
  };
  const api::LimitRange range = range_of("{type: PersistentVolumeClaim, min: {storage: 1Gi}, max: {storage: 1Ti}}");
  EXPECT_EQ(refusal(range, claim("1Gi")), "");
  EXPECT_EQ(refusal(range, claim("2Ti")), "maximum storage usage per PersistentVolumeClaim is 1Ti, but request is 2Ti");
  EXPECT_EQ(refusal(range, claim("1Mi")), "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi");
}

}  // namespace
}  // namespace berth::limits
