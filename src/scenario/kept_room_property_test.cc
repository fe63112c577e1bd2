// Workloads that have waited long, over random streams of smaller ones (quota/admission_keeper.h): they start within a
// bound, at the latest when they were told, and who has ended by then uses the room meanwhile.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "base/rng.h"
#include "engine/testing.h"
#include "policy/registry.h"
#include "quota/admission.h"

namespace berth::scenario {
namespace {

using namespace berth::engine;
using namespace berth::engine::testing;
using Kind = quota::AdmissionDecision::Kind;

constexpr std::string_view kGpu = "nvidia.com/gpu";
constexpr int kAfter = 5, kLongest = 20;  // minutes

struct Setting {
  uint64_t seed = 1;
  bool keeps = true;
  bool declares = false;                // how long each runs, which is true
  bool scarce_quota = false;            // that of the two nodes for red, and nothing of its own for blue
  int64_t more_quota = 0;               // with scarce_quota, of red
  int last_arrival = INT32_MAX;         // the minute
  bool scattered = false;               // small work names its node
  std::optional<int> ends_sooner = {};  // really so many minutes, where it is more than that
};

// Three nodes of eight GPUs. Each minute brings more small work than ends, and the second a gang of two whole nodes.
class Stream {
 public:
  explicit Stream(const Setting& setting)
      : setting_(setting), rng_(setting.seed), driver_(policy::default_policies(), options(setting)) {
    for (int i = 0; i < 3; ++i) driver_.add(make_node("n" + std::to_string(i), {{std::string(kGpu), 8}}));
    driver_.apply(QueueObjectUpserted{model::ResourceFlavor{"plain", {}, {}, {}}});
    for (const char* name : {"red", "blue"}) {
      const int64_t quota = !setting.scarce_quota ? 100 : std::string(name) == "red" ? 16 + setting.more_quota : 0;
      model::ClusterQueue queue;
      queue.name = name;
      queue.cohort = "all";
      queue.namespaces = {};
      queue.groups = {{{std::string(kGpu)}, {{"plain", {{std::string(kGpu), {quota, {}, {}}}}}}}};
      driver_.apply(QueueObjectUpserted{queue});
      driver_.apply(QueueObjectUpserted{model::LocalQueue{"default", name, name, model::StopPolicy::kNone}});
    }
  }

  void minute() {
    ++minute_;
    driver_.apply(ClockAdvanced{driver_.now() + Duration::seconds(60)});
    for (auto at = ends_.begin(); at != ends_.end();) {
      if (at->second > minute_) {
        ++at;
        continue;
      }
      driver_.apply(WorkloadEnded{at->first});
      at = ends_.erase(at);
    }
    if (minute_ == 2) submit("large", "red", 2, 8, 30);
    for (int i = 0; i < 6 && minute_ <= setting_.last_arrival; ++i)
      submit("small" + std::to_string(made_), rng_.below(2) == 0 ? "red" : "blue", 1, 1 + rng_.below(3),
             1 + static_cast<int>(rng_.below(kLongest)));
    const CycleResult result = driver_.cycle(Duration::seconds(60));
    for (const quota::AdmissionDecision& decision : result.admissions) {
      const std::string uid = driver_.engine().admission().status(decision.workload).workload.uid;
      if (decision.kind == Kind::kEvict) ++evicted_;
      if (decision.kind != Kind::kAdmit) continue;
      started_[uid] = minute_;
      ends_[uid] = minute_ + takes_.at(uid);
    }
    const quota::KeptRoom* room = kept();
    if (room != nullptr && !kept_at_) kept_at_ = minute_;
    if (room != nullptr && room->free_by < Time{INT64_MAX}) {
      const int promised = static_cast<int>((room->free_by - Time{}).nanos / Duration::seconds(60).nanos);
      promised_ = std::min(promised_.value_or(promised), promised);
    }
  }

  // When the gang starts; none: not within so many minutes.
  std::optional<int> play(int minutes) {
    while (minute_ < minutes && !started_.contains("uid-large")) minute();
    const auto start = started_.find("uid-large");
    return start == started_.end() ? std::nullopt : std::optional(start->second);
  }
  std::optional<int> promised() const { return promised_; }
  int evicted() const { return evicted_; }
  std::optional<int> kept_at() const { return kept_at_; }  // since when room has been kept for the gang, the minute
  // That started since then, before it.
  int passed() const {
    return static_cast<int>(std::count_if(started_.begin(), started_.end(),
                                          [&](const auto& one) { return kept_at_ && one.second > *kept_at_; }));
  }

