// Conversion between the two versions of Kueue's API: what is renamed, and that nothing is lost on the way there and
// back.
#include "webhook/convert.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/rng.h"
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

Json convert(const Json& from, std::string_view version) {
  auto out = convert_kueue(from, version);
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

TEST(Convert, TopologyAssignments) {
  const Json domains = json(R"({"levels":["block","rack"],"domains":[{"values":["b1","r1"],"count":4},
                                                                     {"values":["b1","r2"],"count":2}]})");
  const Json slices = json(R"({"levels":["block","rack"],"slices":[{"domainCount":2,
      "valuesPerLevel":[{"universal":"b1"},{"individual":{"roots":["r1","r2"]}}],"podCounts":{"individual":[4,2]}}]})");
  EXPECT_EQ(pack_domains(domains), slices);
  EXPECT_EQ(unpack_domains(slices), domains);
  EXPECT_EQ(
      unpack_domains(json(R"({"levels":["host"],"slices":[
      {"domainCount":2,"valuesPerLevel":[{"individual":{"prefix":"rack-1-","suffix":".x","roots":["a","b"]}}],
       "podCounts":{"universal":1}},
      {"domainCount":1,"valuesPerLevel":[{"universal":"h"}],"podCounts":{"individual":[3]}}]})")),
      json(R"({"levels":["host"],"domains":[{"values":["rack-1-a.x"],"count":1},{"values":["rack-1-b.x"],"count":1},
                                                   {"values":["h"],"count":3}]})"));
  EXPECT_EQ(unpack_domains(json(R"({"levels":["host"],"slices":[
      {"domainCount":2,"valuesPerLevel":[{"individual":{"roots":["a"]}}],"podCounts":{"universal":1}}]})")),
            std::nullopt);
}

TEST(Convert, AFewBytesThatStandForTooManyDomainsHaveNoOtherForm) {
  const Json bomb = json(R"({"levels":["host"],"slices":[{"domainCount":2000000000,
      "valuesPerLevel":[{"universal":"a"}],"podCounts":{"universal":1}}]})");
  EXPECT_EQ(unpack_domains(bomb), std::nullopt);
  Json workload = stored("Workload", R"({"status":{"admission":{"podSetAssignments":[{"name":"main"}]}}})");
  workload["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"] = bomb;
  const Json there = convert(workload, kOlderVersion);
  EXPECT_FALSE(there["status"]["admission"]["podSetAssignments"][0].contains("topologyAssignment"));
  EXPECT_EQ(convert(there, kStoredVersion), workload);
}

TEST(Convert, WhatOneVersionCannotSayComesBack) {
  for (const Json& from : {
           older("ClusterQueue", R"({"spec":{"admissionChecks":["a"],"flavorFungibility":{"whenCanBorrow":"Borrow"}},
                                     "status":{"pendingWorkloadsStatus":{"lastChangeTime":"2026-01-01T00:00:00Z"}}})"),
           older("ClusterQueue", R"({"spec":{"admissionChecksStrategy":{"admissionChecks":[]},"admissionChecks":[]}})"),
           older("Cohort", R"({"spec":{"parent":"root"},"metadata":{"name":"x","annotations":{"a":"b"}}})"),
           older("LocalQueue", R"({"status":{"flavorUsage":[],"flavors":[{"name":"a"}]}})"),
           older("Workload", R"({"spec":{"priorityClassName":"high","priorityClassSource":""}})"),
           older("AdmissionCheck", R"({"spec":{"controllerName":"c","retryDelayMinutes":15}})"),
           stored("ResourceFlavor", R"({"spec":{"resourceWeights":{"nvidia.com/gpu":"2"}}})"),
           stored("ClusterQueue", R"({"spec":{"flavorFungibility":{"whenCanBorrow":"TryNextFlavor",
               "whenCanPreempt":"TryNextFlavor","preference":"PreemptionOverBorrowing"},
               "concurrentAdmissionPolicy":{"migration":{"mode":"RetainFirstAdmission"}}}})"),
           stored("Workload", R"({"spec":{"priorityClassRef":{"group":"other.io","kind":"Class","name":"x"}}})"),
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
       }) {
    workload["metadata"]["annotations"] = Json{{"berth.dev/kept-v1beta2", note}};
    const Json out = convert(workload, kStoredVersion);
    EXPECT_EQ(out["spec"], workload["spec"]) << note;
    EXPECT_EQ(out["status"], workload["status"]) << note;
    EXPECT_EQ(out["metadata"], json(R"({"name":"x"})")) << note;
  }
}

