// Conversion between the two versions of Kueue's API: what is renamed, and that nothing is lost on the way there and
// back.
#include "webhook/convert.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "webhook/review.h"
#include "webhook/topology_assignment.h"

namespace berth::webhook {
namespace {

Json json(const char* text) { return Json::parse(text); }

Json object(const char* kind, std::string_view version, const char* members) {
  Json out = json(members);
  out["apiVersion"] = version;
  out["kind"] = kind;
  if (!out.contains("metadata")) out["metadata"] = Json{{"name", "x"}};
  return out;
}
Json older(const char* kind, const char* members) { return object(kind, kOlderVersion, members); }
Json stored(const char* kind, const char* members) { return object(kind, kStoredVersion, members); }

Result<Json> try_convert(const Json& from, std::string_view version) {
  UnpackBudget budget;
  return convert_kueue(from, version, budget);
}

Json convert(const Json& from, std::string_view version) {
  auto out = try_convert(from, version);
  EXPECT_TRUE(out.has_value()) << out.error().message << "\n" << from.dump(1);
  return out ? *out : Json();
}

// Its spec and status in the other version, without what is kept.
void expect_members(const Json& from, std::string_view version, const char* members) {
  Json out = convert(from, version);
  EXPECT_EQ(out["apiVersion"], version);
  for (const char* key : {"apiVersion", "kind", "metadata"}) out.erase(key);
  EXPECT_EQ(out, json(members));
}

TEST(Convert, NamesOfQueuesAndCohorts) {
  expect_members(older("ClusterQueue", R"({"spec":{"cohort":"all"}})"), kStoredVersion,
                 R"({"spec":{"cohortName":"all"}})");
  expect_members(stored("ClusterQueue", R"({"spec":{"cohortName":"all"}})"), kOlderVersion,
                 R"({"spec":{"cohort":"all"}})");
  expect_members(older("Cohort", R"({"spec":{"parent":"root"}})"), kStoredVersion, R"({"spec":{"parentName":"root"}})");
  expect_members(stored("Cohort", R"({"spec":{"parentName":"root"}})"), kOlderVersion,
                 R"({"spec":{"parentName":"root"}})");
  expect_members(stored("LocalQueue", R"({"status":{"flavorsUsage":[{"name":"a"}]}})"), kOlderVersion,
                 R"({"status":{"flavorUsage":[{"name":"a"}]}})");
  const char* used = R"({"status":{"fairSharing":{"weightedShare":0,"admissionFairSharingStatus":{
      "consumedResources":{"nvidia.com/gpu":"3.25"},"lastUpdate":"2026-11-23T16:00:00.000000Z"}}}})";
  expect_members(stored("LocalQueue", used), kOlderVersion, used);
  expect_members(older("LocalQueue", used), kStoredVersion, used);
}

TEST(Convert, WordsAndChecksOfClusterQueues) {
  expect_members(
      older(
          "ClusterQueue",
          R"({"spec":{"admissionChecks":["a","b"],"flavorFungibility":{"whenCanBorrow":"Borrow","whenCanPreempt":"Preempt"}}})"),
      kStoredVersion,
      R"({"spec":{"admissionChecksStrategy":{"admissionChecks":[{"name":"a"},{"name":"b"}]},
                  "flavorFungibility":{"whenCanBorrow":"MayStopSearch","whenCanPreempt":"MayStopSearch"}}})");
}

TEST(Convert, PrioritiesAndTimesOfWorkloads) {
  const char* before =
      R"({"spec":{"priorityClassName":"high","priorityClassSource":"kueue.x-k8s.io/workloadpriorityclass","priority":5},
          "status":{"accumulatedPastExexcutionTimeSeconds":7}})";
  const char* after =
      R"({"spec":{"priorityClassRef":{"group":"kueue.x-k8s.io","kind":"WorkloadPriorityClass","name":"high"},"priority":5},
          "status":{"accumulatedPastExecutionTimeSeconds":7}})";
  expect_members(older("Workload", before), kStoredVersion, after);
  expect_members(stored("Workload", after), kOlderVersion, before);
  EXPECT_FALSE(convert(older("Workload", before), kStoredVersion)["metadata"].contains("annotations"));
}

