#include "scenario/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "packing/placement_policy.h"
#include "scenario/trace_run.h"
#include "scenario/trace_svg.h"

namespace berth::scenario {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::string_view kNodes = "sn,cpu_milli,memory_mib,gpu,model\n";
constexpr std::string_view kPods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n";

std::vector<std::string> told(const api::Problems& problems) {
  std::vector<std::string> out;
  for (const api::Problem& problem : problems) out.push_back(api::to_string(problem));
  return out;
}

Trace read(const std::string& nodes, const std::string& pods) {
  Trace trace;
  api::Problems problems;
  read_trace_nodes(std::string(kNodes) + nodes, "n.csv", trace, problems);
  read_trace_pods(std::string(kPods) + pods, "p.csv", trace, problems);
  EXPECT_THAT(told(problems), IsEmpty());
  return trace;
}

std::vector<std::string> wrong_pods(const std::string& text) {
  Trace trace;
  api::Problems problems;
  read_trace_pods(text, "p.csv", trace, problems);
  return told(problems);
}

TEST(TraceCsv, ReadsWhatItNeedsInAnyOrderOfColumns) {
  Trace trace;
  api::Problems problems;
  read_trace_nodes("\xEF\xBB\xBFmodel,gpu,sn,memory_mib,cpu_milli\r\nT4,2,a,1024,8000\r\n\r\nV100,8,b,1,1", "n.csv",
                   trace, problems);
  read_trace_pods(
      "name,qos,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np,BE,4000,512,1,460,V100|A10\nq,,1,1,0,0,\n", "p.csv",
      trace, problems);
  EXPECT_THAT(told(problems), IsEmpty());
  ASSERT_THAT(trace.nodes, SizeIs(2));
  EXPECT_EQ(trace.nodes[0].memory_bytes(), int64_t{1} << 30);
  EXPECT_EQ(trace.nodes[1].devices().count, 8);
  EXPECT_THAT(trace.models, ElementsAre("T4", "V100", "A10"));
  const packing::Request share = {
      .cpu_milli = 4000, .memory_bytes = int64_t{512} << 20, .devices = 1, .milli_each = 460, .models = 0b110};
  EXPECT_THAT(trace.pods, ElementsAre(share, packing::Request{.cpu_milli = 1, .memory_bytes = 1 << 20}));
}

TEST(TraceCsv, ModelsThatNoNodeHasAreTold) {
  const Trace trace = read("a,1,1,1,T4\nb,1,1,0,\n",
                           "p,1,1,1,1000,T4|XX\nq,1,1,1,500, T4\nr,1,1,2,1000,XX|YY\ns,1,1,1,1000,YY|XX\n"
                           "t,1,1,0,0,ZZ\nu,1,1,1,1,\n");
  EXPECT_THAT(models_without_nodes(trace),
              ElementsAre("no node has GPUs of gpu_spec 'XX|YY', which 2 of 6 pods ask for: they are placed nowhere",
                          "no node has GPUs of gpu_spec ' T4', which 1 of 6 pods ask for: they are placed nowhere"));
}

TEST(TraceCsv, NodesWithoutAnyGpuAreTold) {
  EXPECT_THAT(models_without_nodes(read("b,1,1,0,\n", "p,1,1,1,1000,\nt,1,1,0,0,\n")),
              ElementsAre("no node has a GPU, which 1 of 2 pods ask for: they are placed nowhere"));
}

TEST(TraceCsv, LinesEndAsOnAnySystem) {
  for (const std::string end : {"\n", "\r\n", "\r"}) {
    const std::string text =
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli" + end + end + "a,1,1,1,1000" + end + "b,x,1,0,0";
    Trace trace;
    api::Problems problems;
    read_trace_pods(text, "p.csv", trace, problems);
    EXPECT_THAT(trace.pods, SizeIs(1));
    EXPECT_THAT(told(problems), ElementsAre(HasSubstr("p.csv:4: cpu_milli")));
  }
}

TEST(TraceCsv, TellsEveryMistakeWithItsLine) {
  EXPECT_THAT(
      wrong_pods(std::string(kPods) + "a,1,1,1,460,\n,1,1,0,0,\na,1,1,0,0,\nb,-1,x,17,1001,\nc,1,1,0,5,\nd,1,1,1,0,\n"
                                      "e,1,1,2,500,\nf,1,1\ng,\"1\",1,0,0,\n"),
      ElementsAre("p.csv:3: name: it is empty; give each line a name",
                  "p.csv:4: name: 'a' was there before; names differ",
                  "p.csv:5: cpu_milli: '-1' is no whole number from 0 to 100000000",
                  "p.csv:5: memory_mib: 'x' is no whole number from 0 to 1073741824",
                  "p.csv:5: num_gpu: '17' is no whole number from 0 to 16",
                  "p.csv:5: gpu_milli: '1001' is no whole number from 0 to 1000",
                  "p.csv:6: gpu_milli: 5 of no GPU; write 0, or num_gpu 1",
                  "p.csv:7: gpu_milli: 0 of a GPU; write 1 to 1000, or num_gpu 0",
                  "p.csv:8: gpu_milli: 500 of each of 2 GPUs; only one GPU can be shared: write 1000, or num_gpu 1",
                  "p.csv:9: 3 fields, and the first line has 6; give each column a value",
                  "p.csv:10: quotes are not understood here; write the values plainly, between commas"));
}

TEST(TraceCsv, TellsWhatTheFirstLineLacks) {
  EXPECT_THAT(wrong_pods(""),
              ElementsAre(HasSubstr("the file is empty; its first line names the columns: name,cpu_milli")));
  EXPECT_THAT(
      wrong_pods("name,cpu_milli\na,b\n"),
      ElementsAre("p.csv:1: the first line names the columns, and these are missing: memory_mib, num_gpu, gpu_milli"));
  EXPECT_THAT(wrong_pods("name,name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"),
              ElementsAre("p.csv:1: the column name is there twice; keep one"));
}

TEST(TraceCsv, CountsWhatItDoesNotTell) {
  std::string text(kPods);
  for (int i = 0; i < 1000; ++i) text += "\x1b[31m,\n";
  const auto problems = wrong_pods(text);
  ASSERT_THAT(problems, SizeIs(kTraceProblemsMax + 1));
  EXPECT_EQ(problems.back(), "p.csv: 900 more problems in this file");
}

TEST(TraceCsv, ANodeWithGpusNamesTheirModel) {
  Trace trace;
  api::Problems problems;
  read_trace_nodes(std::string(kNodes) + "a,1,1,1,\nb,1,1,0,\n", "n.csv", trace, problems);
  EXPECT_THAT(told(problems), ElementsAre("n.csv:2: model: it is empty; name the model of the node's GPUs"));
}

// Four nodes of two GPUs; half the pods want one of them, half none.
Trace small() {
  std::string nodes;
  for (int i = 0; i < 4; ++i) nodes += "n" + std::to_string(i) + ",64000,1024,2,T4\n";
  return read(nodes, "a,1000,1,1,1000,\nb,1000,1,0,0,\nc,1000,1,1,500,\n");
}

TEST(TraceRun, PodsArriveUntilTheyAskForTheInflation) {
  const auto result = run_trace(small(), {.policy = "best-fit", .seed = 3, .inflate_milli = 1500});
  ASSERT_TRUE(result);
  ASSERT_THAT(result->points, SizeIs(150));
  EXPECT_GE(result->pods, 12);  // 12 GPUs, of one at most each
  EXPECT_GT(result->failed, 0);
  EXPECT_EQ(result->points[149].gpu_allocation_percent, 100);
  EXPECT_EQ(result->points[149].fragmentation_ratio_percent, 0) << "nothing is free";
  EXPECT_LT(result->points[9].gpu_allocation_percent, 30);
}

TEST(TraceRun, TheListComesFirstAndWhole) {
  // One pod of each size: 1 + 2 + 4 + 8 GPUs of 15, each once.
  const Trace trace = read("n,64000,1024,15,T4\n", "a,1,1,1,1000,\nb,1,1,2,1000,\nc,1,1,4,1000,\nd,1,1,8,1000,\n");
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto result = run_trace(trace, {.policy = "fgd", .seed = seed, .inflate_milli = 1000});
    ASSERT_TRUE(result);
    EXPECT_EQ(result->pods, 4);
    EXPECT_EQ(result->failed, 0);
    EXPECT_EQ(result->points.back().gpu_allocation_percent, 100);
  }
}

