#include "limits/usage.h"

#include <gtest/gtest.h>

#include "limits/amounts.h"
#include "limits/limits_testing.h"

namespace berth::limits {
namespace {

TEST(AmountText, IsAsKubernetesWritesQuantities) {
  EXPECT_EQ(amount_text("requests.nvidia.com/gpu", 4), "4");
  EXPECT_EQ(amount_text("pods", 10'000), "10k");
  EXPECT_EQ(amount_text("pods", 0), "0");
  EXPECT_EQ(amount_text("requests.cpu", 1500), "1500m");
  EXPECT_EQ(amount_text("limits.cpu", 2'000'000), "2k");
  EXPECT_EQ(amount_text("requests.memory", int64_t{3} << 29), "1536Mi");
  EXPECT_EQ(amount_text("requests.storage", int64_t{1} << 40), "1Ti");
  EXPECT_EQ(amount_text("gold.storageclass.storage.k8s.io/requests.storage", int64_t{1} << 30), "1Gi");
}

TEST(Usage, NamesWhatAPodAsksForAsQuotasDo) {
  const Usage usage = usage_of(pod_with("{requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 2, nvidia.com/gpu: 4}}"));
  EXPECT_EQ(amounts_text(usage.amounts),
            "count/pods=1,cpu=1,limits.cpu=2,memory=1Gi,pods=1,requests.cpu=1,requests.memory=1Gi,"
            "requests.nvidia.com/gpu=4");
}

TEST(Usage, OverheadCountsAndMakesNoLimit) {
  const Usage usage = usage_of(pod_with("{limits: {cpu: 2}}", ", overhead: {cpu: 500m, memory: 100Mi}"));
  EXPECT_EQ(amounts_text(usage.amounts),
            "count/pods=1,cpu=2500m,limits.cpu=2500m,memory=100Mi,pods=1,requests.cpu=2500m,requests.memory=100Mi");
}

TEST(Usage, APodThatHasEndedIsOneObject) {
  api::Pod pod = pod_with("{limits: {nvidia.com/gpu: 4}}");
  pod.status.phase = "Succeeded";
  EXPECT_EQ(amounts_text(usage_of(pod).amounts), "count/pods=1");
}

TEST(Usage, AClaimCountsForItsClassToo) {
  const auto claim = read<api::PersistentVolumeClaim>(
      "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: d}, spec: {storageClassName: gold, accessModes: "
      "[ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}");
  EXPECT_EQ(amounts_text(usage_of(claim).amounts),
            "count/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/persistentvolumeclaims=1,"
            "gold.storageclass.storage.k8s.io/requests.storage=1Gi,persistentvolumeclaims=1,requests.storage=1Gi");
}

TEST(Usage, LimitsOfExtendedResourcesAreNotCounted) {
  EXPECT_TRUE(counted_of_pods("requests.nvidia.com/gpu"));
  EXPECT_FALSE(counted_of_pods("limits.nvidia.com/gpu"));
  EXPECT_FALSE(counted_of_pods("nvidia.com/gpu"));
  EXPECT_TRUE(counted_of_pods("requests.hugepages-2Mi"));
}

bool counted(const std::string& scopes, const api::Pod& pod) {
  return counts(quota_of("{hard: {pods: 1}, " + scopes + "}"), usage_of(pod));
}

TEST(Scopes, APodThatAsksForGpusAloneIsBestEffort) {
  EXPECT_TRUE(counted("scopes: [BestEffort]", pod_with("{limits: {nvidia.com/gpu: 1}}")));
  EXPECT_FALSE(counted("scopes: [NotBestEffort]", pod_with("{limits: {nvidia.com/gpu: 1}}")));
  EXPECT_FALSE(counted("scopes: [BestEffort]", pod_with("{requests: {cpu: 1m}}")));
}

TEST(Scopes, ADeadlineMakesAPodTerminating) {
  EXPECT_TRUE(counted("scopes: [Terminating]", pod_with("{}", ", activeDeadlineSeconds: 60")));
  EXPECT_FALSE(counted("scopes: [NotTerminating]", pod_with("{}", ", activeDeadlineSeconds: 60")));
  EXPECT_TRUE(counted("scopes: [NotTerminating]", pod_with("{}")));
}

TEST(Scopes, SelectPriorityClasses) {
  const api::Pod high = pod_with("{}", ", priorityClassName: high"), none = pod_with("{}");
  const auto selects = [](const std::string& how, const api::Pod& pod) {
    return counted("scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: " + how + "}]}", pod);
  };
  EXPECT_TRUE(selects("In, values: [high]", high));
  EXPECT_FALSE(selects("In, values: [low]", high));
  EXPECT_FALSE(selects("In, values: [high]", none));
  EXPECT_TRUE(selects("NotIn, values: [high]", none));
  EXPECT_FALSE(selects("NotIn, values: [high]", high));
  EXPECT_TRUE(selects("Exists", high));
  EXPECT_TRUE(selects("DoesNotExist", none));
}

TEST(Scopes, TermsThatLookIntoOtherNamespaces) {
  const std::string term =
      ", affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: "
      "kubernetes.io/hostname, labelSelector: {}";
  EXPECT_TRUE(counted("scopes: [CrossNamespacePodAffinity]", pod_with("{}", term + ", namespaces: [other]}]}}")));
  EXPECT_FALSE(counted("scopes: [CrossNamespacePodAffinity]", pod_with("{}", term + "}]}}")));
}

TEST(Scopes, KeepOutWhatIsNoPod) {
  const Usage job = usage_of_one("jobs.batch");
  EXPECT_TRUE(counts(quota_of("{hard: {count/jobs.batch: 1}}"), job));
  EXPECT_FALSE(counts(quota_of("{hard: {count/jobs.batch: 1}, scopes: [NotTerminating]}"), job));
  EXPECT_FALSE(counts(quota_of("{hard: {pods: 1}}"), job));
}

TEST(Unspecified, NamesResourcesAndContainers) {
  const api::Pod pod = pod_of(
      "{containers: [{name: main, image: app, resources: {requests: {cpu: 1}}}], initContainers: [{name: init, image: "
      "app}]}");
  EXPECT_EQ(unspecified(quota_of("{hard: {limits.cpu: 8, requests.cpu: 8, requests.nvidia.com/gpu: 4}}"), pod.spec),
            "must specify limits.cpu for: init,main; requests.cpu for: init");
  EXPECT_EQ(unspecified(quota_of("{hard: {requests.nvidia.com/gpu: 4}}"), pod.spec), "");
}

}  // namespace
}  // namespace berth::limits
