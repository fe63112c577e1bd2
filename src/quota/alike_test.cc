#include "quota/alike.h"

#include <gtest/gtest.h>

#include <functional>

namespace berth::quota {
namespace {

model::Workload work(const std::function<void(model::Workload&)>& change = {}) {
  model::Workload out;
  out.namespace_name = "default";
  out.name = "work";
  out.queue = "red";
  model::PodSet& set = out.pod_sets.emplace_back();
  set.name = "main";
  set.count = 2;
  set.requests = {{"nvidia.com/gpu", 4}};
  auto spec = std::make_shared<model::SchedulingSpec>();
  spec->requests = {{"nvidia.com/gpu", 4}, {"cpu", 1000}};
  set.spec = std::move(spec);
  if (change) change(out);
  return out;
}

void label(model::Workload& workload, model::Labels labels) {
  workload.pod_sets[0].labels = std::make_shared<model::Labels>(std::move(labels));
}

TEST(Alike, WhoAsksForTheSameInTheSameQueue) {
  const auto other = work([](model::Workload& w) {
    w.name = "other";
    w.uid = "uid";
    w.created = Time{5};
    label(w,
          {{"batch.kubernetes.io/job-name", "other"}, {"controller-uid", "x"}, {"kueue.x-k8s.io/pod-group-name", "g"}});
  });
  EXPECT_TRUE(alike(work(), other));
  EXPECT_TRUE(alike(other, work()));
  EXPECT_EQ(likeness(work()), likeness(other));
}

TEST(Alike, ForQuotaWhateverTheLabelsOfPods) {
  const auto labelled = work([](model::Workload& w) { label(w, {{"app", "b"}, {"run", "7"}}); });
  EXPECT_FALSE(alike(work(), labelled));
  EXPECT_TRUE(alike_for_quota(work(), labelled));
  EXPECT_EQ(likeness(work()), likeness(labelled));
  EXPECT_FALSE(alike_for_quota(work(), work([](model::Workload& w) { w.pod_sets[0].count = 3; })));
}

TEST(Alike, NotWhoDiffersInAnythingThatDecides) {
  using Change = std::function<void(model::Workload&)>;
  for (const Change& change : {
           Change([](auto& w) { w.priority = 1; }),
           Change([](auto& w) { w.queue = "blue"; }),
           Change([](auto& w) { w.runtime = Duration::seconds(60); }),
           Change([](auto& w) { w.max_execution = Duration::seconds(60); }),
           Change([](auto& w) { w.namespace_name = "team"; }),
           Change([](auto& w) { w.pod_sets[0].count = 3; }),
           Change([](auto& w) { w.pod_sets[0].min_count = 1; }),
           Change([](auto& w) { w.pod_sets[0].reclaimable = 1; }),
           Change([](auto& w) { w.pod_sets[0].requests.set("nvidia.com/gpu", 5); }),
           Change([](auto& w) {
             w.pod_sets[0].node_selector = {{"pool", "a"}};
           }),
           Change([](auto& w) { w.pod_sets[0].tolerations.emplace_back(); }),
           Change([](auto& w) { w.pod_sets.push_back(w.pod_sets[0]); }),
           Change([](auto& w) { w.pod_sets[0].spec = nullptr; }),
           Change([](auto& w) {
             auto spec = std::make_shared<model::SchedulingSpec>(*w.pod_sets[0].spec);
             spec->requests.set("cpu", 2000);
             w.pod_sets[0].spec = std::move(spec);
           }),
           Change([](auto& w) {
             label(w, {{"app", "a"}, {"job-name", "b"}});
           }),
       }) {
    EXPECT_FALSE(alike(work(), work(change)));
    EXPECT_FALSE(alike(work(change), work()));
  }
}

}  // namespace
}  // namespace berth::quota