TEST(TraceRun, TheSameSeedGivesTheSameResult) {
  const Trace trace = small();
  for (const auto& policy : packing::placement_policies()) {
    const TraceOptions options = {.policy = std::string(policy.name), .seed = 42, .inflate_milli = 1300};
    EXPECT_EQ(trace_json(*run_trace(trace, options), 1), trace_json(*run_trace(trace, options), 1)) << policy.name;
  }
  EXPECT_NE(trace_json(*run_trace(trace, {.seed = 1}), 1), trace_json(*run_trace(trace, {.seed = 2}), 1));
}

TEST(TraceRun, ABatchOfOneIsAsIfThereWereNone) {
  const auto none = run_trace(small(), {.seed = 5});
  const auto one = run_trace(small(), {.seed = 5, .batch = 1});
  ASSERT_TRUE(none && one);
  EXPECT_EQ(one->failed, none->failed);
  for (size_t p = 0; p < none->points.size(); ++p)
    EXPECT_EQ(one->points[p].gpu_allocation_percent, none->points[p].gpu_allocation_percent) << p;
  EXPECT_THAT(trace_json(*one, 1), HasSubstr("\"batch\": 1,"));
}

TEST(TraceRun, PodsWaitForTheirBatch) {
  const auto all = run_trace(small(), {.seed = 5, .batch = kBatchAll});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->points[99].gpu_allocation_percent, 0);
  EXPECT_EQ(all->points[129].gpu_allocation_percent, 100);
  EXPECT_THAT(trace_json(*all, 1), HasSubstr("\"batch\": \"all\""));
  const auto some = run_trace(small(), {.seed = 5, .batch = 4});
  ASSERT_TRUE(some);
  EXPECT_LT(some->points[0].gpu_allocation_percent, some->points[99].gpu_allocation_percent);
}

