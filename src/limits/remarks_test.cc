#include "limits/remarks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "limits/limits_testing.h"

namespace berth::limits {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Remarks, NameWhatAQuotaNeverCounts) {
  EXPECT_THAT(remarks(quota_of("{hard: {limits.nvidia.com/gpu: 4, nvidia.com/gpu: 4, requests.nvidia.com/gpu: 4, "
                               "gold.storageclass.storage.k8s.io/requests.storage: 1Ti, pods: 4}}")),
              ElementsAre("limits.nvidia.com/gpu limits nothing: of nvidia.com/gpu only requests are counted; write "
                          "requests.nvidia.com/gpu",
                          HasSubstr("nvidia.com/gpu limits nothing")));
}

TEST(Remarks, NameWhatIsNotCountedHere) {
  EXPECT_THAT(remarks(quota_of("{hard: {count/jobs.batch: 4, count/secrets: 4}}")),
              ElementsAre("count/secrets is not counted here"));
}

TEST(Remarks, TellOfGpusThatNobodyAskedFor) {
  EXPECT_THAT(remarks(range_of("{type: Container, max: {nvidia.com/gpu: 4, cpu: 8}}")),
              ElementsAre(HasSubstr("each container that names no nvidia.com/gpu gets 4")));
  EXPECT_THAT(remarks(range_of("{type: Container, max: {nvidia.com/gpu: 4}, default: {nvidia.com/gpu: 0}, "
                               "defaultRequest: {nvidia.com/gpu: 0}}")),
              IsEmpty());
}

TEST(Remarks, TellOfPodsThatAMaximumKeepsOut) {
  const std::string eight = "{type: Pod, max: {nvidia.com/gpu: 8}}";
  EXPECT_THAT(remarks(range_of(eight)), ElementsAre(HasSubstr("a pod that names no nvidia.com/gpu is refused")));
  EXPECT_THAT(remarks(range_of(eight + ", {type: Container, default: {nvidia.com/gpu: 0}}")), IsEmpty());
}

}  // namespace
}  // namespace berth::limits