std::optional<Json> unpacked(const Json& assignment) {
  UnpackBudget budget;
  return unpack_domains(assignment, budget);
}

TEST(Convert, TopologyAssignments) {
  const Json domains = json(R"({"levels":["block","rack"],"domains":[{"values":["b1","r1"],"count":4},
                                                                     {"values":["b1","r2"],"count":2}]})");
  const Json slices = json(R"({"levels":["block","rack"],"slices":[{"domainCount":2,
      "valuesPerLevel":[{"universal":"b1"},{"individual":{"roots":["r1","r2"]}}],"podCounts":{"individual":[4,2]}}]})");
  EXPECT_EQ(pack_domains(domains), slices);
  EXPECT_EQ(unpacked(slices), domains);
  EXPECT_EQ(
      unpacked(json(R"({"levels":["host"],"slices":[
      {"domainCount":2,"valuesPerLevel":[{"individual":{"prefix":"rack-1-","suffix":".x","roots":["a","b"]}}],
       "podCounts":{"universal":1}},
      {"domainCount":1,"valuesPerLevel":[{"universal":"h"}],"podCounts":{"individual":[3]}}]})")),
      json(R"({"levels":["host"],"domains":[{"values":["rack-1-a.x"],"count":1},{"values":["rack-1-b.x"],"count":1},
                                                   {"values":["h"],"count":3}]})"));
  EXPECT_EQ(unpacked(json(R"({"levels":["host"],"slices":[
      {"domainCount":2,"valuesPerLevel":[{"individual":{"roots":["a"]}}],"podCounts":{"universal":1}}]})")),
            std::nullopt);
}

TEST(Convert, AFewBytesThatStandForTooManyDomainsHaveNoOtherForm) {
  const Json bomb = json(R"({"levels":["host"],"slices":[{"domainCount":2000000000,
      "valuesPerLevel":[{"universal":"a"}],"podCounts":{"universal":1}}]})");
  EXPECT_EQ(unpacked(bomb), std::nullopt);
  Json workload = stored("Workload", R"({"status":{"admission":{"podSetAssignments":[{"name":"main"}]}}})");
  workload["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"] = bomb;
  const Json there = convert(workload, kOlderVersion);
  EXPECT_FALSE(there["status"]["admission"]["podSetAssignments"][0].contains("topologyAssignment"));
}

TEST(Convert, WhatOneVersionCannotSayComesBack) {
  for (const Json& from : {
           older("ClusterQueue",
                 R"({"spec":{"admissionChecks":["a"],"flavorFungibility":{"whenCanBorrow":"Borrow"}}})"),
           older("ClusterQueue", R"({"spec":{"admissionChecksStrategy":{"admissionChecks":[]},"admissionChecks":[]}})"),
           older("Cohort", R"({"spec":{"parent":"root"},"metadata":{"name":"x","annotations":{"a":"b"}}})"),
           older("Workload", R"({"spec":{"priorityClassName":"high","priorityClassSource":""}})"),
           older("AdmissionCheck", R"({"spec":{"controllerName":"c","retryDelayMinutes":15}})"),
           stored("ResourceFlavor", R"({"spec":{"resourceWeights":{"nvidia.com/gpu":"2"}}})"),
           stored("ClusterQueue", R"({"spec":{"flavorFungibility":{"whenCanBorrow":"TryNextFlavor",
               "whenCanPreempt":"TryNextFlavor","preference":"PreemptionOverBorrowing"},
               "concurrentAdmissionPolicy":{"migration":{"mode":"RetainFirstAdmission"}}}})"),
           stored("Workload", R"({"status":{"admission":{"podSetAssignments":[{"name":"main","topologyAssignment":
               {"levels":["h"],"slices":[{"domainCount":1,"podCounts":{"individual":[2]},
                "valuesPerLevel":[{"individual":{"prefix":"a-","roots":["b"]}}]}]}}]}}})"),
       }) {
    const bool is_older = from["apiVersion"] == kOlderVersion;
    const Json there = convert(from, is_older ? kStoredVersion : kOlderVersion);
    EXPECT_NE(there["metadata"], from["metadata"]) << from.dump();
    EXPECT_EQ(convert(there, is_older ? kOlderVersion : kStoredVersion), from);
  }
}

