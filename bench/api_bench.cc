// api_bench: the API server's own pace, and a stop-watch beside it. Driven by bench/run.py; talks to loopback only.
//
//   api_bench KUBECONFIG create COUNT SCHEDULER   pods that ask for one GPU
//   api_bench KUBECONFIG bind COUNT IN_FLIGHT     posts a Binding for each waiting pod, round robin over the nodes
//   api_bench KUBECONFIG bind-and-note COUNT IN_FLIGHT   the same and an Event for each, as a plain loop would
//   api_bench KUBECONFIG watch COUNT SECONDS      when were COUNT pods bound, and COUNT Scheduled events stored?
//
// Prints one JSON object with seconds and rates. Rates count from the first to the last write that was answered or
// seen.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "io/curl_transport.h"
#include "io/system_clock.h"
#include "kube/client.h"
#include "kube/credentials.h"
#include "kube/kubeconfig.h"
#include "kube/reflector.h"

namespace berth {
namespace {

using nlohmann::json;

double now_s() { return static_cast<double>(io::SystemClock::instance().monotonic().nanos) / 1e9; }

// A bound on requests in flight, and the count of those that failed.
class Window {
 public:
  explicit Window(int size) : free_(size), size_(size) {}
  void enter() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return free_ > 0; });
    --free_;
  }
  void leave(bool ok) {
    const std::lock_guard lock(mutex_);
    ++free_;
    failed_ += ok ? 0 : 1;
    changed_.notify_all();
  }
  int drain() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return free_ == size_; });
    return failed_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int free_;
  const int size_;
  int failed_ = 0;
};

std::string pod_json(const std::string& name, const std::string& scheduler) {
  const json limits{{"cpu", "1"}, {"memory", "1Gi"}, {"nvidia.com/gpu", "1"}};
  const json container{{"name", "main"}, {"image", "none"}, {"resources", {{"limits", limits}}}};
  return json{{"apiVersion", "v1"},
              {"kind", "Pod"},
              {"metadata", {{"name", name}, {"namespace", "default"}}},
              {"spec", {{"schedulerName", scheduler}, {"containers", json::array({container})}}}}
      .dump();
}

std::string event_json(const std::string& pod, const std::string& uid, const std::string& node) {
  return json{
      {"apiVersion", "events.k8s.io/v1"},
      {"kind", "Event"},
      {"metadata", {{"name", pod + ".1"}, {"namespace", "default"}}},
      {"eventTime", format_rfc3339_micro(io::SystemClock::instance().wall())},
      {"type", "Normal"},
      {"reason", "Scheduled"},
      {"action", "Binding"},
      {"reportingController", "bench"},
      {"reportingInstance", "bench-1"},
      {"regarding", {{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", pod}, {"namespace", "default"}, {"uid", uid}}},
      {"note", "Successfully assigned default/" + pod + " to " + node}}
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
    client.bind({.name_space = "default", .pod = pod, .uid = uid, .node = node},
                [&, pod, uid, node](const Result<std::string>& r) {
                  if (!r || !note) return window.leave(r.has_value());
                  client.create(kube::kEvents.collection("default"), event_json(pod, uid, node),
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

json watch(kube::Client& client, size_t count, double limit_s) {
  Counter bound, noted;
  const auto pod = [](std::string_view text) -> Result<Seen> {
    const json object = json::parse(text);
    return Seen{object["metadata"]["uid"], !object["spec"].value("nodeName", "").empty()};
  };
  const auto event = [](std::string_view text) -> Result<Seen> {
    const json object = json::parse(text);
    return Seen{object["metadata"]["uid"], object.value("reason", "") == "Scheduled"};
  };
  kube::Reflector<Seen> pods(client, {.resource = kube::kPods}, pod, [&](const auto& updates) { bound.see(updates); });
  kube::Reflector<Seen> events(client, {.resource = kube::kEvents}, event,
                               [&](const auto& updates) { noted.see(updates); });
  const double start = now_s();
  pods.start();
  events.start();
  std::fprintf(stderr, "watching\n");
  while (now_s() - start < limit_s && (bound.count() < count || noted.count() < count)) {
    timespec pause{0, 20'000'000};
    nanosleep(&pause, nullptr);
    if (bound.count() >= count && now_s() - start > limit_s) break;
  }
  pods.stop();
  events.stop();
  return {{"bound", bound.report(start)}, {"noted", noted.report(start)}};
}

int run(int argc, char** argv) {
  if (argc < 5)
    return std::fprintf(stderr, "usage: api_bench KUBECONFIG create|bind|bind-and-note|watch COUNT ARGUMENT\n"), 2;
  auto access = kube::load_kubeconfig({argv[1]}, "");
  if (!access) return std::fprintf(stderr, "error: %s\n", access.error().message.c_str()), 1;
  auto options = *kube::transport_options(*access);
  const std::string verb = argv[2];
  const int count = std::atoi(argv[3]);
  auto transport = *io::CurlTransport::create(std::move(options));
  kube::Client client(*transport);
  json out;
  if (verb == "create") out = create(client, count, argv[4]);
  else if (verb == "watch") out = watch(client, static_cast<size_t>(count), std::atof(argv[4]));
  else out = bind(client, static_cast<size_t>(count), std::atoi(argv[4]), verb == "bind-and-note");
  std::printf("%s\n", out.dump().c_str());
  transport->stop();
  return 0;
}

}  // namespace
}  // namespace berth

int main(int argc, char** argv) { return berth::run(argc, argv); }
