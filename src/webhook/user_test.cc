// Whose a Job or pod is: who brings it into a queue is written down, and stays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "webhook/mutate.h"
#include "webhook/validate.h"

namespace berth::webhook {
namespace {

using ::testing::HasSubstr;

const Json kInQueue = Json{{"kueue.x-k8s.io/queue-name", "lq"}};
const Json kPartOfASet = Json::array(
    {{{"apiVersion", "jobset.x-k8s.io/v1alpha2"}, {"kind", "JobSet"}, {"name", "s"}, {"controller", true}}});

// Ann asks: a Job or pod with these labels that says whose it is; "": it says nothing.
AdmissionRequest ann_creates(const std::string& kind, const Json& labels, const std::string& user) {
  AdmissionRequest request;
  request.uid = "u";
  request.group = kind == "Job" ? "batch" : "";
  request.version = "v1";
  request.kind = kind;
  request.operation = "CREATE";
  request.user = "ann";
  request.object = Json{{"metadata", {{"name", "x"}, {"labels", labels}}}};
  if (!user.empty()) request.object["metadata"]["annotations"] = Json{{"berth.dev/user", user}};
  const Json pod_spec{{"containers", Json::array()}};
  request.object["spec"] = kind == "Job" ? Json{{"suspend", true}, {"template", {{"spec", pod_spec}}}} : pod_spec;
  return request;
}

// Of one that said otherwise before.
AdmissionRequest ann_updates(const std::string& kind, const Json& labels_before, const std::string& user_before,
                             const Json& labels, const std::string& user) {
  AdmissionRequest request = ann_creates(kind, labels, user);
  request.operation = "UPDATE";
  request.old_object = ann_creates(kind, labels_before, user_before).object;
  return request;
}

// What mutate() makes of who it is; "unchanged": nothing is changed at all.
std::string named_by(const AdmissionRequest& request) {
  const AdmissionAnswer answer = mutate(request, {});
  if (answer.object.is_null()) return "unchanged";
  if (request.operation == "UPDATE") {
    Json rest = answer.object;
    rest["metadata"]["annotations"] = request.object["metadata"]["annotations"];
    EXPECT_EQ(rest, request.object) << "it may run, and then nothing else can change";
  }
  return answer.object["metadata"]["annotations"].value("berth.dev/user", "");
}

constexpr const char* kKinds[] = {"Job", "Pod"};

TEST(User, WhoCreatesItIsWrittenDownWhateverItSays) {
  for (const char* kind : kKinds) {
    EXPECT_EQ(named_by(ann_creates(kind, kInQueue, "")), "ann");
    AdmissionRequest request = ann_creates(kind, kInQueue, "bob");
    request.object["metadata"]["annotations"]["other"] = "stays";
    EXPECT_EQ(mutate(request, {}).object["metadata"]["annotations"],
              (Json{{"berth.dev/user", "ann"}, {"other", "stays"}}));
  }
}

TEST(User, OfWhatSaysThatItIsPartOfAWholeIsWhoCreatesItToo) {
  for (const char* kind : kKinds) {
    AdmissionRequest request = ann_creates(kind, kInQueue, "bob");
    request.object["metadata"]["ownerReferences"] = kPartOfASet;
    Json expected = request.object;
    expected["metadata"]["annotations"] = Json{{"berth.dev/user", "ann"}};
    EXPECT_EQ(mutate(request, {}).object, expected) << "and nothing else is changed";
    AdmissionRequest later = ann_updates(kind, Json::object(), "nobody-1", kInQueue, "nobody-1");
    later.object["metadata"]["ownerReferences"] = later.old_object["metadata"]["ownerReferences"] = kPartOfASet;
    EXPECT_EQ(named_by(later), "ann");
    EXPECT_TRUE(validate(AdmissionRequest(later), {}).allowed) << "as it came";
    later.object["metadata"]["annotations"]["berth.dev/user"] = "nobody-2";
    EXPECT_FALSE(validate(later, {}).allowed);
    later.object["metadata"]["annotations"]["berth.dev/user"] = "ann";
    EXPECT_TRUE(validate(later, {}).allowed) << "as mutate() has made it";
  }
}

TEST(User, WhoPutsItIntoAQueueLaterIsWrittenDownAndNothingElseChanges) {
  for (const char* kind : kKinds) {
    const Json none = Json::object(), empty{{"kueue.x-k8s.io/queue-name", ""}},
               other{{"kueue.x-k8s.io/queue-name", "o"}};
    EXPECT_EQ(named_by(ann_updates(kind, none, "nobody-1", kInQueue, "nobody-1")), "ann");
    EXPECT_EQ(named_by(ann_updates(kind, empty, "nobody-1", kInQueue, "nobody-2")), "ann");
    EXPECT_EQ(named_by(ann_updates(kind, none, "nobody-1", none, "nobody-2")), "unchanged");
    EXPECT_EQ(named_by(ann_updates(kind, other, "bob", kInQueue, "bob")), "unchanged") << "it takes its user along";
    EXPECT_EQ(named_by(ann_updates(kind, kInQueue, "bob", kInQueue, "bob")), "unchanged");
  }
  AdmissionRequest status = ann_updates("Job", Json::object(), "nobody-1", kInQueue, "nobody-1");
  status.subresource = "status";
  EXPECT_EQ(named_by(status), "unchanged");
}

TEST(User, WhoTakesItOutOfItsWholeIsWrittenDown) {
  AdmissionRequest request = ann_updates("Job", kInQueue, "nobody-1", kInQueue, "nobody-1");
  request.old_object["metadata"]["ownerReferences"] = kPartOfASet;
  EXPECT_EQ(named_by(request), "ann");
  request.object["metadata"]["ownerReferences"] = kPartOfASet;
  EXPECT_EQ(named_by(request), "unchanged");
}

TEST(User, StaysAsItWasWritten) {
  for (const char* kind : kKinds) {
    AdmissionRequest update = ann_updates(kind, kInQueue, "ann", kInQueue, "ann");
    update.object["metadata"]["annotations"]["other"] = "new";
    EXPECT_TRUE(validate(update, {}).allowed);
    EXPECT_EQ(validate(ann_updates(kind, kInQueue, "ann", kInQueue, "bob"), {}).message,
              "metadata.annotations[berth.dev/user]: Invalid value: \"bob\": who submitted it stays as it was written");
    EXPECT_FALSE(validate(ann_updates(kind, kInQueue, "ann", kInQueue, ""), {}).allowed);
    EXPECT_FALSE(validate(ann_updates(kind, kInQueue, "bob", kInQueue, "ann"), {}).allowed) << "nor to who asks";
    EXPECT_THAT(validate(ann_updates(kind, kInQueue, "ann", Json::object(), "bob"), {}).message,
                HasSubstr("stays as it was written"))
        << "nor on its way out";
  }
}

TEST(User, OfWhatComesIntoAQueueLaterIsWhoAsksAndNobodyElse) {
  for (const char* kind : kKinds) {
    EXPECT_TRUE(validate(ann_updates(kind, Json::object(), "nobody-1", kInQueue, "ann"), {}).allowed);
    EXPECT_FALSE(validate(ann_updates(kind, Json::object(), "nobody-1", kInQueue, "nobody-2"), {}).allowed);
  }
}

}  // namespace
}  // namespace berth::webhook