TEST(Convert, WhatWasChangedMeanwhileIsNotUndone) {
  Json queue = convert(older("ClusterQueue", R"({"spec":{"admissionChecks":["a"],"cohort":"all"}})"), kStoredVersion);
  queue["spec"]["cohortName"] = "other";
  EXPECT_EQ(convert(queue, kOlderVersion)["spec"], json(R"({"admissionChecks":["a"],"cohort":"other"})"));
  queue["spec"]["admissionChecksStrategy"]["admissionChecks"].push_back(Json{{"name", "b"}});
  const Json back = convert(queue, kOlderVersion);
  EXPECT_EQ(back["spec"],
            json(R"({"admissionChecksStrategy":{"admissionChecks":[{"name":"a"},{"name":"b"}]},"cohort":"other"})"));
  EXPECT_FALSE(back["metadata"].contains("annotations"));
}

TEST(Convert, APreferenceThatNoLongerFitsGoes) {
  Json queue = convert(stored("ClusterQueue", R"({"spec":{"flavorFungibility":{"whenCanBorrow":"TryNextFlavor",
      "whenCanPreempt":"TryNextFlavor","preference":"PreemptionOverBorrowing"}}})"),
                       kOlderVersion);
  queue["spec"]["flavorFungibility"]["whenCanBorrow"] = "Borrow";
  EXPECT_EQ(convert(queue, kStoredVersion)["spec"]["flavorFungibility"],
            json(R"({"whenCanBorrow":"MayStopSearch","whenCanPreempt":"TryNextFlavor"})"));
}

// With a note in this annotation, the object becomes what it becomes without.
void expect_unheeded(Json from, const char* annotation, const std::string& note) {
  const std::string_view version = from["apiVersion"] == kOlderVersion ? kStoredVersion : kOlderVersion;
  const Json without = convert(from, version);
  from["metadata"]["annotations"] = Json{{annotation, note}};
  EXPECT_EQ(convert(from, version), without) << note;
}

// Whoever may write an annotation does not thereby write a status, or a quota that the other version shows.
TEST(Convert, AForgedNoteChangesNothingThatTheOtherVersionShows) {
  Json workload =
      older("Workload", R"({"spec":{"queueName":"q","priority":1},"status":{"admission":{"clusterQueue":"mine"}}})");
  for (const char* note : {
           R"([{"at":["status","admission"],"is":{"clusterQueue":"mine"},"was":{"clusterQueue":"theirs"}}])",
           R"([{"at":["spec"],"is":{"priority":1},"was":{"priority":1000}}])",
           R"([{"at":["spec"],"is":{},"was":{"active":false}}])",
           R"([{"at":["metadata"],"is":{},"was":{"finalizers":["x"]}}])",
           R"([{"at":[],"is":{},"was":{"status":{}}}])",
           R"([{"at":["spec",7],"is":{},"was":{}},{"at":"spec"},3,null])",
           "not json",
       })
    expect_unheeded(workload, "berth.dev/kept-v1beta2", note);
}

