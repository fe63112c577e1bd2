#include "quota/local_usage.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/quantity.h"
#include "model/queues.h"

namespace berth::quota {

double LocalUsage::kept(Duration passed) const {
  if (passed <= Duration{}) return 1;
  if (options_.half_life <= Duration{}) return 0;
  return std::exp2(-static_cast<double>(passed.nanos) / static_cast<double>(options_.half_life.nanos));
}

void LocalUsage::bring_up(Entry& entry, Time now) const {
  const double share = kept(now - entry.at);
  for (auto& [resource, use] : entry.resources)
    use.average = use.average * share + static_cast<double>(use.now) * (1 - share);
  entry.at = now;
}

// What of a workload counts with its admission.
double LocalUsage::at_once() const {
  return options_.half_life <= Duration{} ? 0 : 1 - kept(options_.sampling_interval);
}

void LocalUsage::know(const Queue& queue, const std::map<std::string, double>& amounts, Time then) {
  const auto [at, is_new] = queues_.try_emplace(queue, Entry{then, {}, then});
  if (!is_new) return;
  for (const auto& [resource, amount] : amounts)
    at->second.resources[resource].average = amount * static_cast<double>(model::quota_units(resource));
}

void LocalUsage::no_later_than(Time now) {
  for (auto& [queue, entry] : queues_) {
    entry.at = std::min(entry.at, now);
    entry.known = std::min(entry.known, now);
  }
}

void LocalUsage::begin(const Queue& queue, const model::ResourceList& amounts, Time now) {
  Entry& entry = queues_.try_emplace(queue, Entry{now, {}}).first->second;
  bring_up(entry, now);
  for (const auto& [resource, amount] : amounts) {
    Use& use = entry.resources[resource];
    use.now += amount;
    use.average += static_cast<double>(amount) * at_once();
  }
}

void LocalUsage::resume(const Queue& queue, const model::ResourceList& amounts, Time admitted, Time now) {
  Entry& entry = queues_.try_emplace(queue, Entry{now, {}}).first->second;
  bring_up(entry, now);
  const Time since = std::min(admitted, now);
  const bool is_known = since <= entry.known;
  const double share = kept(now - (is_known ? entry.known : since));
  const double counts = 1 - share + (is_known ? 0 : at_once() * share);
  for (const auto& [resource, amount] : amounts) {
    Use& use = entry.resources[resource];
    use.now += amount;
    use.average += static_cast<double>(amount) * counts;
  }
}

void LocalUsage::end(const Queue& queue, const model::ResourceList& amounts, Time now) {
  const auto known = queues_.find(queue);
  if (known == queues_.end()) return;
  bring_up(known->second, now);
  for (const auto& [resource, amount] : amounts) known->second.resources[resource].now -= amount;
}

void LocalUsage::take_averages(const LocalUsage& from, Time now) {
  for (auto& [queue, entry] : queues_) {
    entry.at = now;
    for (auto& [resource, use] : entry.resources) use.average = 0;
  }
  for (const auto& [queue, known] : from.queues_) {
    Entry brought_up = known;
    from.bring_up(brought_up, now);
    Entry& entry = queues_.try_emplace(queue, Entry{now, {}}).first->second;
    entry.known = now;
    for (const auto& [resource, use] : brought_up.resources) entry.resources[resource].average = use.average;
  }
}

std::map<std::string, double> LocalUsage::used(const Queue& queue, Time now) const {
  const auto known = queues_.find(queue);
  if (known == queues_.end() || options_.half_life <= Duration{}) return {};
  Entry entry = known->second;
  bring_up(entry, now);
  std::map<std::string, double> out;
  for (const auto& [resource, use] : entry.resources)
    out[resource] = std::max(0.0, use.average / static_cast<double>(model::quota_units(resource)));
  return out;
}

double LocalUsage::weighted(const Queue& queue, int64_t fair_weight, Time now) const {
  if (fair_weight <= 0) return std::numeric_limits<double>::infinity();
  const auto known = queues_.find(queue);
  if (known == queues_.end() || options_.half_life <= Duration{}) return 0;
  const double share = kept(now - known->second.at);
  double sum = 0;
  for (const auto& [resource, use] : known->second.resources) {
    const auto weight = options_.resource_weights.find(resource);
    const auto by =
        static_cast<double>(weight == options_.resource_weights.end() ? model::kFairWeightUnit : weight->second);
    const auto unit = static_cast<double>(model::quota_units(resource));
    sum += (use.average * share + static_cast<double>(use.now) * (1 - share)) / unit * by;
  }
  return sum * static_cast<double>(model::kFairWeightUnit) / static_cast<double>(fair_weight);
}

}  // namespace berth::quota
