// JobsInSight: a pod waits for its Job until that has been seen, or for ten seconds.
#include "queueing/jobs_in_sight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::queueing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Time at(int64_t seconds) { return Time{} + Duration::seconds(seconds); }

TEST(JobsInSight, APodWaitsUntilItsJobHasBeenSeen) {
  JobsInSight jobs;
  EXPECT_TRUE(jobs.awaits("uid-a", true, at(0)));
  EXPECT_TRUE(jobs.awaits("uid-a", false, at(1)));
  EXPECT_THAT(jobs.take_settled(at(1)), IsEmpty());
  jobs.see({"default", "a"}, "uid-a");
  EXPECT_FALSE(jobs.awaits("uid-a", true, at(1)));
  EXPECT_THAT(jobs.take_settled(at(1)), ElementsAre("uid-a"));
  EXPECT_THAT(jobs.take_settled(at(1)), IsEmpty()) << "told once";
  jobs.see({"default", "b"}, "uid-b");
  EXPECT_FALSE(jobs.awaits("uid-b", true, at(1)));
  EXPECT_THAT(jobs.take_settled(at(2)), IsEmpty()) << "nobody waited";
}

TEST(JobsInSight, APodWhoseJobDoesNotComeWaitsNoLongerThanTenSeconds) {
  JobsInSight jobs;
  EXPECT_TRUE(jobs.awaits("uid-a", true, at(0)));
  EXPECT_TRUE(jobs.awaits("uid-a", true, at(9))) << "another pod of the Job; the first decides for how long";
  EXPECT_THAT(jobs.take_settled(at(9)), IsEmpty());
  EXPECT_THAT(jobs.take_settled(at(10)), ElementsAre("uid-a"));
  EXPECT_FALSE(jobs.awaits("uid-a", false, at(11))) << "one that changes later does not wait again";
  EXPECT_TRUE(jobs.awaits("uid-a", true, at(11)));
}

TEST(JobsInSight, OfTwoJobsByOneNameTheOneThatIsThereCounts) {
  JobsInSight jobs;
  jobs.see({"default", "a"}, "uid-old");
  jobs.see({"default", "a"}, "uid-new");
  EXPECT_TRUE(jobs.awaits("uid-old", true, at(0)));
  EXPECT_FALSE(jobs.awaits("uid-new", true, at(0)));
  jobs.gone({"default", "a"});
  jobs.gone({"default", "a"});
  EXPECT_TRUE(jobs.awaits("uid-new", true, at(0)));
  EXPECT_THAT(jobs.take_settled(at(10)), ElementsAre("uid-new", "uid-old"));
}

}  // namespace
}  // namespace berth::queueing