// Nor where what it says is not seen in the other version.
TEST(Convert, AForgedNoteAddsNothingToAStatus) {
  Json workload = older("Workload", R"({"status":{"admission":{"podSetAssignments":[{"name":"main"}]}}})");
  for (const char* assignment : {
           R"({"levels":["h"],"slices":[{"domainCount":4000000000,"valuesPerLevel":[{"universal":"a"}],
               "podCounts":{"universal":1}}]})",
           R"({"levels":["h"],"slices":[{"domainCount":1,"valuesPerLevel":[{"universal":"a"}],
               "podCounts":{"universal":1}}]})",
           R"({"levels":["h"],"slices":"junk"})",
           "7",
       })
    expect_unheeded(workload, "berth.dev/kept-v1beta2",
                    std::string(R"([{"at":["status","admission","podSetAssignments",0],"is":{},"was":)") +
                        R"({"topologyAssignment":)" + assignment + "}}]");
  expect_unheeded(stored("LocalQueue", R"({"status":{"pendingWorkloads":1}})"), "berth.dev/kept-v1beta1",
                  R"([{"at":["status"],"is":{},"was":{"flavors":[{"name":"forged"}]}}])");
  expect_unheeded(stored("ClusterQueue", R"({"status":{"pendingWorkloads":1}})"), "berth.dev/kept-v1beta1",
                  R"([{"at":["status"],"is":{},"was":{"pendingWorkloadsStatus":"x"}}])");
}

TEST(Convert, OnlySlicesThatStandForTheSameDomainsComeBack) {
  const char* sets = R"({"status":{"admission":{"podSetAssignments":[{"topologyAssignment":{"levels":["h"],"domains":[
      {"values":["a1"],"count":2},{"values":["a2"],"count":2}]}}]}}})";
  const Json packed = convert(older("Workload", sets), kStoredVersion)["status"]["admission"]["podSetAssignments"][0];
  const auto with_slices = [&](const std::string& values, const std::string& counts, const std::string& more = "") {
    Json workload = older("Workload", sets);
    Json was{{"topologyAssignment", {{"levels", {"h"}}}}};
    was["topologyAssignment"]["slices"] =
        json(("[{\"domainCount\":2,\"valuesPerLevel\":[" + values + "],\"podCounts\":" + counts + more + "}]").c_str());
    const Json note{{"at", {"status", "admission", "podSetAssignments", 0}}, {"is", packed}, {"was", was}};
    workload["metadata"]["annotations"]["berth.dev/kept-v1beta2"] = Json::array({note}).dump();
    const Json out = convert(workload, kStoredVersion)["status"]["admission"]["podSetAssignments"][0];
    EXPECT_TRUE(out == was || out == packed) << out.dump();
    return out == was;
  };
  const std::string same = R"({"individual":{"prefix":"a","roots":["1","2"]}})";
  EXPECT_TRUE(with_slices(same, R"({"individual":[2,2]})"));
  EXPECT_FALSE(with_slices(same, R"({"individual":[2,3]})"));
  EXPECT_FALSE(with_slices(same, R"({"individual":[2,2]})", R"(,"forged":1)"));
  EXPECT_FALSE(with_slices(R"({"individual":{"prefix":"b","roots":["1","2"]}})", R"({"universal":2})"));
}

// Annotations do not pass through the schemas.
TEST(Convert, ANoteRestoresOnlyWhatTheSchemasAllow) {
  const auto note = [](const char* was, const char* at = R"("spec")") {
    return std::string(R"([{"at":[)") + at + R"(],"is":{},"was":)" + was + "}]";
  };
  for (const char* was : {R"({"priorityClassRef":{"group":"kueue.x-k8s.io","kind":"WorkloadPriorityClass","name":5}})",
                          R"({"priorityClassRef":"garbage"})", R"({"anything":1})"})
    expect_unheeded(older("Workload", R"({"spec":{"priority":1}})"), "berth.dev/kept-v1beta2", note(was));
  const Json queue = older("ClusterQueue", R"({"spec":{"cohort":"c","flavorFungibility":
      {"whenCanBorrow":"TryNextFlavor","whenCanPreempt":"TryNextFlavor"}}})");
  for (const char* was : {R"({"concurrentAdmissionPolicy":7})", R"({"concurrentAdmissionPolicy":{"migration":{}}})"}) {
    Json members = queue;
    members["spec"].erase("cohort");
    expect_unheeded(members, "berth.dev/kept-v1beta2", note(was));
  }
  Json members = queue;
  members["spec"].erase("cohort");
  expect_unheeded(members, "berth.dev/kept-v1beta2",
                  note(R"({"preference":{"x":1}})", R"("spec","flavorFungibility")"));
  for (const char* was :
       {R"({"resourceWeights":"no map"})", R"({"resourceWeights":{"cpu":"x"}})", R"({"resourceWeights":{"cpu":-1}})"})
    expect_unheeded(older("ResourceFlavor", R"({"spec":{}})"), "berth.dev/kept-v1beta2", note(was));
  expect_unheeded(stored("Workload", R"({"spec":{"priority":1}})"), "berth.dev/kept-v1beta1",
                  note(R"({"priorityClassName":{"x":1}})"));
  expect_unheeded(stored("AdmissionCheck", R"({"spec":{}})"), "berth.dev/kept-v1beta1",
                  note(R"({"retryDelayMinutes":"x"})"));
}