 private:
  static EngineOptions options(const Setting& setting) {
    EngineOptions out;
    out.reservations = {.enabled = setting.keeps, .after = Duration::seconds(60 * kAfter)};
    return out;
  }
  const quota::KeptRoom* kept() const {
    const quota::Admission& admission = driver_.engine().admission();
    const auto found = admission.kept().rooms.find(admission.find("uid-large"));
    return found == admission.kept().rooms.end() ? nullptr : &found->second;
  }
  void submit(const std::string& name, const std::string& queue, int pods, uint64_t gpus, int minutes) {
    ++made_;
    model::Workload work;
    work.namespace_name = "default";
    work.name = name;
    work.uid = "uid-" + name;
    work.queue = queue;
    work.created = driver_.now() + Duration{made_};
    if (setting_.declares) work.runtime = Duration::seconds(60 * minutes);
    model::PodSet set;
    set.name = "main";
    set.count = pods;
    set.requests.set(std::string(kGpu), static_cast<int64_t>(gpus));
    model::Pod any = make_pod("any", set.requests);
    if (setting_.scattered && pods == 1)
      any = with_spec(std::move(any), [&](auto& spec) {
        spec.node_selector = {{"kubernetes.io/hostname", "n" + std::to_string(rng_.below(3))}};
      });
    set.spec = any.spec;
    work.pod_sets.push_back(set);
    takes_[work.uid] = std::min(minutes, setting_.ends_sooner.value_or(minutes));
    driver_.apply(WorkloadUpserted{work});
  }

  Setting setting_;
  Rng rng_;
  Driver driver_;
  std::map<std::string, int> takes_, ends_, started_;  // by UID, in minutes
  std::optional<int> promised_, kept_at_;
  int minute_ = 0, made_ = 0, evicted_ = 0;
};

// Without declarations it waits at most for those that run when room begins to be kept for it.
TEST(KeptRoom, AGangStartsWithinABoundAndStarvesWithoutIt) {
  for (const bool scarce : {false, true}) {
    int starved = 0;
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed) + (scarce ? ", little quota" : ""));
      starved += Stream({.seed = seed, .keeps = false, .scarce_quota = scarce}).play(100) ? 0 : 1;
      const std::optional<int> start = Stream({.seed = seed, .scarce_quota = scarce}).play(100);
      ASSERT_TRUE(start);
      EXPECT_LE(*start, 2 + kAfter + 1 + kLongest);
    }
    EXPECT_GT(starved, 8) << "it would have started anyway";
  }
}

TEST(KeptRoom, NoPromiseIsBrokenAndOthersUseTheRoomMeanwhile) {
  int passed = 0, promises = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Stream stream({.seed = seed,
                   .declares = true,
                   .scarce_quota = seed % 2 == 0,
                   .ends_sooner = seed % 3 == 0 ? std::optional(7) : std::nullopt});
    const std::optional<int> start = stream.play(100);
    ASSERT_TRUE(start);
    EXPECT_EQ(stream.evicted(), 0) << "all end as they say, or sooner";
    if (!stream.promised()) continue;  // its places were free when its quota was
    ++promises;
    EXPECT_LE(*start, *stream.promised());
    passed += stream.passed();
  }
  EXPECT_GT(promises, 20);
  EXPECT_GT(passed, 100) << "what is kept stands idle";
}

// Whether it waits for quota first, for nodes, or for both at a time.
TEST(KeptRoom, WhoComesOnceItIsKeptDelaysNobody) {
  int passed = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed)
    for (const int64_t more : {0, 3, 6}) {
      SCOPED_TRACE(fmt::format("seed {}, {} more", seed, more));
      Setting setting{.seed = seed, .declares = true, .scarce_quota = true, .more_quota = more, .scattered = true};
      Stream with(setting);
      const std::optional<int> start = with.play(100);
      if (!with.kept_at()) continue;  // it never had to wait so long
      setting.last_arrival = *with.kept_at();
      const std::optional<int> alone = Stream(setting).play(100);
      ASSERT_TRUE(start && alone);
      EXPECT_LE(*start, *alone);
      if (*alone > 2 + kAfter) passed += with.passed();
    }
  EXPECT_GT(passed, 100) << "what is kept stands idle";
}

}  // namespace
}  // namespace berth::scenario
