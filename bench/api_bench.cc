// api_bench: the API server's own pace, and a stop-watch beside it. Driven by bench/run.py; talks to loopback only.
//
//   api_bench KUBECONFIG create COUNT SCHEDULER   pods that ask for one GPU
//   api_bench KUBECONFIG bind COUNT IN_FLIGHT     posts a Binding for each waiting pod, round robin over the nodes
//   api_bench KUBECONFIG bind-and-note COUNT IN_FLIGHT   the same and an Event for each, as a plain loop would
//   api_bench KUBECONFIG watch COUNT SECONDS [bound]   when were COUNT pods bound, and COUNT Scheduled events stored?
//                                                 with "bound" it waits for no events
//   api_bench KUBECONFIG arrive COUNT SCHEDULER RATE SECONDS   creates COUNT pods, RATE each second whatever happens to
//                                                 them; how long until a watcher saw each bound?
//
// Prints one JSON object with seconds and rates. Rates count from the first to the last write that was answered or
// seen.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "bench/scheduled_event.h"
#include "bench/window.h"
#include "io/curl_transport.h"
#include "io/system_clock.h"
#include "kube/client.h"
#include "kube/credentials.h"
#include "kube/kubeconfig.h"
#include "kube/reflector.h"

namespace berth {
namespace {

using bench::now_s;
using bench::Window;
using nlohmann::json;

std::string pod_json(const std::string& name, const std::string& scheduler) {
  const json limits{{"cpu", "1"}, {"memory", "1Gi"}, {"nvidia.com/gpu", "1"}};
  const json container{{"name", "main"}, {"image", "none"}, {"resources", {{"limits", limits}}}};
  return json{{"apiVersion", "v1"},
              {"kind", "Pod"},
              {"metadata", {{"name", name}, {"namespace", "default"}}},
              {"spec", {{"schedulerName", scheduler}, {"containers", json::array({container})}}}}
      .dump();
}

json create(kube::Client& client, int count, const std::string& scheduler) {
  Window window(32);
  const double start = now_s();
  for (int i = 0; i < count; ++i) {
    char name[32];
    std::snprintf(name, sizeof name, "pod-%05d", i);
    window.enter();
    client.create(kube::kPods.collection("default"), pod_json(name, scheduler),
                  [&](const Result<std::string>& r) { window.leave(r.has_value()); });
  }
  const int failed = window.drain();
  return {{"created", count - failed}, {"failed", failed}, {"seconds", now_s() - start}};
}

json bind(kube::Client& client, size_t count, int in_flight, bool note) {
  const json pods = json::parse(*client.get_now(kube::kPods.collection("default")))["items"];
  const json nodes = json::parse(*client.get_now(kube::kNodes.collection()))["items"];
  Window window(in_flight);
  const double start = now_s();
  for (size_t i = 0; i < std::min(count, pods.size()); ++i) {
    const std::string pod = pods[i]["metadata"]["name"], uid = pods[i]["metadata"]["uid"];
    const std::string node = nodes[i % nodes.size()]["metadata"]["name"];
    window.enter();
    client.bind({.name_space = "default", .pod = pod, .uid = uid, .node = node}, [&, pod, uid,
                                                                                  node](const Result<std::string>& r) {
      if (!r || !note) return window.leave(r.has_value());
      client.create(kube::kEvents.collection("default"),
                    bench::event_json(pod, uid, pod + ".1", "Successfully assigned default/" + pod + " to " + node,
                                      io::SystemClock::instance().wall()),
                    [&](const Result<std::string>& e) { window.leave(e.has_value()); });
    });
  }
  const int failed = window.drain();
  const double seconds = now_s() - start;
  return {{"bound", pods.size()},
          {"failed", failed},
          {"seconds", seconds},
          {"per_second", static_cast<double>(pods.size()) / seconds}};
}

struct Seen {
  std::string uid;
  bool done = false;
  std::string name{};
};

// Counts objects as they reach a state; the time of the first and of the last.
class Counter {
 public:
  void see(const std::vector<kube::WatchUpdate<Seen>>& updates) {
    const std::lock_guard lock(mutex_);
    const auto one = [&](const Seen& seen) {
      if (!seen.done || !uids_.insert(seen.uid).second) return;
      last_ = now_s();
      if (uids_.size() == 1) first_ = last_;
    };
    for (const auto& update : updates) {
      if (const auto* list = std::get_if<kube::ListReplaced<Seen>>(&update))
        std::for_each(list->objects.begin(), list->objects.end(), one);
      if (const auto* upserted = std::get_if<kube::Upserted<Seen>>(&update)) one(upserted->object);
    }
  }
  size_t count() const {
    const std::lock_guard lock(mutex_);
    return uids_.size();
  }
  json report(double start) const {
    const std::lock_guard lock(mutex_);
    const auto n = static_cast<double>(uids_.size());
    return {{"count", uids_.size()},
            {"first_s", first_ - start},
            {"last_s", last_ - start},
            {"per_second", last_ > first_ ? (n - 1) / (last_ - first_) : 0.0}};
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::string> uids_;
  double first_ = 0, last_ = 0;
};

Result<Seen> seen_pod(std::string_view text) {
  const json object = json::parse(text);
  return Seen{object["metadata"]["uid"], !object["spec"].value("nodeName", "").empty(), object["metadata"]["name"]};
}

void pause_s(double seconds) {
  if (seconds <= 0) return;
  const timespec pause{static_cast<time_t>(seconds), static_cast<long>(1e9 * (seconds - std::floor(seconds)))};
  nanosleep(&pause, nullptr);
}

json watch(kube::Client& client, size_t count, double limit_s, bool only_bound) {
  Counter bound, noted;
  const auto event = [](std::string_view text) -> Result<Seen> {
    const json object = json::parse(text);
    return Seen{object["metadata"]["uid"], object.value("reason", "") == "Scheduled"};
  };
  kube::Reflector<Seen> pods(client, {.resource = kube::kPods}, &seen_pod,
                             [&](const auto& updates) { bound.see(updates); });
  kube::Reflector<Seen> events(client, {.resource = kube::kEvents}, event,
                               [&](const auto& updates) { noted.see(updates); });
  const double start = now_s();
  pods.start();
  events.start();
  std::fprintf(stderr, "watching\n");
  while (now_s() - start < limit_s && (bound.count() < count || (!only_bound && noted.count() < count))) pause_s(0.02);
  pods.stop();
  events.stop();
  return {{"bound", bound.report(start)}, {"noted", noted.report(start)}};
}

// Pods that arrive: when each was due, answered by the server, and seen bound; seconds, 0 for not yet.
class Arrivals {
 public:
  explicit Arrivals(size_t count) : due_(count), created_(count), bound_(count) {}
  void due(size_t i) { set(due_, i); }
  void created(size_t i) { set(created_, i); }
  void see(const std::vector<kube::WatchUpdate<Seen>>& updates) {
    for (const auto& update : updates)
      if (const auto* upserted = std::get_if<kube::Upserted<Seen>>(&update);
          upserted != nullptr && upserted->object.done)
        set(bound_, std::stoul(upserted->object.name.substr(4)));
  }
  size_t bound() const {
    const std::lock_guard lock(mutex_);
    return static_cast<size_t>(std::count_if(bound_.begin(), bound_.end(), [](double at) { return at > 0; }));
  }
  // A pod that is not there yet counts with the time that it has waited so far.
  json report(double now) const {
    const std::lock_guard lock(mutex_);
    const auto waits = [&](const std::vector<double>& ends) {
      std::vector<double> out;
      for (size_t i = 0; i < ends.size(); ++i) out.push_back((ends[i] > 0 ? ends[i] : now) - due_[i]);
      std::sort(out.begin(), out.end());
      const auto at = [&](double share) {
        return 1e3 * out[static_cast<size_t>(share * static_cast<double>(out.size() - 1))];
      };
      return json{{"p50", at(0.5)}, {"p99", at(0.99)}, {"max", at(1)}};
    };
    const double last = *std::max_element(created_.begin(), created_.end());
    return {{"created_per_s", static_cast<double>(due_.size() - 1) / (last - due_.front())},
            {"create_ms", waits(created_)},
            {"create_to_bound_ms", waits(bound_)}};
  }