// What 350 bytes stand for may take tens of megabytes.
TEST(Convert, DomainsOfARequestAreBounded) {
  const auto assignment = [](int domains) {
    return json((R"({"levels":["h"],"slices":[{"domainCount":)" + std::to_string(domains) +
                 R"(,"valuesPerLevel":[{"universal":"a"}],"podCounts":{"universal":1}}]})")
                    .c_str());
  };
  Json workload = stored("Workload", R"({"status":{"admission":{"podSetAssignments":[]}}})");
  for (int i = 0; i < 8; ++i)
    workload["status"]["admission"]["podSetAssignments"].push_back(
        Json{{"name", std::string(1, static_cast<char>('a' + i))}, {"topologyAssignment", assignment(20'000)}});
  const Json there = convert(workload, kOlderVersion);
  size_t with = 0;
  for (const Json& set : there["status"]["admission"]["podSetAssignments"]) with += set.contains("topologyAssignment");
  EXPECT_EQ(with, 1u);
  EXPECT_LT(there.dump().size(), size_t{1} << 20);
  Json review{{"apiVersion", "apiextensions.k8s.io/v1"}, {"kind", "ConversionReview"}};
  review["request"] = Json{{"uid", "u"}, {"desiredAPIVersion", kOlderVersion}, {"objects", Json(10, workload)}};
  const Json response = answer_conversion(review).value()["response"];
  EXPECT_EQ(response["result"]["status"], "Failed");
  EXPECT_NE(response["result"]["message"].get<std::string>().find("list fewer objects"), std::string::npos);
}

TEST(Convert, AListAsOneObjectIsAnError) {
  const Json list = older("ClusterQueueList", R"({"items":[{"spec":{"cohort":"a"}}]})");
  EXPECT_NE(try_convert(list, kStoredVersion).error().message.find("send its items"), std::string::npos);
}

TEST(Convert, OtherVersionsAndWhatIsNoObjectAreErrors) {
  EXPECT_NE(try_convert(older("Workload", "{}"), "kueue.x-k8s.io/v1").error().message.find("converts between"),
            std::string::npos);
  EXPECT_FALSE(try_convert(object("Workload", "batch/v1", "{}"), kStoredVersion));
  EXPECT_FALSE(try_convert(json("[]"), kStoredVersion));
  EXPECT_FALSE(try_convert(older("Workload", R"({"metadata":{"annotations":7}})"), kStoredVersion));
  EXPECT_EQ(convert(older("Workload", R"({"spec":7})"), kOlderVersion), older("Workload", R"({"spec":7})"));
}

TEST(Convert, WhatIsTooMuchToKeepIsAnErrorInASpecAndLeftOutOfAStatus) {
  Json flavor = stored("ResourceFlavor", R"({"spec":{}})");
  flavor["spec"]["resourceWeights"][std::string(kKeptBytesMax, 'a')] = 1;
  EXPECT_EQ(try_convert(flavor, kOlderVersion).error().code, ErrorCode::kUnsupported);
  Json queue = older("ClusterQueue", R"({"status":{"pendingWorkloads":3}})");
  queue["status"]["pendingWorkloadsStatus"]["x"] = std::string(kKeptBytesMax, 'a');
  EXPECT_EQ(convert(queue, kStoredVersion), stored("ClusterQueue", R"({"status":{"pendingWorkloads":3}})"));
}

}  // namespace
}  // namespace berth::webhook
