#include "scenario/policy_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "api/names.h"
#include "model/budget.h"

namespace berth::scenario {
namespace {

constexpr int64_t kMicrosPerDollar = 1'000'000;

std::optional<int64_t> price_of(const std::string& text) { return model::parse_micros(text, policy::kMaxGpuPrice); }

// Weights of which `check` has nothing to say.
void read_checked(const api::Reader& reader, policy::Weights& out, Status (*check)(const std::string&, int64_t)) {
  if (!reader.expect(api::JsonType::kObject)) return;
  for (api::Members members(reader); members.next();) {
    int64_t weight = 0;
    if (!members.value().read(weight)) continue;
    const std::string name(members.key());
    if (const Status ok = check(name, weight); !ok) members.value().problem(ok.error().message);
    else out[name] = weight;
  }
}

void read_pool_name(const api::Reader& reader, std::string& out) {
  std::string name;
  if (!reader.read(name)) return;
  if (const std::string wrong = api::check_dns1123_label(name); !wrong.empty())
    return reader.problem(fmt::format("'{}' cannot name a pool: {}", name, wrong));
  out = name;
}

void read_node_selector(const api::Reader& reader, model::Labels& out) {
  model::Labels labels;
  if (!reader.read(labels)) return;
  if (labels.empty())
    return reader.problem("must name at least one label; what holds for all nodes stands under the cluster's scores");
  for (const auto& [key, value] : labels) {
    std::string wrong = api::check_qualified_name(key);
    if (wrong.empty()) wrong = api::check_label_value(value);
    if (!wrong.empty()) return reader.problem(fmt::format("'{}: {}' is no label: {}", key, value, wrong));
  }
  out = std::move(labels);
}

constexpr api::Field<policy::PoolOptions> kPool[] = {
    {"name", [](const api::Reader& r, policy::PoolOptions& p) { read_pool_name(r, p.name); }},
    {"nodeSelector", [](const api::Reader& r, policy::PoolOptions& p) { read_node_selector(r, p.node_selector); }},
    {"scores", [](const api::Reader& r, policy::PoolOptions& p) { read_checked(r, p.weights, &policy::check_weight); }},
};

bool selects_all_of(const policy::PoolOptions& earlier, const policy::PoolOptions& later) {
  const auto& wanted = later.node_selector;
  return std::all_of(earlier.node_selector.begin(), earlier.node_selector.end(), [&](const auto& label) {
    const std::string* value = wanted.find(label.first);
    return value != nullptr && *value == label.second;
  });
}

void read_pool(const api::Reader& reader, policy::PolicyOptions& out) {
  policy::PoolOptions pool;
  api::read_object(reader, kPool, pool);
  if (!api::has_member(reader, "name") && reader.sound("name"))
    reader.problem("a pool needs a name, which messages about it can use, for example name: batch");
  if (!api::has_member(reader, "nodeSelector") && reader.sound("nodeSelector"))
    reader.problem("a pool needs a nodeSelector, the labels that its nodes have, for example nodeSelector: {pool: a}");
  for (const policy::PoolOptions& earlier : out.pools) {
    if (!pool.name.empty() && earlier.name == pool.name)
      reader.problem_at("name",
                        fmt::format("'{}' is the name of another pool, too; names tell pools apart", pool.name));
    else if (!pool.node_selector.empty() && !earlier.node_selector.empty() && selects_all_of(earlier, pool))
      reader.problem_at("nodeSelector",
                        fmt::format("no node is left for this pool: all that it selects are in pool '{}', which comes "
                                    "before it; put the narrower pool first",
                                    earlier.name));
  }
  out.pools.push_back(std::move(pool));
}

// "name" of a LocalQueue, or "namespace/name". What is wrong with it; empty when nothing is.
std::string check_queue_name(const std::string& name) {
  const size_t slash = name.find('/');
  if (slash != std::string::npos)
    if (std::string wrong = api::check_dns1123_label(name.substr(0, slash)); !wrong.empty())
      return "its namespace: " + wrong;
  const std::string queue = slash == std::string::npos ? name : name.substr(slash + 1);
  std::string wrong = api::check_dns1123_subdomain(queue);
  return wrong.empty() ? api::check_label_value(queue) : wrong;
}

void read_queue_name(const api::Reader& reader, std::string& out) {
  std::string name;
  if (!reader.read(name)) return;
  if (const std::string wrong = check_queue_name(name); !wrong.empty())
    return reader.problem(
        fmt::format("'{}' is no queue: write the name of a LocalQueue, or namespace/name ({})", name, wrong));
  out = name;
}

constexpr api::Field<policy::QueueOptions> kQueue[] = {
    {"name", [](const api::Reader& r, policy::QueueOptions& q) { read_queue_name(r, q.name); }},
    {"scores", [](const api::Reader& r, policy::QueueOptions& q) { read_weights(r, q.weights); }},
};

void read_queue(const api::Reader& reader, policy::PolicyOptions& out) {
  policy::QueueOptions queue;
  api::read_object(reader, kQueue, queue);
  if (!api::has_member(reader, "name") && reader.sound("name"))
    reader.problem("a queue needs the name of a LocalQueue, for example name: training or name: ml/training");
  for (const policy::QueueOptions& earlier : out.queues)
    if (!queue.name.empty() && earlier.name == queue.name)
      reader.problem_at("name", fmt::format("'{}' is listed twice; put its weights together", queue.name));
  out.queues.push_back(std::move(queue));
}

}  // namespace

void read_weights(const api::Reader& reader, policy::Weights& out) { read_checked(reader, out, &policy::check_weight); }

void read_pools(const api::Reader& reader, policy::PolicyOptions& out) {
  if (!reader.expect(api::JsonType::kArray)) return;
  for (api::Items items(reader); items.next();) read_pool(items.value(), out);
}

void read_queues(const api::Reader& reader, policy::PolicyOptions& out) {
  if (!reader.expect(api::JsonType::kArray)) return;
  for (api::Items items(reader); items.next();) read_queue(items.value(), out);
}

void read_prices(const api::Reader& reader, policy::PolicyOptions& out) {
  if (!reader.expect(api::JsonType::kObject)) return;
  for (api::Members members(reader); members.next();) {
    const std::string model(members.key());
    std::string text;
    if (!members.value().read_string_or_number(text)) continue;
    if (const std::string wrong = api::check_label_value(model); model.empty() || !wrong.empty()) {
      members.value().problem(
          fmt::format("'{}' cannot be a GPU model, which is a value of the label {}; `kubectl get "
                      "nodes -L {}` shows those of your nodes",
                      model, engine::kGpuProductLabel, engine::kGpuProductLabel));
      continue;
    }
    const std::string written = members.value().type() == api::JsonType::kString ? text : members.value().source();
    std::optional<int64_t> price = price_of(written);  // JSON has an exponent in small numbers
    if (!price) price = price_of(text);
    if (price) out.gpu_prices[model] = *price;
    else
      members.value().problem(
          fmt::format("'{}' is no price: write dollars for a GPU-hour, 0 to {}, with up to six "
                      "decimals, for example 2.50",
                      written, policy::kMaxGpuPrice / kMicrosPerDollar));
  }
}

namespace {

// Tells of the weights of an object with the member "scores" that need prices where there are none.
void check_prices(const api::Reader& object, const policy::PolicyOptions& options) {
  for (api::Members members(object); members.next();) {
    if (members.key() != "scores") continue;
    for (api::Members weights(members.value()); weights.next();) {
      int64_t weight = 0;
      if (!weights.value().read(weight)) continue;
      if (const Status ok = policy::check_prices(std::string(weights.key()), weight, options); !ok)
        weights.value().problem(ok.error().message);
    }
  }
}

}  // namespace

void check_policies(const api::Reader& reader, const policy::PolicyOptions& options) {
  for (const char* part : {"scores", "prices", "pools", "queues"})
    if (!reader.sound(part)) return;
  check_prices(reader, options);
  for (api::Members members(reader); members.next();)
    if (members.key() == "pools" || members.key() == "queues")
      for (api::Items items(members.value()); items.next();) check_prices(items.value(), options);
}

namespace {

constexpr api::Field<policy::PolicyOptions> kPolicies[] = {
    {"scores", [](const api::Reader& r, policy::PolicyOptions& o) { read_weights(r, o.weights); }},
    {"prices", &read_prices},
    {"pools", &read_pools},
    {"queues", &read_queues},
};

}  // namespace

Result<engine::PolicySet> read_policies(const api::Document& document) {
  policy::PolicyOptions options;
  api::ProblemSink sink{.strict = true, .document = &document, .problems = {}};
  BERTH_TRY_VOID(api::read_json(document.json, sink, [&](const api::Reader& root) {
    api::read_object(root, kPolicies, options);
    check_policies(root, options);
  }));
  if (!sink.problems.empty()) return fail(ErrorCode::kInvalidInput, api::to_string(sink.problems.front()));
  return policy::make_policy_set(options);
}

}  // namespace berth::scenario
