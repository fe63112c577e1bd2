#include "api/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/decode.h"

namespace berth::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Problems problems_of(const std::string& kind, const std::string& spec, std::optional<Object>* out = nullptr) {
  Problems problems;
  const std::string text = "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: x, namespace: ml}\nspec: " + spec;
  for (const Document& document : read_documents(text, "a.yaml", problems)) {
    auto object = decode(document, problems);
    if (out != nullptr) *out = std::move(object);
  }
  return problems;
}

std::vector<std::string> told(const std::string& kind, const std::string& spec) {
  std::vector<std::string> out;
  for (const Problem& problem : problems_of(kind, spec)) out.push_back(problem.path + ": " + problem.message);
  return out;
}

ResourceQuota quota(const std::string& spec) {
  std::optional<Object> out;
  EXPECT_THAT(problems_of("ResourceQuota", spec, &out), IsEmpty());
  return out ? std::get<ResourceQuota>(*out) : ResourceQuota{};
}

LimitRangeItem item(const std::string& text) {
  std::optional<Object> out;
  EXPECT_THAT(problems_of("LimitRange", "{limits: [" + text + "]}", &out), IsEmpty());
  return out ? std::get<LimitRange>(*out).items.at(0) : LimitRangeItem{};
}

TEST(DecodeResourceQuota, CountsEachNameInTheUnitOfItsResource) {
  const ResourceQuota out = quota(
      "{hard: {requests.nvidia.com/gpu: 4, requests.cpu: 500m, limits.memory: 1Gi, pods: 10, "
      "gold.storageclass.storage.k8s.io/requests.storage: 1Ti, count/jobs.batch: 3}}");
  EXPECT_EQ(out.hard.get("requests.nvidia.com/gpu"), 4);
  EXPECT_EQ(out.hard.get("requests.cpu"), 500);
  EXPECT_EQ(out.hard.get("limits.memory"), int64_t{1} << 30);
  EXPECT_EQ(out.hard.get("gold.storageclass.storage.k8s.io/requests.storage"), int64_t{1} << 40);
  EXPECT_EQ(quota_unit("gold.storageclass.storage.k8s.io/requests.storage"), "storage");
  EXPECT_EQ(out.hard.get("count/jobs.batch"), 3);
}

TEST(DecodeResourceQuota, ScopesAndSelectorAreOneList) {
  const ResourceQuota out = quota(
      "{hard: {pods: 1}, scopes: [NotTerminating], scopeSelector: {matchExpressions: [{scopeName: PriorityClass, "
      "operator: In, values: [high, low]}]}}");
  EXPECT_THAT(out.scopes, ElementsAre(QuotaScope{"NotTerminating", "Exists", {}},
                                      QuotaScope{"PriorityClass", "In", {"high", "low"}}));
}

TEST(DecodeResourceQuota, RefusesWhatTheServerRefuses) {
  EXPECT_THAT(told("ResourceQuota", "{hard: {gpu: 4}}"),
              ElementsAre(HasSubstr("must be a standard resource for quota; did you mean 'requests.nvidia.com/gpu'?")));
  EXPECT_THAT(told("ResourceQuota", "{hard: {pod: 4}}"), ElementsAre(HasSubstr("did you mean 'pods'?")));
  EXPECT_THAT(told("ResourceQuota", "{hard: {pods: -1}}"), ElementsAre(HasSubstr("negative")));
  EXPECT_THAT(told("ResourceQuota", "{hard: {pods: 1}, scopes: [Besteffort]}"),
              ElementsAre(HasSubstr("unsupported scope; did you mean 'BestEffort'?")));
  EXPECT_THAT(told("ResourceQuota", "{hard: {pods: 1}, scopes: [BestEffort, NotBestEffort]}"),
              ElementsAre(HasSubstr("conflicting scopes")));
  EXPECT_THAT(told("ResourceQuota", "{hard: {cpu: 1}, scopes: [BestEffort]}"),
              ElementsAre(HasSubstr("unsupported scope applied to resource: BestEffort counts no cpu")));
  const auto selector = [](const std::string& text) {
    return told("ResourceQuota", "{hard: {pods: 1}, scopeSelector: {matchExpressions: [" + text + "]}}");
  };
  EXPECT_THAT(selector("{scopeName: PriorityClass, operator: in}"), ElementsAre(HasSubstr("not a valid selector")));
  EXPECT_THAT(selector("{scopeName: PriorityClass, operator: In}"), ElementsAre(HasSubstr("at least one value")));
  EXPECT_THAT(selector("{scopeName: PriorityClass, operator: Exists, values: [a]}"),
              ElementsAre(HasSubstr("must be no value")));
  EXPECT_THAT(selector("{scopeName: Terminating, operator: In, values: [a]}"),
              ElementsAre(HasSubstr("must be 'Exists'")));
}