TEST(Convert, OtherVersionsAndWhatIsNoObjectAreErrors) {
  EXPECT_NE(convert_kueue(older("Workload", "{}"), "kueue.x-k8s.io/v1").error().message.find("converts between"),
            std::string::npos);
  EXPECT_FALSE(convert_kueue(object("Workload", "batch/v1", "{}"), kStoredVersion));
  EXPECT_FALSE(convert_kueue(json("[]"), kStoredVersion));
  EXPECT_FALSE(convert_kueue(older("Workload", R"({"metadata":{"annotations":7}})"), kStoredVersion));
  EXPECT_EQ(convert(older("Workload", R"({"spec":7})"), kOlderVersion), older("Workload", R"({"spec":7})"));
}

TEST(Convert, WhatIsTooMuchToKeepIsAnErrorInASpecAndLeftOutOfAStatus) {
  Json flavor = stored("ResourceFlavor", R"({"spec":{}})");
  flavor["spec"]["resourceWeights"][std::string(kKeptBytesMax, 'a')] = 1;
  EXPECT_EQ(convert_kueue(flavor, kOlderVersion).error().code, ErrorCode::kUnsupported);
  Json queue = older("ClusterQueue", R"({"status":{"pendingWorkloads":3}})");
  queue["status"]["pendingWorkloadsStatus"]["x"] = std::string(kKeptBytesMax, 'a');
  EXPECT_EQ(convert(queue, kStoredVersion), stored("ClusterQueue", R"({"status":{"pendingWorkloads":3}})"));
}

// Random objects of every kind, with all members that differ between the versions, and some that nobody knows.
class Maker {
 public:
  explicit Maker(uint64_t seed) : rng_(seed) {}

  Json make() {
    constexpr const char* kKinds[] = {"ClusterQueue", "Cohort",   "LocalQueue",    "ResourceFlavor",
                                      "Workload",     "Topology", "AdmissionCheck"};
    older_ = rng_.chance(50);
    const std::string kind = kKinds[rng_.below(std::size(kKinds))];
    Json out{{"apiVersion", older_ ? kOlderVersion : kStoredVersion}, {"kind", kind}, {"metadata", {{"name", "x"}}}};
    if (rng_.chance(50)) out["metadata"]["annotations"]["team"] = word();
    if (rng_.chance(90)) out["spec"] = spec(kind);
    if (rng_.chance(70)) out["status"] = status(kind);
    if (rng_.chance(20)) out["unknown"] = unknown(2);
    return out;
  }

 private:
  std::string word() { return std::string(1, static_cast<char>('a' + rng_.below(5))); }
  Json words() {
    Json out = Json::array();
    for (uint64_t i = rng_.below(4); i > 0; --i) out.push_back(word());
    return out;
  }
  Json unknown(int depth) {
    switch (rng_.below(depth > 0 ? 6 : 4)) {
      case 0: return nullptr;
      case 1: return rng_.chance(50);
      case 2: return rng_.between(-5, 5);
      case 3: return word();
      case 4: return Json::array({unknown(depth - 1), unknown(depth - 1)});
      default: return Json{{"n" + word(), unknown(depth - 1)}};
    }
  }
  template <typename Make>
  void maybe(Json& object, const char* key, Make make) {
    if (rng_.chance(60)) object[key] = make();
  }
  Json one_of(std::initializer_list<const char*> choices) { return *(choices.begin() + rng_.below(choices.size())); }

  Json fungibility() {
    Json out = Json::object();
    if (!older_ && rng_.chance(50))
      return json(R"({"whenCanBorrow":"TryNextFlavor","whenCanPreempt":"TryNextFlavor","preference":"Whatever"})");
    maybe(out, "whenCanBorrow", [&] {
      return one_of({"MayStopSearch", "TryNextFlavor", older_ ? "Borrow" : "TryNextFlavor"});
    });
    maybe(out, "whenCanPreempt", [&] {
      return one_of({"MayStopSearch", "TryNextFlavor", older_ ? "Preempt" : "MayStopSearch"});
    });
    return out;
  }

  Json strategy() {
    Json rules = Json::array();
    for (const Json& name : words()) {
      rules.push_back(Json{{"name", name}});
      maybe(rules.back(), "onFlavors", [&] { return words(); });
    }
    return Json{{"admissionChecks", std::move(rules)}};
  }

