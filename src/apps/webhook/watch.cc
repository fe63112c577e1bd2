#include "apps/webhook/watch.h"

#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "api/decode.h"
#include "api/kueue_names.h"
#include "apps/scheduler/log.h"
#include "apps/scheduler/queue_watch.h"
#include "io/curl_transport.h"
#include "kube/credentials.h"
#include "kube/reflector.h"
#include "webhook/object.h"

namespace berth::apps {
namespace {

constexpr Duration kAskTimeout = Duration::millis(500);
constexpr Duration kAskSlow = Duration::millis(50);
constexpr Duration kAskPause = Duration::seconds(10);
constexpr Duration kTellEvery = Duration::seconds(2);
constexpr kube::Resource kQuotas{"", "v1", "resourcequotas", "ResourceQuota"};
constexpr kube::Resource kRanges{"", "v1", "limitranges", "LimitRange"};

// Of a queue it matters only that it is there, and where a LocalQueue leads.
struct SeenQueue {
  api::ObjectMeta metadata;
  std::string cluster_queue;
};

Result<SeenQueue> decode_queue(std::string_view json) {
  const nlohmann::json object = nlohmann::json::parse(json, nullptr, false);
  const nlohmann::json* metadata = webhook::part_of(object, "metadata");
  if (metadata == nullptr) return fail(ErrorCode::kInvalidInput, "a queue without metadata");
  SeenQueue out;
  out.metadata.name = webhook::text_of(metadata, "name");
  out.metadata.namespace_name = webhook::text_of(metadata, "namespace");
  out.cluster_queue = webhook::text_of(webhook::part_of(object, "spec"), "clusterQueue");
  return out;
}

const api::ObjectMeta& metadata_of(const SeenQueue& queue) { return queue.metadata; }
const api::ObjectMeta& metadata_of(const api::LimitRange& range) { return range.metadata; }
const api::ObjectMeta& metadata_of(const webhook::SeenQuota& seen) { return seen.quota.metadata; }

// The objects of one kind, by namespace (empty where they have none) and name, as its reflector tells of them.
template <typename T>
class Store {
 public:
  using Space = std::map<std::string, T>;

  Store(kube::Client& client, const kube::Resource& resource, typename kube::Reflector<T>::Decode decode)
      : plural_(resource.plural), reflector_(client, {.resource = resource}, std::move(decode), [this](auto updates) {
          take(std::move(updates));
        }) {}

  void start() { reflector_.start(); }
  void stop() { reflector_.stop(); }
  std::string_view plural() const { return plural_; }
  bool synced() const { return reflector_.synced(); }
  std::string last_error() const { return reflector_.last_error(); }

  Space in(const std::string& space) {
    const std::lock_guard lock(mutex_);
    const auto at = objects_.find(space);
    return at != objects_.end() ? at->second : Space();
  }
  std::optional<T> find(const std::string& space, const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto in_space = objects_.find(space);
    if (in_space == objects_.end()) return std::nullopt;
    const auto at = in_space->second.find(name);
    return at != in_space->second.end() ? std::optional(at->second) : std::nullopt;
  }

 private:
  void take(std::vector<kube::WatchUpdate<T>> updates) {
    const std::lock_guard lock(mutex_);
    for (auto& update : updates) {
      if (auto* list = std::get_if<kube::ListReplaced<T>>(&update)) {
        objects_.clear();
        for (T& object : list->objects) put(std::move(object));
      } else if (auto* upserted = std::get_if<kube::Upserted<T>>(&update)) {
        put(std::move(upserted->object));
      } else if (auto* deleted = std::get_if<kube::Deleted<T>>(&update)) {
        remove(metadata_of(deleted->object).namespace_name, metadata_of(deleted->object).name);
      } else {
        const auto& malformed = std::get<kube::Malformed>(update);
        remove(malformed.name_space, malformed.name);
      }
    }
  }
  void put(T object) {
    const std::string space = metadata_of(object).namespace_name, name = metadata_of(object).name;
    objects_[space].insert_or_assign(name, std::move(object));
  }
  void remove(const std::string& space, const std::string& name) {
    const auto at = objects_.find(space);
    if (at == objects_.end()) return;
    at->second.erase(name);
    if (at->second.empty()) objects_.erase(at);
  }

  std::string_view plural_;
  std::mutex mutex_;
  std::map<std::string, Space> objects_;
  kube::Reflector<T> reflector_;  // last, since it calls take()
};

}  // namespace

struct ClusterWatch::State {
  explicit State(std::unique_ptr<io::CurlTransport> made) : transport(std::move(made)) {}
  ~State() {
    queues.stop();
    cluster_queues.stop();
    quotas.stop();
    ranges.stop();
    transport->stop();
  }

