// Jobs that end at the moment at which they are evicted.
#include "queueing/desk.h"
#include "queueing/desk_world.h"

namespace berth::queueing {
namespace {

using Json = nlohmann::json;

Json condition_of(const char* type) {
  return {{"type", type}, {"status", "True"}, {"lastTransitionTime", "2026-01-01T00:00:09Z"}, {"reason", "Because"}};
}

struct DeskEndingTest : World, ::testing::TestWithParam<const char*> {
  // A Job that borrows and runs, for whose quota another asks.
  void evict(const char* name) {
    submit(name, "red", 8);
    settle();
    change(name, {{"metadata", {{"generation", 2}}},
                  {"status", {{"active", 1}, {"startTime", "2026-01-01T00:00:00Z"}, {"conditions", Json::array()}}}});
    submit("own", "blue", 4);
    for (int i = 0; i < 2; ++i)
      for (const Write& write : look()) store(write);
  }
  void controller_says(const char* name, const std::vector<const char*>& types, int active = 0) {
    Json conditions = Json::array();
    for (const char* type : types) conditions.push_back(condition_of(type));
    change(name, {{"status", {{"active", active}, {"conditions", conditions}}}});
  }
  std::string start_of(const char* name) { return jobs[name]["status"].value("startTime", ""); }
  const char* ending() const { return GetParam(); }
  void ends(const char* name) {
    controller_says(name, {ending(), std::string(ending()) == "FailureTarget" ? "Failed" : "Complete"});
    settle();
    EXPECT_EQ(condition(name, "Finished").substr(0, 4), "True");
    EXPECT_EQ(condition("own", "Admitted"), "True Admitted");
  }
};

TEST_P(DeskEndingTest, OneThatIsAboutToEndIsNotStopped) {
  evict("borrower");
  controller_says("borrower", {ending()});
  settle();
  EXPECT_FALSE(suspended("borrower"));
  EXPECT_EQ(start_of("borrower"), "2026-01-01T00:00:00Z");
  EXPECT_EQ(condition("own", "QuotaReserved").substr(0, 5), "False") << "it has its quota until it has ended";
  ends("borrower");
}

TEST_P(DeskEndingTest, OneThatWasStoppedKeepsItsStartUntilItsControllerHasSeenThat) {
  evict("borrower");
  settle();
  ASSERT_TRUE(suspended("borrower"));
  controller_says("borrower", {});
  settle();
  EXPECT_EQ(start_of("borrower"), "2026-01-01T00:00:00Z") << "it may have ended before";
  controller_says("borrower", {ending()});
  settle();
  EXPECT_EQ(start_of("borrower"), "2026-01-01T00:00:00Z");
  ends("borrower");
}

TEST_P(DeskEndingTest, OneThatHasLostItsStartIsGivenOneAndNothingElse) {
  for (const bool admitted_anew : {false, true}) {
    const char* name = admitted_anew ? "anew" : "waits";
    evict(name);
    settle();
    controller_says(name, {"Suspended"});
    settle();
    ASSERT_EQ(start_of(name), "");
    if (admitted_anew) controller_says("own", {"Complete"});
    controller_says(name, {ending()});
    settle();
    EXPECT_EQ(start_of(name), "2026-01-01T00:00:09Z");
    EXPECT_TRUE(suspended(name));
    if (!admitted_anew) controller_says("own", {"Complete"});
    controller_says(name, {ending(), std::string(ending()) == "FailureTarget" ? "Failed" : "Complete"});
    settle();
    EXPECT_EQ(condition(name, "Finished").substr(0, 4), "True");
    for (const char* each : {name, "own"}) {
      desk.job_gone("default", each);
      desk.workload_gone("default", workload(each)["metadata"]["name"]);
      workloads.erase(workload(each)["metadata"]["name"].get<std::string>());
      jobs.erase(each);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Conditions, DeskEndingTest, ::testing::Values("SuccessCriteriaMet", "FailureTarget"));

}  // namespace
}  // namespace berth::queueing