  Json spec(const std::string& kind) {
    Json out = Json::object();
    maybe(out, "unknown", [&] { return unknown(3); });
    if (kind == "ClusterQueue") {
      maybe(out, older_ ? "cohort" : "cohortName", [&] { return word(); });
      maybe(out, "flavorFungibility", [&] { return fungibility(); });
      maybe(out, "admissionChecksStrategy", [&] { return strategy(); });
      if (older_) maybe(out, "admissionChecks", [&] { return words(); });
      else maybe(out, "concurrentAdmissionPolicy", [&] { return unknown(3); });
    } else if (kind == "Cohort") {
      maybe(out, "parentName", [&] { return word(); });
      if (older_) maybe(out, "parent", [&] { return word(); });
    } else if (kind == "ResourceFlavor" && !older_) {
      maybe(out, "resourceWeights", [&] { return unknown(2); });
    } else if (kind == "AdmissionCheck" && older_) {
      maybe(out, "retryDelayMinutes", [&] { return rng_.between(0, 9); });
    } else if (kind == "Workload" && older_) {
      maybe(out, "priorityClassName", [&] { return rng_.chance(90) ? Json(word()) : unknown(1); });
      maybe(out, "priorityClassSource", [&] {
        return one_of({"kueue.x-k8s.io/workloadpriorityclass", "scheduling.k8s.io/priorityclass", "", "else"});
      });
    } else if (kind == "Workload") {
      maybe(out, "priorityClassRef", [&] {
        return Json{{"group", one_of({"kueue.x-k8s.io", "scheduling.k8s.io"})},
                    {"kind", one_of({"WorkloadPriorityClass", "PriorityClass"})},
                    {"name", rng_.chance(90) ? word() : ""}};
      });
    }
    return out;
  }

  Json status(const std::string& kind) {
    Json out = Json::object();
    maybe(out, "unknown", [&] { return unknown(3); });
    if (kind == "ClusterQueue" && older_) maybe(out, "pendingWorkloadsStatus", [&] { return unknown(3); });
    if (kind == "LocalQueue") {
      maybe(out, older_ ? "flavorUsage" : "flavorsUsage", [&] { return unknown(3); });
      if (older_) maybe(out, "flavors", [&] { return unknown(3); });
    }
    if (kind != "Workload") return out;
    maybe(out, older_ ? "accumulatedPastExexcutionTimeSeconds" : "accumulatedPastExecutionTimeSeconds",
          [&] { return rng_.between(0, 9); });
    maybe(out, "admission", [&] {
      Json sets = Json::array();
      for (uint64_t i = rng_.below(4); i > 0; --i) {
        sets.push_back(Json{{"name", word()}});
        maybe(sets.back(), "topologyAssignment", [&] { return assignment(); });
      }
      return Json{{"clusterQueue", word()}, {"podSetAssignments", std::move(sets)}};
    });
    return out;
  }

  Json assignment() {
    if (rng_.chance(10)) return unknown(3);
    const uint64_t levels = rng_.below(3) + 1;
    Json out{{"levels", Json::array()}, {older_ ? "domains" : "slices", Json::array()}};
    for (uint64_t i = 0; i < levels; ++i) out["levels"].push_back(word());
    for (uint64_t i = rng_.below(4); i > 0; --i) {
      if (older_) out["domains"].push_back(domain(levels));
      else out["slices"].push_back(slice(levels));
    }
    return out;
  }
  Json domain(uint64_t levels) {
    Json values = Json::array();
    for (uint64_t i = 0; i < levels; ++i) values.push_back(word());
    Json out{{"values", values}, {"count", rng_.below(9) + 1}};
    if (rng_.chance(5)) out["unknown"] = 1;
    return out;
  }
  Json slice(uint64_t levels) {
    const uint64_t count = rng_.below(3) + 1;
    Json out{{"domainCount", count}, {"valuesPerLevel", Json::array()}};
    for (uint64_t i = 0; i < levels; ++i) {
      Json level = Json::object();
      if (rng_.chance(50)) {
        level["universal"] = word();
      } else {
        for (uint64_t j = 0; j < count; ++j) level["individual"]["roots"].push_back(word());
        maybe(level["individual"], "prefix", [&] { return word(); });
      }
      out["valuesPerLevel"].push_back(std::move(level));
    }
    if (rng_.chance(50)) out["podCounts"]["universal"] = 1;
    else
      for (uint64_t j = 0; j < count; ++j) out["podCounts"]["individual"].push_back(rng_.below(9) + 1);
    return out;
  }

  Rng rng_;
  bool older_ = false;
};

TEST(Convert, ThereAndBackIsTheIdentity) {
  size_t kept = 0;
  for (uint64_t seed = 0; seed < 20'000; ++seed) {
    const Json from = Maker(seed).make();
    const bool is_older = from["apiVersion"] == kOlderVersion;
    const Json there = convert(from, is_older ? kStoredVersion : kOlderVersion);
    const Json back = convert(there, is_older ? kOlderVersion : kStoredVersion);
    ASSERT_EQ(back, from) << "seed " << seed << "\n" << from.dump(1) << "\n" << there.dump(1) << "\n" << back.dump(1);
    ASSERT_EQ(convert(back, is_older ? kStoredVersion : kOlderVersion), there) << "seed " << seed;
    if (there["metadata"] != from["metadata"]) ++kept;
  }
  EXPECT_GT(kept, 2'000u);   // the notes were at work
  EXPECT_LT(kept, 18'000u);  // and most things need none
}

}  // namespace
}  // namespace berth::webhook