  std::unique_ptr<io::CurlTransport> transport;
  kube::Client client{*transport};
  Store<SeenQueue> queues{client, resource_of(QueueKind::kLocalQueue), &decode_queue};
  Store<SeenQueue> cluster_queues{client, resource_of(QueueKind::kClusterQueue), &decode_queue};
  Store<webhook::SeenQuota> quotas{client, kQuotas, &webhook::decode_quota};
  Store<api::LimitRange> ranges{client, kRanges, &api::decode_json<api::LimitRange>};
  std::map<std::string_view, std::string> told;  // by plural: the error that was logged last
  std::mutex mutex;
  Time ask_again{};  // under the mutex

  // On the transport's thread, again and again: logs what cannot be watched, once for each trouble.
  void tell_troubles() {
    const auto tell = [this](const auto& store) {
      const std::string error = store.last_error();
      if (!error.empty() && error != told[store.plural()])
        log_warn("it cannot be watched; going on without it",
                 {{"kind", std::string(store.plural())}, {"error", error}});
      told[store.plural()] = error;
    };
    tell(queues);
    tell(cluster_queues);
    tell(quotas);
    tell(ranges);
    transport->run_after(kTellEvery, [this] { tell_troubles(); });
  }
};

ClusterWatch::ClusterWatch(std::unique_ptr<State> state) : state_(std::move(state)) {}
ClusterWatch::~ClusterWatch() = default;

Result<std::unique_ptr<ClusterWatch>> ClusterWatch::start(const kube::ClusterAccess& access) {
  BERTH_TRY(transport, io::CurlTransport::create(kube::transport_options(access)));
  auto state = std::make_unique<State>(std::move(transport));
  state->queues.start();
  state->cluster_queues.start();
  state->quotas.start();
  state->ranges.start();
  state->transport->run_after(kTellEvery, [at = state.get()] { at->tell_troubles(); });
  return std::unique_ptr<ClusterWatch>(new ClusterWatch(std::move(state)));
}

webhook::QueueIs ClusterWatch::local_queue(const std::string& namespace_name, const std::string& name) {
  using webhook::QueueIs;
  State& s = *state_;
  if (s.queues.find(namespace_name, name)) return QueueIs::kThere;
  if (!s.queues.synced()) return QueueIs::kUnknown;
  const Clock& clock = s.transport->clock();
  const Time begin = clock.monotonic();
  {
    const std::lock_guard lock(s.mutex);
    if (begin < s.ask_again) return QueueIs::kUnknown;
  }
  const auto found =
      s.client.get_now(resource_of(QueueKind::kLocalQueue).object(namespace_name, name), {.timeout = kAskTimeout});
  const bool answered = found || found.error().http_status == 404;
  const Time now = clock.monotonic();
  if (!answered || now - begin > kAskSlow) {
    const std::lock_guard lock(s.mutex);
    s.ask_again = now + kAskPause;
  }
  if (!answered) log_warn("the API server could not be asked about a queue", {{"error", found.error().message}});
  if (found) return QueueIs::kThere;
  return answered ? QueueIs::kMissing : QueueIs::kUnknown;
}

std::string ClusterWatch::missing_cluster_queue(const std::string& namespace_name, const std::string& local_queue) {
  State& s = *state_;
  const auto queue = s.queues.find(namespace_name, local_queue);
  if (!queue || !s.cluster_queues.synced() || s.cluster_queues.find("", queue->cluster_queue)) return "";
  return queue->cluster_queue;
}

bool ClusterWatch::has_default_queue(const std::string& namespace_name) {
  return state_->queues.find(namespace_name, std::string(api::kDefaultLocalQueue)).has_value();
}

webhook::NamespaceSeen ClusterWatch::limits_of(const std::string& namespace_name) {
  webhook::NamespaceSeen seen;
  for (auto& [name, range] : state_->ranges.in(namespace_name)) seen.ranges.push_back(range);
  for (auto& [name, quota] : state_->quotas.in(namespace_name)) seen.quotas.push_back(quota);
  return seen;
}

std::vector<std::pair<std::string_view, bool>> ClusterWatch::synced() const {
  const auto of = [](const auto& store) { return std::pair(store.plural(), store.synced()); };
  return {of(state_->queues), of(state_->cluster_queues), of(state_->quotas), of(state_->ranges)};
}

}  // namespace berth::apps
