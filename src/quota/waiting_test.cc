// Workloads that are alike wait in groups, of which the first has a turn for all: they come in the order in which they
// would each by itself.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "quota/testing.h"

namespace berth::quota {
namespace {

class AlikeWorkloads : public testing::OneQueue {
 protected:
  // Each asks for all GPUs, and was created a second after the one before.
  void submit_all(const std::vector<std::string>& names) {
    for (const std::string& name : names) submit(made(name));
  }
  model::Workload made(const std::string& name) {
    model::Workload out = workload(name);
    out.created = Time{} + Duration::seconds(++created_);
    return out;
  }
  // Who is admitted when everything has settled.
  std::string now() {
    at(++time_);
    std::string out;
    for (const std::string name : {"a", "b", "c", "d", "e", "z"})
      if (admission.find(name).valid() && phase(name.c_str()) == WorkloadPhase::kAdmitted) out += name;
    return out;
  }
  void finish(const char* name) { admission.finish(admission.find(name)); }
  QueueCounts counts() const {
    const QueueOverview overview = admission.overview();
    const auto found = overview.cluster_queues.find("team");
    return found == overview.cluster_queues.end() ? QueueCounts{} : found->second;
  }

  int64_t created_ = 10, time_ = 100;
};

TEST_F(AlikeWorkloads, ComeOneAfterTheOther) {
  submit_all({"a", "b", "c", "d", "e"});
  EXPECT_EQ(now(), "a");
  EXPECT_EQ(counts().pending, 4);
  EXPECT_EQ(counts().inadmissible, 4);
  const std::string told = status("b").message;
  EXPECT_NE(told, "");
  EXPECT_EQ(status("e").message, told) << "all are told the same";
  EXPECT_EQ(admission.explain(admission.find("e")).position, 4);
  EXPECT_EQ(admission.explain(admission.find("e")).waiting, 4);
  finish("a");
  EXPECT_EQ(counts().inadmissible, 0) << "something could help them all";
  EXPECT_EQ(now(), "b");
  EXPECT_EQ(counts().inadmissible, 3);
  finish("b");
  EXPECT_EQ(now(), "c");
}

TEST_F(AlikeWorkloads, TheNextOneLeadsWhereTheFirstIsGone) {
  submit_all({"a", "b", "c", "d"});
  EXPECT_EQ(now(), "a");
  finish("a");
  admission.remove(admission.find("b"));
  EXPECT_EQ(now(), "c");
  admission.remove(admission.find("d"));
  finish("c");
  EXPECT_EQ(now(), "");
  EXPECT_EQ(counts().pending, 0);
}

TEST_F(AlikeWorkloads, WhoBecomesMoreImportantLeavesTheGroup) {
  submit_all({"a", "b", "c", "d"});
  EXPECT_EQ(now(), "a");
  model::Workload first = status("d").workload;
  first.priority = 1;
  submit(first);
  EXPECT_EQ(now(), "a");
  finish("a");
  EXPECT_EQ(now(), "d");
  finish("d");
  EXPECT_EQ(now(), "b");
}

TEST_F(AlikeWorkloads, AnOlderOneThatComesLaterIsTheFirst) {
  submit_all({"a", "b", "c"});
  EXPECT_EQ(now(), "a");
  model::Workload old = workload("z");
  old.created = Time{} + Duration::seconds(1);
  submit(old);
  EXPECT_EQ(now(), "a");
  finish("a");
  EXPECT_EQ(now(), "z");
  finish("z");
  EXPECT_EQ(now(), "b");
}

TEST_F(AlikeWorkloads, WhoComesWhileTheOthersHaveBeenWokenHasItsTurnInOrder) {
  submit_all({"a", "b", "c"});
  EXPECT_EQ(now(), "a");
  model::ClusterQueue queue = team();
  queue.groups[0].flavors[0].resources.at(testing::kGpu).nominal = testing::gpus(3);  // too little for any of them
  admission.upsert(queue);
  submit(made("d"));
  finish("a");
  EXPECT_EQ(now(), "");
  EXPECT_EQ(status("d").message, status("b").message);
  admission.upsert(team());
  EXPECT_EQ(now(), "b");
  finish("b");
  EXPECT_EQ(now(), "c");
  finish("c");
  EXPECT_EQ(now(), "d");
}

}  // namespace
}  // namespace berth::quota