TEST(DecodeResourceQuota, AScopeOfPodsMayComeWithExtendedResources) {
  EXPECT_THAT(told("ResourceQuota", "{hard: {requests.nvidia.com/gpu: 4}, scopes: [BestEffort]}"), IsEmpty());
}

TEST(DecodeLimitRange, AMaximumIsTheDefaultAndThatTheDefaultRequest) {
  const LimitRangeItem out = item("{type: Container, max: {nvidia.com/gpu: 4, cpu: 8}, default: {cpu: 2}}");
  EXPECT_EQ(out.default_limit, (model::ResourceList{{"nvidia.com/gpu", 4}, {"cpu", 2000}}));
  EXPECT_EQ(out.default_request, (model::ResourceList{{"nvidia.com/gpu", 4}, {"cpu", 2000}}));
}

TEST(DecodeLimitRange, AMinimumIsTheDefaultRequestWhereNoLimitIs) {
  const LimitRangeItem out = item("{type: Container, min: {cpu: 100m}}");
  EXPECT_TRUE(out.default_limit.empty());
  EXPECT_EQ(out.default_request, (model::ResourceList{{"cpu", 100}}));
}

TEST(DecodeLimitRange, BoundsOfPodsAreNoDefaults) {
  const LimitRangeItem out = item("{type: Pod, max: {nvidia.com/gpu: 8}, maxLimitRequestRatio: {cpu: 1500m}}");
  EXPECT_TRUE(out.default_limit.empty());
  EXPECT_EQ(out.max_ratio_milli, (model::ResourceList{{"cpu", 1500}}));
}

TEST(DecodeLimitRange, RefusesWhatTheServerRefuses) {
  const auto told_of = [](const std::string& items) { return told("LimitRange", "{limits: [" + items + "]}"); };
  EXPECT_THAT(told_of("{max: {cpu: 1}}"), ElementsAre(HasSubstr("Required value")));
  EXPECT_THAT(told_of("{type: container, max: {cpu: 1}}"), ElementsAre(HasSubstr("must be a standard limit type")));
  EXPECT_THAT(told_of("{type: Pod, max: {cpu: 1}}, {type: Pod, min: {cpu: 1}}"),
              ElementsAre(HasSubstr("Duplicate value")));
  EXPECT_THAT(told_of("{type: Pod, default: {cpu: 1}}"), ElementsAre(HasSubstr("may not be specified")));
  EXPECT_THAT(told_of("{type: Container, max: {gpu: 1}}"), ElementsAre(HasSubstr("did you mean 'nvidia.com/gpu'?")));
  EXPECT_THAT(told_of("{type: Container, min: {cpu: 2}, max: {cpu: 1}}"),
              ElementsAre(HasSubstr("is greater than max")));
  EXPECT_THAT(told_of("{type: Container, max: {nvidia.com/gpu: 4}, defaultRequest: {nvidia.com/gpu: 0}}"),
              ElementsAre(HasSubstr("default value 4 must equal to defaultRequest value 0 in nvidia.com/gpu")));
  EXPECT_THAT(told_of("{type: Container, min: {cpu: 2}, max: {cpu: 1}, default: {cpu: 2}, defaultRequest: {cpu: 2}}"),
              ElementsAre(HasSubstr("spec.limits[0].min.cpu: Invalid value: min value 2 is greater than max value 1"),
                          HasSubstr("default request value 2 is greater than max value 1"),
                          HasSubstr("default value 2 is greater than max value 1")));
  EXPECT_THAT(told_of("{type: Container, default: {nvidia.com/gpu: 2}, defaultRequest: {nvidia.com/gpu: 1}}"),
              ElementsAre(HasSubstr("default value 2 must equal to defaultRequest value 1 in nvidia.com/gpu")));
  EXPECT_THAT(told_of("{type: PersistentVolumeClaim, max: {cpu: 1}}"), ElementsAre(HasSubstr("storage value")));
  EXPECT_THAT(told_of("{type: Container, maxLimitRequestRatio: {cpu: 0.5}}"), ElementsAre(HasSubstr("less than 1")));
  EXPECT_THAT(told_of("{type: Pod, min: {cpu: 1}, max: {cpu: 2}, maxLimitRequestRatio: {cpu: 3}}"),
              ElementsAre(HasSubstr("ratio 3 is greater than max/min = 2.000000")));
}

}  // namespace
}  // namespace berth::api