 private:
  void set(std::vector<double>& times, size_t i) {
    const std::lock_guard lock(mutex_);
    if (i < times.size() && times[i] == 0) times[i] = now_s();
  }

  mutable std::mutex mutex_;
  std::vector<double> due_, created_, bound_;
};

// An open loop: a slow server does not slow the arrivals, so what waits in this program's queue counts, too.
json arrive(kube::Client& client, size_t count, const std::string& scheduler, double rate, double limit_s) {
  Arrivals arrivals(count);
  kube::Reflector<Seen> pods(client, {.resource = kube::kPods}, &seen_pod,
                             [&](const auto& updates) { arrivals.see(updates); });
  pods.start();
  const double asked = now_s();
  while (!pods.synced() && now_s() - asked < limit_s) pause_s(0.01);
  Window window(static_cast<int>(count));
  const double start = now_s();
  for (size_t i = 0; i < count; ++i) {
    pause_s(start + static_cast<double>(i) / rate - now_s());
    char name[32];
    std::snprintf(name, sizeof name, "pod-%05zu", i);
    arrivals.due(i);
    window.enter();
    client.create(kube::kPods.collection("default"), pod_json(name, scheduler), [&, i](const Result<std::string>& r) {
      if (r) arrivals.created(i);
      window.leave(r.has_value());
    });
  }
  const int failed = window.drain();
  while (now_s() - start < limit_s && arrivals.bound() + static_cast<size_t>(failed) < count) pause_s(0.02);
  pods.stop();
  json out = arrivals.report(now_s());
  out.update({{"pods", count}, {"bound", arrivals.bound()}, {"failed", failed}, {"asked_per_s", rate}});
  return out;
}

int run(int argc, char** argv) {
  if (argc < 5 || (std::string(argv[2]) == "arrive" && argc < 7))
    return std::fprintf(stderr, "usage: api_bench KUBECONFIG create|bind|bind-and-note|watch|arrive COUNT ...\n"), 2;
  api::Problems problems;
  const auto access = kube::load_kubeconfig({argv[1]}, "", problems);
  if (!access) return std::fprintf(stderr, "error: %s\n", api::to_string(problems.front()).c_str()), 1;
  auto options = kube::transport_options(*access);
  const std::string verb = argv[2];
  const int count = std::atoi(argv[3]);
  auto transport = *io::CurlTransport::create(std::move(options));
  kube::Client client(*transport);
  json out;
  if (verb == "create") out = create(client, count, argv[4]);
  else if (verb == "watch") out = watch(client, static_cast<size_t>(count), std::atof(argv[4]), argc > 5);
  else if (verb == "arrive")
    out = arrive(client, static_cast<size_t>(count), argv[4], std::atof(argv[5]), std::atof(argv[6]));
  else out = bind(client, static_cast<size_t>(count), std::atoi(argv[4]), verb == "bind-and-note");
  std::printf("%s\n", out.dump().c_str());
  transport->stop();
  return 0;
}

}  // namespace
}  // namespace berth

int main(int argc, char** argv) { return berth::run(argc, argv); }
