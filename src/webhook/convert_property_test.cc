// Random objects of Kueue's API, there and back.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/rng.h"
#include "base/testing.h"
#include "webhook/convert.h"
#include "webhook/review.h"

namespace berth::webhook {
namespace {

Json convert(const Json& from, std::string_view version) {
  UnpackBudget budget;
  auto out = convert_kueue(from, version, budget);
  EXPECT_TRUE(out.has_value()) << out.error().message << "\n" << from.dump(1);
  return out ? *out : Json();
}

// Random objects of every kind as the schemas allow them, with all members that come back of those that differ between
// the versions, and some that nobody knows.
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
      return Json::parse(
          R"({"whenCanBorrow":"TryNextFlavor","whenCanPreempt":"TryNextFlavor","preference":"BorrowingOverPreemption"})");
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

  Json concurrent_admission() {
    Json migration{{"mode", one_of({"TryPreferredFlavors", "RetainFirstAdmission"})}};
    maybe(migration, "constraints", [&] { return Json{{"lastAcceptableFlavorName", word()}}; });
    return Json{{"migration", std::move(migration)}};
  }

  Json spec(const std::string& kind) {
    Json out = Json::object();
    maybe(out, "unknown", [&] { return unknown(3); });
    if (kind == "ClusterQueue") {
      maybe(out, older_ ? "cohort" : "cohortName", [&] { return word(); });
      maybe(out, "flavorFungibility", [&] { return fungibility(); });
      maybe(out, "admissionChecksStrategy", [&] { return strategy(); });
      if (older_ && !out.contains("admissionChecksStrategy")) maybe(out, "admissionChecks", [&] { return words(); });
      if (!older_) maybe(out, "concurrentAdmissionPolicy", [&] { return concurrent_admission(); });
    } else if (kind == "Cohort") {
      maybe(out, "parentName", [&] { return word(); });
      if (older_ && !out.contains("parentName")) maybe(out, "parent", [&] { return word(); });
    } else if (kind == "ResourceFlavor" && !older_) {
      maybe(out, "resourceWeights", [&] { return Json{{word(), rng_.below(4)}, {"x", "1.5"}}; });
    } else if (kind == "AdmissionCheck" && older_) {
      maybe(out, "retryDelayMinutes", [&] { return rng_.between(0, 9); });
    } else if (kind == "Workload" && older_) {
      maybe(out, "priorityClassName", [&] { return word(); });
      maybe(out, "priorityClassSource", [&] {
        return one_of({"kueue.x-k8s.io/workloadpriorityclass", "scheduling.k8s.io/priorityclass", ""});
      });
    } else if (kind == "Workload") {
      maybe(out, "priorityClassRef", [&] {
        const bool of_kueue = rng_.chance(50);
        return Json{{"group", of_kueue ? "kueue.x-k8s.io" : "scheduling.k8s.io"},
                    {"kind", of_kueue ? "WorkloadPriorityClass" : "PriorityClass"},
                    {"name", word()}};
      });
    }
    return out;
  }

  Json status(const std::string& kind) {
    Json out = Json::object();
    maybe(out, "unknown", [&] { return unknown(3); });
    if (kind == "LocalQueue") maybe(out, older_ ? "flavorUsage" : "flavorsUsage", [&] { return unknown(3); });
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
    return Json{{"values", values}, {"count", rng_.below(9) + 1}};
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
  const uint64_t objects = histories_to_play(20'000, 200'000);
  uint64_t kept = 0;
  for (uint64_t seed = 0; seed < objects; ++seed) {
    const Json from = Maker(seed).make();
    const bool is_older = from["apiVersion"] == kOlderVersion;
    const Json there = convert(from, is_older ? kStoredVersion : kOlderVersion);
    const Json back = convert(there, is_older ? kOlderVersion : kStoredVersion);
    ASSERT_EQ(back, from) << "seed " << seed << "\n" << from.dump(1) << "\n" << there.dump(1) << "\n" << back.dump(1);
    ASSERT_EQ(convert(back, is_older ? kStoredVersion : kOlderVersion), there) << "seed " << seed;
    if (there["metadata"] != from["metadata"]) ++kept;
  }
  EXPECT_GT(kept, objects / 10);      // the notes were at work
  EXPECT_LT(kept, objects / 10 * 9);  // and most things need none
}

}  // namespace
}  // namespace berth::webhook
