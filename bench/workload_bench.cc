// workload_bench: plays everybody else around work in queues on an API server. Driven by bench/queues_live.py; talks to
// loopback only.
//
//   workload_bench KUBECONFIG write IN_FLIGHT   sends what stands on standard input, so many at once: in each line
//                                               {"path": ..., "create": BODY} or {"path": ..., "patch": BODY}
//   workload_bench KUBECONFIG play SECONDS      marks Workloads as finished when they have been admitted for their
//                                               time, until all have been or the seconds are over; in each line of
//                                               standard input {"name": ..., "seconds": ...}. Says "playing" when it
//                                               watches
//
// Prints one JSON object; times are monotonic, those of "play" are when its watch brought them.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <queue>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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

constexpr kube::Resource kWorkloads{"kueue.x-k8s.io", "v1beta2", "workloads", "Workload"};

std::vector<json> read_lines() {
  std::vector<json> out;
  for (std::string line; std::getline(std::cin, line);) out.push_back(json::parse(line));
  return out;
}

json write(kube::Client& client, int in_flight) {
  const std::vector<json> all = read_lines();
  std::vector<std::string> bodies;
  for (const json& one : all) bodies.push_back((one.contains("create") ? one["create"] : one["patch"]).dump());
  Window window(in_flight);
  const double start = now_s();
  for (size_t i = 0; i < all.size(); ++i) {
    window.enter();
    const std::string path = all[i]["path"];
    const auto done = [&window](const Result<std::string>& r) { window.leave(r.has_value()); };
    if (all[i].contains("create")) client.create(path, bodies[i], done);
    else client.patch(path, kube::PatchType::kMerge, bodies[i], done);
  }
  const int failed = window.drain();
  return {{"written", static_cast<int>(all.size()) - failed}, {"failed", failed}, {"seconds", now_s() - start}};
}

struct Seen {
  std::string name;
  json conditions;

  bool is(const char* type) const {
    for (const json& one : conditions)
      if (one["type"] == type) return one["status"] == "True";
    return false;
  }
};

Result<Seen> seen_workload(std::string_view text) {
  const json object = json::parse(text);
  const json status = object.value("status", json::object());
  return Seen{object["metadata"]["name"], status.value("conditions", json::array())};
}

// The job controllers: a Workload that is admitted runs for its time, and is then marked as finished.
class Player {
 public:
  Player(kube::Client& client, std::map<std::string, double> seconds)
      : client_(client), seconds_(std::move(seconds)), window_(static_cast<int>(seconds_.size()) + 1) {}

  void see(const std::vector<kube::WatchUpdate<Seen>>& updates) {
    const std::lock_guard lock(mutex_);
    for (const auto& update : updates) {
      if (const auto* list = std::get_if<kube::ListReplaced<Seen>>(&update))
        for (const Seen& seen : list->objects) take_in(seen);
      if (const auto* upserted = std::get_if<kube::Upserted<Seen>>(&update)) take_in(upserted->object);
    }
  }

  // False: all have been ended.
  bool end_those_due() {
    std::unique_lock lock(mutex_);
    while (!ending_.empty() && ending_.top().first <= now_s()) {
      const std::string name = ending_.top().second;
      ending_.pop();
      if (const auto at = running_.find(name); at != running_.end()) {
        end(name, std::move(at->second));
        running_.erase(at);
      }
    }
    return ended_.size() < seconds_.size();
  }

  json report() {
    const int failed = window_.drain();
    return {{"admitted", admitted_.size()},
            {"finished", static_cast<int>(ended_.size()) - failed},
            {"first", first_},
            {"last", last_},
            {"admissions", admissions_}};
  }

 private:
  void take_in(const Seen& seen) {
    const auto known = seconds_.find(seen.name);
    if (known == seconds_.end()) return;
    if (!seen.is("Admitted") || seen.is("Evicted") || seen.is("Finished")) {
      running_.erase(seen.name);
      return;
    }
    const bool is_new = !running_.contains(seen.name) && !ended_.contains(seen.name);
    if (!ended_.contains(seen.name)) running_[seen.name] = seen.conditions;
    if (!is_new) return;
    const double now = now_s();
    ++admissions_;
    if (admitted_.insert(seen.name).second) last_ = now;
    if (admissions_ == 1) first_ = now;
    ending_.emplace(now + known->second, seen.name);
  }

  void end(const std::string& name, json conditions) {
    ended_.insert(name);
    conditions.push_back({{"type", "Finished"},
                          {"status", "True"},
                          {"reason", "Succeeded"},
                          {"message", "the bench says so"},
                          {"lastTransitionTime", format_rfc3339(io::SystemClock::instance().wall())}});
    window_.enter();
    client_.patch(kWorkloads.object("default", name, "status"), kube::PatchType::kMerge,
                  json{{"status", {{"conditions", std::move(conditions)}}}}.dump(),
                  [this](const Result<std::string>& r) { window_.leave(r.has_value()); });
  }

  using Ending = std::pair<double, std::string>;

  kube::Client& client_;
  const std::map<std::string, double> seconds_;  // by name
  Window window_;
  std::mutex mutex_;
  std::set<std::string> admitted_, ended_;
  std::map<std::string, json> running_;  // their conditions, by name
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> ending_;
  double first_ = 0, last_ = 0;
  int admissions_ = 0;  // those after an eviction, too
};

json play(kube::Client& watching, kube::Client& client, double limit_s) {
  std::map<std::string, double> seconds;
  for (const json& one : read_lines()) seconds[one["name"]] = one["seconds"];
  Player player(client, std::move(seconds));
  kube::Reflector<Seen> workloads(watching, {.resource = kWorkloads}, &seen_workload,
                                  [&](const auto& updates) { player.see(updates); });
  workloads.start();
  const double start = now_s();
  while (!workloads.synced() && now_s() - start < limit_s) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::fprintf(stderr, "playing\n");
  while (player.end_those_due() && now_s() - start < limit_s) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  workloads.stop();
  return player.report();
}

int run(int argc, char** argv) {
  if (argc < 4) return std::fprintf(stderr, "usage: workload_bench KUBECONFIG write IN_FLIGHT | play SECONDS\n"), 2;
  api::Problems problems;
  const auto access = kube::load_kubeconfig({argv[1]}, "", problems);
  if (!access) return std::fprintf(stderr, "error: %s\n", api::to_string(problems.front()).c_str()), 1;
  const std::string verb = argv[2];
  auto options = kube::transport_options(*access);
  auto watch_transport = *io::CurlTransport::create(options);
  options.max_in_flight = verb == "write" ? std::atoi(argv[3]) : 32;
  auto transport = *io::CurlTransport::create(std::move(options));
  kube::Client watching(*watch_transport), client(*transport);
  const json out = verb == "write" ? write(client, std::atoi(argv[3])) : play(watching, client, std::atof(argv[3]));
  std::printf("%s\n", out.dump().c_str());
  transport->stop();
  watch_transport->stop();
  return 0;
}

}  // namespace
}  // namespace berth

int main(int argc, char** argv) { return berth::run(argc, argv); }
