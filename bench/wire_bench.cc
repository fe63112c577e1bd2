// wire_bench: what JSON and Kubernetes protobuf cost the API server. Driven by bench/wire.py; talks to loopback only.
//
//   wire_bench KUBECONFIG create COUNT            busy pods, placed already, for the lists
//   wire_bench KUBECONFIG binds BLOCK SERVER_PID   binds all waiting pods, BLOCK at a time, the ways taking turns
//   wire_bench KUBECONFIG events BLOCK SERVER_PID ROUNDS
//   wire_bench KUBECONFIG lists PLURAL SERVER_PID ROUNDS   whole lists in pages of 500, as Reflector asks for them
//
// Prints one JSON array with an object for each block: its way, how many requests, seconds, CPU seconds of the server
// and of this program. The first block of each way warms up and is left out.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "api/decode.h"
#include "api/patch.h"
#include "api/protobuf_tables.h"
#include "base/rng.h"
#include "bench/busy_pod.h"
#include "bench/protobuf.h"
#include "bench/scheduled_event.h"
#include "bench/window.h"
#include "io/curl_transport.h"
#include "kube/client.h"
#include "kube/credentials.h"
#include "kube/kubeconfig.h"
#include "kube/watch_frames.h"

namespace berth::bench {
namespace {

using nlohmann::json;

constexpr const char* kJson = "application/json";

// One way to write: the request's body, the answer, and what a watcher of the same objects asks for.
struct Way {
  const char* name;
  bool protobuf = false;
  std::string_view accept = kJson;
  std::string_view query{};
  std::string_view watch{};  // empty: nobody watches
};

constexpr Way kWays[] = {
    {.name = "JSON"},
    {.name = "JSON, fieldValidation=Ignore", .query = "?fieldValidation=Ignore"},
    {.name = "protobuf, answer JSON", .protobuf = true},
    {.name = "protobuf", .protobuf = true, .accept = kProtobuf},
    {.name = "JSON, watched in JSON", .watch = kJson},
    {.name = "JSON, watched in protobuf", .watch = "application/vnd.kubernetes.protobuf;stream=watch"},
};

// User and system seconds of a process so far.
double cpu_s(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  unsigned long user = 0, system = 0;
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::sscanf(text.c_str() + name_end, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
  return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double own_cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// What a stretch of work costs: made before it, read after it.
class Meter {
 public:
  explicit Meter(std::string pid) : pid_(std::move(pid)) {}
  json read(const std::string& way, size_t count, size_t bytes) const {
    return {{"way", way},
            {"count", count},
            {"bytes", bytes},
            {"seconds", now_s() - start_},
            {"server_cpu_s", cpu_s(pid_) - server_},
            {"client_cpu_s", own_cpu_s() - own_}};
  }

 private:
  std::string pid_;
  double start_ = now_s(), server_ = cpu_s(pid_), own_ = own_cpu_s();
};

struct Setting {
  io::Transport& transport;
  kube::Client client;
  std::string server_pid{};
};

void set(io::HttpRequest& request, std::string_view name, std::string_view value) {
  std::erase_if(request.headers, [&](const io::Header& header) { return header.name == name; });
  request.headers.push_back({std::string(name), std::string(value)});
}

// A watch of `resource` from now on, whose bytes nobody reads; 0 where the way has none.
io::StreamId watch(Setting& setting, const Way& way, const kube::Resource& resource) {
  if (way.watch.empty()) return 0;
  const json list = json::parse(*setting.client.get_now(resource.collection() + "?limit=1"));
  const std::string version = list["metadata"]["resourceVersion"];
  io::HttpRequest request =
      setting.client.request("GET", resource.collection() + "?watch=true&resourceVersion=" + version);
  set(request, "Accept", way.watch);
  return setting.transport.open_stream(std::move(request), {.on_chunk = [](auto) {}, .done = [](const auto&) {}});
}

// Sends `count` POSTs with 32 in flight. `write(i)` gives path and body.
template <typename Write>
json block(Setting& setting, const Way& way, const kube::Resource& resource, size_t count, const Write& write) {
  const io::StreamId stream = watch(setting, way, resource);
  Window window(32);
  size_t bytes = 0;
  bool told = false;  // of the first failure; on the transport's thread
  const Meter meter(setting.server_pid);
  for (size_t i = 0; i < count; ++i) {
    auto [path, body] = write(i);
    io::HttpRequest request = setting.client.request("POST", path + std::string(way.query));
    set(request, "Accept", way.accept);
    set(request, "Content-Type", way.protobuf ? kProtobuf : kJson);
    bytes += body.size();
    request.body = std::move(body);
    window.enter();
    setting.transport.send(std::move(request), [&](const Result<io::HttpResponse>& answer) {
      const bool ok = answer && answer->status / 100 == 2;
      if (!ok && !std::exchange(told, true))
        std::fprintf(stderr, "%s\n", answer ? answer->body.c_str() : answer.error().message.c_str());
      window.leave(ok);
    });
  }
  const int failed = window.drain();
  json out = meter.read(way.name, count, bytes);
  out["failed"] = failed;
  if (stream != 0) setting.transport.cancel(stream);
  return out;
}

json binds(Setting& setting, size_t size) {
  json pods = json::parse(*setting.client.get_now(kube::kPods.collection("default")))["items"];
  const json nodes = json::parse(*setting.client.get_now(kube::kNodes.collection()))["items"];
  json out = json::array();
  size_t next = 0;
  for (size_t turn = 0; next + size <= pods.size(); ++turn) {
    const size_t round = turn / std::size(kWays);
    const Way& way = kWays[(turn + round) % std::size(kWays)];  // another begins each round
    const auto write = [&](size_t) {
      const json& metadata = pods[next++]["metadata"];
      const std::string pod = metadata["name"], uid = metadata["uid"];
      const std::string node = nodes[next % nodes.size()]["metadata"]["name"];
      return std::pair(
          kube::kPods.object("default", pod, "binding"),
          way.protobuf ? binding_protobuf("default", pod, uid, node) : api::binding_json("default", pod, uid, node));
    };
    json one = block(setting, way, kube::kPods, size, write);
    if (round > 0) out.push_back(std::move(one));
  }
  return out;
}

json events(Setting& setting, size_t size, size_t rounds) {
  json out = json::array();
  size_t serial = 0;
  for (size_t turn = 0; turn < (rounds + 1) * std::size(kWays); ++turn) {
    const size_t round = turn / std::size(kWays);
    const Way& way = kWays[(turn + round) % std::size(kWays)];
    const auto write = [&](size_t) {
      const std::string pod = "train-" + std::to_string(++serial), uid = "6d8c1a52-0b0c-4a53-9a0a-9d3d0b1c2e3f";
      const std::string name = pod + ".1", note = "Successfully assigned default/" + pod + " to node-17";
      const Time at = io::SystemClock::instance().wall();
      return std::pair(kube::kEvents.collection("default"), way.protobuf
                                                                ? event_protobuf(pod, uid, name, note, at.nanos / 1000)
                                                                : event_json(pod, uid, name, note, at));
    };
    json one = block(setting, way, kube::kEvents, size, write);
    if (round > 0) out.push_back(std::move(one));
  }
  return out;
}

// One page, decoded as Berth does; the token of the next.
std::string page(Setting& setting, const std::string& path, bool protobuf, bool gzip, size_t& bytes,
                 double& decoded_s) {
  io::HttpRequest request = setting.client.request("GET", path, protobuf ? kProtobuf : kJson);
  if (gzip) set(request, "Accept-Encoding", "gzip");
  request.timeout = Duration::seconds(120);
  io::HttpResponse answer = *setting.transport.call(std::move(request));
  bytes += answer.body.size();
  if (gzip) return answer.header("content-encoding") == "gzip" ? "gzip" : "";
  const double start = now_s();
  const bool pods = path.find("/pods") != std::string::npos;
  const auto item = [&](std::string_view text, const Status& whole = {}) {
    const bool ok = whole && (pods ? api::decode_pod(text).has_value() : api::decode_node(text).has_value());
    if (!ok) std::fprintf(stderr, "did not decode: %.*s\n", static_cast<int>(text.size()), text.data());
  };
  const auto read = protobuf
                        ? kube::read_protobuf_page(answer.body, pods ? api::kPodProtobuf : api::kNodeProtobuf, item)
                        : kube::read_list_page(answer.body, item);
  decoded_s += now_s() - start;
  return read ? read->continue_token : "";
}

json one_list(Setting& setting, const kube::Resource& resource, const std::string& way) {
  const bool protobuf = way.ends_with("protobuf"), whole = way.starts_with("whole"), gzip = way == "whole, JSON, gzip";
  const std::string first = resource.collection() + (whole ? "" : "?limit=500");
  size_t bytes = 0, pages = 0;
  double decoded_s = 0;
  std::string token;
  const Meter meter(setting.server_pid);
  do {
    const std::string path = token.empty() ? first : first + "&continue=" + io::url_escape(token);
    token = page(setting, path, protobuf, gzip, bytes, decoded_s);
    ++pages;
  } while (!token.empty() && !whole);
  json out = meter.read(way, pages, bytes);
  out["decode_s"] = decoded_s;
  out["gzip"] = token == "gzip";
  return out;
}

json lists(Setting& setting, const kube::Resource& resource, int rounds) {
  const std::vector<std::string> ways{"JSON", "protobuf", "whole, JSON", "whole, protobuf", "whole, JSON, gzip"};
  json out = json::array();
  for (size_t turn = 0; turn < (static_cast<size_t>(rounds) + 1) * ways.size(); ++turn) {
    const size_t round = turn / ways.size();
    json one = one_list(setting, resource, ways[(turn + round) % ways.size()]);
    if (round > 0) out.push_back(std::move(one));
  }
  return out;
}

json create(Setting& setting, size_t count) {
  json pod = json::parse(busy_pod_json());
  for (const char* own : {"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"})
    pod["metadata"].erase(own);
  pod["metadata"]["namespace"] = "default";
  Rng rng(1);
  return block(setting, kWays[0], kube::kPods, count, [&](size_t i) {
    pod["metadata"]["name"] = "train-7f6d9c-" + std::to_string(i);
    // As no two pods are quite alike, which counts for gzip.
    pod["metadata"]["annotations"]["example.com/run"] = fmt::format("{:016x}{:016x}", rng.next(), rng.next());
    pod["spec"]["containers"][0]["env"][0]["value"] = fmt::format("{:016x}{:016x}", rng.next(), rng.next());
    return std::pair(kube::kPods.collection("default"), pod.dump());
  });
}

int run(int argc, char** argv) {
  if (argc < 4) return std::fprintf(stderr, "usage: wire_bench KUBECONFIG create|binds|events|lists ...\n"), 2;
  api::Problems problems;
  const auto access = kube::load_kubeconfig({argv[1]}, "", problems);
  if (!access) return std::fprintf(stderr, "error: %s\n", api::to_string(problems.front()).c_str()), 1;
  auto transport = *io::CurlTransport::create(kube::transport_options(*access));
  Setting setting{*transport, kube::Client(*transport), argc > 4 ? argv[4] : "self"};
  const std::string verb = argv[2], what = argv[3];
  const int rounds = argc > 5 ? std::atoi(argv[5]) : 5;
  json out;
  if (verb == "create") out = create(setting, std::stoul(what));
  else if (verb == "binds") out = binds(setting, std::stoul(what));
  else if (verb == "events") out = events(setting, std::stoul(what), static_cast<size_t>(rounds));
  else out = lists(setting, what == "pods" ? kube::kPods : kube::kNodes, rounds);
  std::printf("%s\n", out.dump(1).c_str());
  transport->stop();
  return 0;
}

}  // namespace
}  // namespace berth::bench

int main(int argc, char** argv) { return berth::bench::run(argc, argv); }