TEST(TraceRun, SaysWhoArrives) {
  const TraceOptions options = {.seed = 5};
  const auto arrivals = trace_arrivals(small(), options);
  ASSERT_TRUE(arrivals);
  EXPECT_THAT(*arrivals, SizeIs(run_trace(small(), options)->pods));
}

TEST(TraceRun, DrawsItsCurves) {
  const auto result = run_trace(small(), {.seed = 5});
  ASSERT_TRUE(result);
  const std::string svg = trace_svg(*result);
  EXPECT_THAT(svg, testing::StartsWith("<svg xmlns="));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
  EXPECT_THAT(svg, HasSubstr("class=\"allocated\" points=\""));
  EXPECT_THAT(svg, HasSubstr("allocated 100.0%"));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  const auto least = run_trace(small(), {.seed = 5, .inflate_milli = kInflateMilliMin});
  ASSERT_TRUE(least);
  EXPECT_THAT(least->points, testing::Not(IsEmpty()));
  EXPECT_EQ(trace_svg(*least).find("nan"), std::string::npos);
}

TEST(TraceRun, RefusesWhatMakesNoRun) {
  const auto refused = [](const Trace& trace, const TraceOptions& options) {
    const auto result = run_trace(trace, options);
    return result ? std::string("it ran") : result.error().message;
  };
  EXPECT_THAT(refused(small(), {.policy = "best"}), HasSubstr("there is no policy 'best'"));
  EXPECT_THAT(refused(small(), {.inflate_milli = 0}), HasSubstr("at least 0.01"));
  EXPECT_THAT(refused(small(), {.policy = "fgd", .batch = 10}), HasSubstr("no batches are planned with fgd"));
  EXPECT_THAT(refused(read("n,1,1,0,\n", "a,1,1,1,1000,\n"), {}), HasSubstr("the nodes have no GPU"));
  EXPECT_THAT(refused(read("n,1,1,1,T4\n", "a,1,1,0,0,\n"), {}), HasSubstr("the pods ask for no GPU"));
  std::string idle = "a,1,1,1,1,\n";
  for (int i = 0; i < 10'000; ++i) idle += "p" + std::to_string(i) + ",1,1,0,0,\n";
  EXPECT_THAT(refused(read("n,1,1,1,T4\n", idle), {}), HasSubstr("more than 10000000 would arrive"));
}

// The public lists, in the folder openb of the one that BERTH_TRACES names.
class PublishedTraces : public testing::Test {
 protected:
  void SetUp() override {
    const char* const folder = std::getenv("BERTH_TRACES");  // deterministic: a test
    if (folder == nullptr) GTEST_SKIP() << "BERTH_TRACES names no folder with the openb traces; see docs/traces.md";
    api::Problems problems;
    read_trace_nodes(text(std::string(folder) + "/openb/openb_node_list_gpu_node.csv"), "nodes", trace_, problems);
    read_trace_pods(text(std::string(folder) + "/openb/openb_pod_list_default.csv"), "pods", trace_, problems);
    ASSERT_THAT(told(problems), IsEmpty());
  }

  static std::string text(const std::string& path) {
    std::ifstream file(path);
    EXPECT_TRUE(file) << path;
    std::ostringstream out;
    out << file.rdbuf();
    return out.str();
  }

  // Allocation at 130 %, the mean of three seeds.
  double allocation(const std::string& policy) const {
    double sum = 0;
    for (uint64_t seed = 42; seed < 45; ++seed)
      sum += run_trace(trace_, {.policy = policy, .seed = seed})->points.back().gpu_allocation_percent;
    return sum / 3;
  }

  Trace trace_;
};

TEST_F(PublishedTraces, FgdAllocatesWhatThePaperPublished) { EXPECT_NEAR(allocation("fgd"), 95.39, 0.5); }
TEST_F(PublishedTraces, BerthAllocatesMoreThanFgd) {
  EXPECT_GT(allocation("berth"), allocation("fgd") + 0.8);
  EXPECT_GT(allocation("berth-told"), allocation("fgd") + 0.8);
}
TEST_F(PublishedTraces, AllInOneBatchAllocateNearlyEveryGpu) {
  const auto result = run_trace(trace_, {.seed = 42, .batch = kBatchAll});
  ASSERT_TRUE(result);
  EXPECT_GE(result->points.back().gpu_allocation_percent, 99.5);
}
TEST_F(PublishedTraces, BatchesOfAHundredAllocateMoreThanNone) {
  const TraceOptions options = {.seed = 42, .batch = 100};
  EXPECT_GT(run_trace(trace_, options)->points.back().gpu_allocation_percent,
            run_trace(trace_, {.seed = 42})->points.back().gpu_allocation_percent);
}
TEST_F(PublishedTraces, BestFitAllocatesWhatThePaperPublished) { EXPECT_NEAR(allocation("best-fit"), 93.08, 0.5); }

}  // namespace
}  // namespace berth::scenario
