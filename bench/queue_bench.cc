// queue_bench: what a cycle costs where most work waits in queues.
//
// Prints JSON; time is of this thread's CPU, in milliseconds.
//
//   build/release/bin/queue_bench [workloads] [queues] [nodes]   50,000 in 1,000 queues on 10,000 nodes
//     first: everything is new, and as much as fits is let in; then those who borrowed give it back. After that, each
//     the mean and the longest of 50: `ended`, a workload has ended and its queue lets in whom it has room for; `came`,
//     a new one waits behind the others; `idle`, nothing has happened. Of these the limit is 50 ms.
//   build/release/bin/queue_bench fair [workloads] [queues] [nodes]   the same by fair shares
//   build/release/bin/queue_bench victims [victims] [nodes]      700 on 2,000 nodes
//     one workload takes back what so many borrow, all or a tenth of it, by priority or by fair shares. Limit: 50 ms.
//   build/release/bin/queue_bench drain [workloads]              3,000 in 6 queues on 100 nodes, until all have run
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "engine/engine.h"
#include "policy/registry.h"
#include "quota/admission.h"

namespace berth {
namespace {

constexpr const char* kGpu = "nvidia.com/gpu";
constexpr int64_t kGpus = 8;

double milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

// An engine with nodes of eight GPUs and cohorts of so many queues each, and what it decided.
class Cluster {
 public:
  Cluster(int nodes, int queues, int64_t nominal, engine::EngineOptions options = {}, int queues_each = 10)
      : engine_(policy::default_policies(), std::move(options)) {
    engine::NodesReplaced list;
    for (int i = 0; i < nodes; ++i) {
      model::Node& node = list.nodes.emplace_back();
      node.name = "node-" + std::to_string(i);
      node.labels = {{"kubernetes.io/hostname", node.name}};
      node.allocatable = {{"cpu", 128'000}, {"memory", int64_t{1} << 40}, {"pods", 110}, {kGpu, kGpus}};
      node.capacity = node.allocatable;
    }
    engine_.apply(std::move(list));
    engine_.apply(engine::NamespaceUpserted{"default", {}});
    tell(model::ResourceFlavor{"gpus", {}, {}, {}});
    for (int i = 0; i < queues; ++i) {
      model::ClusterQueue queue;
      queue.name = queue_name(i);
      queue.cohort = "cohort-" + std::to_string(i / queues_each);
      queue.namespaces.selects_nothing = false;
      queue.preemption.reclaim_within_cohort = model::PreemptionPolicy::kAny;
      queue.groups = {{{kGpu}, {{"gpus", {{kGpu, {nominal, {}, {}}}}}}}};
      tell(std::move(queue));
      tell(model::LocalQueue{"default", queue_name(i), queue_name(i)});
    }
  }

  static std::string queue_name(int i) { return "queue-" + std::to_string(i); }

  std::string submit(int queue, int64_t gpus, int32_t pods = 1) {
    model::Workload out;
    out.namespace_name = "default";
    out.name = "work-" + std::to_string(made_++);
    out.uid = out.name;
    out.queue = queue_name(queue);
    out.created = Time{made_};
    auto spec = std::make_shared<model::SchedulingSpec>();
    spec->requests = {{"pods", 1}, {kGpu, gpus}, {"cpu", gpus * 1000}};
    model::PodSet& set = out.pod_sets.emplace_back();
    set.name = "main";
    set.count = pods;
    set.requests = {{kGpu, gpus}};  // what the queue covers
    set.spec = std::move(spec);
    std::string uid = out.uid;
    engine_.apply(engine::WorkloadUpserted{std::move(out)});
    return uid;
  }
  void end(const std::string& uid) { engine_.apply(engine::WorkloadEnded{uid, true}); }
  // Whoever was evicted has gone.
  void release_evicted() {
    for (const std::string& uid : std::exchange(evicted_, {})) engine_.apply(engine::WorkloadReleased{uid});
  }

  // Until nothing is left to be decided; the milliseconds that it took.
  double settle(int seconds = 1) {
    admitted_.clear();
    now_ = now_ + Duration::seconds(seconds);
    const double start = milliseconds();
    for (bool more = true; more;) {
      const engine::CycleResult result = engine_.run_cycle(now_);
      more = result.unfinished;
      for (const quota::AdmissionDecision& decision : result.admissions) {
        using Kind = quota::AdmissionDecision::Kind;
        const std::string& uid = engine_.admission().status(decision.workload).workload.uid;
        if (decision.kind == Kind::kAdmit) admitted_.push_back(uid);
        if (decision.kind == Kind::kEvict) evicted_.push_back(uid);
      }
    }
    return milliseconds() - start;
  }
  size_t rooms() const { return engine_.admission().kept().rooms.size(); }
  const std::vector<std::string>& admitted() const { return admitted_; }
  const std::vector<std::string>& evicted() const { return evicted_; }

 private:
  template <typename Object>
  void tell(Object object) {
    engine_.apply(engine::QueueObjectUpserted{std::move(object)});
  }

  engine::Engine engine_;
  Time now_;
  int made_ = 0;
  std::vector<std::string> admitted_, evicted_;
};

struct Times {
  double sum = 0, longest = 0;
  int count = 0;

  void add(double ms) {
    sum += ms;
    longest = std::max(longest, ms);
    ++count;
  }
  nlohmann::json json() const { return {{"mean_ms", sum / std::max(1, count)}, {"longest_ms", longest}}; }
};

engine::EngineOptions with_shares() {
  engine::EngineOptions options;
  options.admission.fair =
      quota::FairRules{quota::FairRule::kLessThanOrEqualToFinalShare, quota::FairRule::kLessThanInitialShare};
  return options;
}

nlohmann::json bench_waiting(int workloads, int queues, int nodes, int queues_each, engine::EngineOptions options) {
  constexpr int kRounds = 50;
  Cluster cluster(nodes, queues, std::max<int64_t>(1, nodes * kGpus * 8 / 10 / queues), std::move(options),
                  queues_each);
  Rng rng(1);
  const auto any_queue = [&] { return static_cast<int>(rng.below(static_cast<uint64_t>(queues))); };
  for (int i = 0; i < workloads; ++i) cluster.submit(any_queue(), int64_t{1} << rng.below(4));
  nlohmann::json out = {{"workloads", workloads}, {"queues", queues}, {"nodes", nodes}, {"queues_each", queues_each}};
  out["first_ms"] = cluster.settle();
  std::vector<std::string> running = cluster.admitted();
  out["admitted"] = running.size();
  Times evicted, ended, came, idle;
  size_t let_in = 0;
  const auto go_on = [&](int seconds = 1) {
    const double ms = cluster.settle(seconds);
    let_in += cluster.admitted().size();
    running.insert(running.end(), cluster.admitted().begin(), cluster.admitted().end());
    return ms;
  };
  while (!cluster.evicted().empty()) {  // whoever borrowed in the first cycle gives it back
    for (const std::string& uid : cluster.evicted()) std::erase(running, uid);
    cluster.release_evicted();
    evicted.add(go_on());
  }
  out["given_back"] = evicted.json();
  for (const bool kept : {false, true}) {
    if (kept) out["due_ms"] = go_on(660);
    let_in = 0;
    ended = came = idle = {};
    for (int round = 0; round < kRounds && !running.empty(); ++round) {
      const size_t which = rng.below(running.size());
      cluster.end(running[which]);
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(which));
      ended.add(go_on());
      cluster.submit(any_queue(), kGpus);
      came.add(go_on());
      idle.add(go_on());
      for (const std::string& uid : cluster.evicted()) std::erase(running, uid);
      cluster.release_evicted();
    }
    nlohmann::json& part = kept ? out["kept"] : out;
    part["ended"] = ended.json();
    part["came"] = came.json();
    part["idle"] = idle.json();
    part["let_in"] = let_in;
  }
  out["rooms"] = cluster.rooms();
  return out;
}

// Queue 0 owns everything and has nothing; queue 1 borrows it, a GPU each.
nlohmann::json bench_victims(int victims, int nodes) {
  nlohmann::json out = nlohmann::json::array();
  for (const bool fair : {false, true}) {
    for (const int wanted : {victims / 10, victims}) {
      Cluster cluster(nodes, 2, victims, fair ? with_shares() : engine::EngineOptions{});
      for (int i = 0; i < victims; ++i) cluster.submit(1, 1);
      for (int i = 0; i < victims; ++i) cluster.submit(1, 1);
      cluster.settle();
      cluster.submit(0, 1, wanted);
      const double ms = cluster.settle();
      out.push_back({{"victims", victims},
                     {"nodes", nodes},
                     {"fair", fair},
                     {"wanted", wanted},
                     {"evicted", cluster.evicted().size()},
                     {"ms", ms}});
    }
  }
  return out;
}

nlohmann::json bench_drain(int workloads) {
  constexpr int kQueues = 6, kNodes = 100;
  Cluster cluster(kNodes, kQueues, kNodes * kGpus / kQueues);
  Rng rng(1);
  for (int i = 0; i < workloads; ++i) cluster.submit(i % kQueues, int64_t{1} << rng.below(4));
  double ms = 0;
  int done = 0, cycles = 0;
  std::vector<std::string> running;
  for (size_t first = 0; done < workloads; ++cycles) {  // the oldest tenth ends each time
    ms += cluster.settle();
    running.insert(running.end(), cluster.admitted().begin(), cluster.admitted().end());
    const size_t until = first + std::max<size_t>(1, (running.size() - first) / 10);
    for (; first < until && first < running.size(); ++first, ++done) cluster.end(running[first]);
  }
  return {{"workloads", workloads}, {"cycles", cycles}, {"ms", ms}, {"ms_per_workload", ms / workloads}};
}

int argument(int argc, char** argv, int at, int otherwise) { return argc > at ? std::atoi(argv[at]) : otherwise; }

}  // namespace
}  // namespace berth

int main(int argc, char** argv) {
  using namespace berth;
  const std::string_view what = argc > 1 ? argv[1] : "";
  nlohmann::json out;
  if (what == "victims") out = bench_victims(argument(argc, argv, 2, 700), argument(argc, argv, 3, 2'000));
  else if (what == "drain") out = bench_drain(argument(argc, argv, 2, 3'000));
  else {
    const int fair = what == "fair" ? 1 : 0;
    out = bench_waiting(argument(argc, argv, fair + 1, 50'000), argument(argc, argv, fair + 2, 1'000),
                        argument(argc, argv, fair + 3, 10'000), argument(argc, argv, fair + 4, 10),
                        fair ? with_shares() : engine::EngineOptions{});
  }
  std::printf("%s\n", out.dump(1).c_str());
  return 0;
}
