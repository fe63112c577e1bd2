#include "quota/quota_tree.h"

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace berth::quota {

int64_t saturating_add(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}

double FairShare::weighted() const {
  if (!borrows()) return 0;
  if (weight == 0) return std::numeric_limits<double>::infinity();
  return unweighted * static_cast<double>(model::kFairWeightUnit) / static_cast<double>(weight);
}

int64_t FairShare::told() const {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const double share = std::ceil(weighted());
  return share < static_cast<double>(kMost) ? static_cast<int64_t>(share) : kMost;
}

bool operator<(const FairShare& a, const FairShare& b) {
  const bool a_infinite = a.borrows() && a.weight == 0;
  const bool b_infinite = b.borrows() && b.weight == 0;
  if (a_infinite && b_infinite) return a.unweighted < b.unweighted;
  return a.weighted() < b.weighted();
}

QuotaTree::QuotaTree(const Queues& queues, const Cohorts& cohorts) {
  for (const auto& [name, cohort] : cohorts) learn(cohort.groups);
  for (const auto& [name, queue] : queues) learn(queue.groups);
  for (const auto& [name, queue] : queues) {
    const QuotaNode node = add_node(name, true, queue.fair_weight);
    queues_[name] = node;
    set_quotas(node, queue.groups);
  }
  for (const auto& [name, cohort] : cohorts) cohort_node(name, cohorts);
  for (const auto& [name, queue] : queues)
    if (!queue.cohort.empty()) nodes_[queues_[name].value].parent = cohort_node(queue.cohort, cohorts);
  cut_cycles();
  for (uint32_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].parent.valid()) nodes_[nodes_[i].parent.value].children.push_back(QuotaNode{i});
  for (Node& node : nodes_)
    std::ranges::sort(node.children, [this](QuotaNode a, QuotaNode b) {
      return std::pair(!is_queue(a), name(a)) < std::pair(!is_queue(b), name(b));
    });
  for (uint32_t i = 0; i < nodes_.size(); ++i)
    if (!nodes_[i].parent.valid()) sum_up(QuotaNode{i});
  std::map<std::string_view, size_t> resources;
  for (const auto& [flavor, resource] : flavor_resources_)
    resource_of_.push_back(resources.try_emplace(resource, resources.size()).first->second);
  for (uint32_t n = 0; n < nodes_.size(); ++n) {
    if (nodes_[n].children.empty()) continue;
    nodes_[n].lendable.resize(resources.size());
    for (uint32_t i = 0; i < flavor_resources_.size(); ++i)
      nodes_[n].lendable[resource_of_[i]] += static_cast<double>(wide_potential(QuotaNode{n}, FlavorResource{i}));
  }
}

void QuotaTree::learn(const std::vector<model::ResourceGroup>& groups) {
  for (const model::ResourceGroup& group : groups)
    for (const model::FlavorQuotas& flavor : group.flavors)
      for (const auto& [resource, quota] : flavor.resources) {
        const FlavorResource next{static_cast<uint32_t>(flavor_resources_.size())};
        if (ids_.try_emplace({flavor.flavor, resource}, next).second)
          flavor_resources_.emplace_back(flavor.flavor, resource);
      }
}

QuotaNode QuotaTree::add_node(const std::string& name, bool is_queue, int64_t weight) {
  Node& node = nodes_.emplace_back();
  node.name = name;
  node.is_queue = is_queue;
  node.fair_weight = weight;
  node.quotas.resize(flavor_resources_.size());
  node.subtree.resize(flavor_resources_.size());
  node.usage.resize(flavor_resources_.size());
  return QuotaNode{static_cast<uint32_t>(nodes_.size() - 1)};
}

// The node of the Cohort, made with those above it where it is new.
QuotaNode QuotaTree::cohort_node(const std::string& name, const Cohorts& cohorts) {
  if (const auto known = cohorts_.find(name); known != cohorts_.end()) return known->second;
  const auto given = cohorts.find(name);
  const QuotaNode node =
      add_node(name, false, given == cohorts.end() ? model::kFairWeightUnit : given->second.fair_weight);
  cohorts_[name] = node;
  if (given == cohorts.end()) return node;
  set_quotas(node, given->second.groups);
  if (!given->second.parent.empty()) {
    const QuotaNode parent = cohort_node(given->second.parent, cohorts);
    nodes_[node.value].parent = parent;
  }
  return node;
}

void QuotaTree::set_quotas(QuotaNode node, const std::vector<model::ResourceGroup>& groups) {
  for (const model::ResourceGroup& group : groups)
    for (const model::FlavorQuotas& flavor : group.flavors)
      for (const auto& [resource, quota] : flavor.resources)
        nodes_[node.value].quotas[find(flavor.flavor, resource).value] = quota;
}

// Who never comes to a root going up is below a cycle, or in one; each of them stands alone.
void QuotaTree::cut_cycles() {
  for (Node& node : nodes_) {
    QuotaNode up = node.parent;
    for (size_t steps = 0; up.valid() && steps <= nodes_.size(); ++steps) up = at(up).parent;
    node.in_cycle = up.valid();
  }
  for (Node& node : nodes_)
    if (node.in_cycle) node.parent = {};
}

void QuotaTree::sum_up(QuotaNode node) {
  Node& self = nodes_[node.value];
  for (size_t i = 0; i < flavor_resources_.size(); ++i) self.subtree[i] = self.quotas[i].nominal;
  for (const QuotaNode child : self.children) {
    sum_up(child);
    self.height = std::max(self.height, at(child).height + 1);
    for (uint32_t i = 0; i < flavor_resources_.size(); ++i)
      self.subtree[i] += at(child).subtree[i] - wide_local_quota(child, {i});
  }
}

QuotaNode QuotaTree::queue(std::string_view name) const {
  const auto found = queues_.find(name);
  return found == queues_.end() ? QuotaNode{} : found->second;
}

QuotaNode QuotaTree::cohort(std::string_view name) const {
  const auto found = cohorts_.find(name);
  return found == cohorts_.end() ? QuotaNode{} : found->second;
}

FlavorResource QuotaTree::find(std::string_view flavor, std::string_view resource) const {
  const auto found = ids_.find(std::pair(std::string(flavor), std::string(resource)));
  return found == ids_.end() ? FlavorResource{} : found->second;
}

QuotaNode QuotaTree::root(QuotaNode node) const {
  while (has_parent(node)) node = parent(node);
  return node;
}

std::vector<QuotaNode> QuotaTree::queues_below(QuotaNode node) const {
  if (is_queue(node)) return {node};
  std::vector<QuotaNode> found;
  for (const QuotaNode child : children(node)) {
    const std::vector<QuotaNode> below = queues_below(child);
    found.insert(found.end(), below.begin(), below.end());
  }
  return found;
}

int64_t QuotaTree::narrow(Int128 amount) {
  constexpr Int128 kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::clamp(amount, kLeast, kMost));
}

Int128 QuotaTree::wide_local_quota(QuotaNode node, FlavorResource fr) const {
  const std::optional<int64_t>& lending = quota(node, fr).lending_limit;
  return lending ? std::max<Int128>(0, at(node).subtree[fr.value] - *lending) : 0;
}

Int128 QuotaTree::wide_local_available(QuotaNode node, FlavorResource fr) const {
  return std::max<Int128>(0, wide_local_quota(node, fr) - at(node).usage[fr.value]);
}

Int128 QuotaTree::wide_available(QuotaNode node, FlavorResource fr) const {
  const Int128 subtree = at(node).subtree[fr.value], used = at(node).usage[fr.value];
  if (!has_parent(node)) return subtree - used;
  Int128 from_parent = wide_available(parent(node), fr);
  if (const std::optional<int64_t>& limit = quota(node, fr).borrowing_limit) {
    const Int128 local = wide_local_quota(node, fr);
    from_parent = std::min(from_parent, subtree - local - std::max<Int128>(0, used - local) + *limit);
  }
  return wide_local_available(node, fr) + from_parent;
}

Int128 QuotaTree::wide_potential(QuotaNode node, FlavorResource fr) const {
  const Int128 subtree = at(node).subtree[fr.value];
  if (!has_parent(node)) return subtree;
  const Int128 all = wide_local_quota(node, fr) + wide_potential(parent(node), fr);
  const std::optional<int64_t>& limit = quota(node, fr).borrowing_limit;
  return limit ? std::min(all, subtree + *limit) : all;
}

bool QuotaTree::borrows_with(QuotaNode node, FlavorResource fr, int64_t amount) const {
  return at(node).usage[fr.value] + amount > at(node).subtree[fr.value];
}

bool QuotaTree::within_nominal(QuotaNode node, const std::vector<FlavorResource>& resources) const {
  return std::ranges::none_of(resources, [&](FlavorResource fr) { return borrows_with(node, fr, 0); });
}

std::string QuotaTree::path(QuotaNode node) const {
  std::string path;
  for (; node.valid(); node = parent(node)) path = "/" + name(node) + path;
  return path;
}

bool QuotaTree::has_room(QuotaNode node, const Amounts& usage) const {
  return std::ranges::all_of(usage, [&](const auto& asked) { return asked.second <= available(node, asked.first); });
}

QuotaTree::Subtree QuotaTree::lowest_subtree_that_fits(QuotaNode queue, FlavorResource fr, int64_t amount) const {
  if (!borrows_with(queue, fr, amount) || !has_parent(queue)) return {0, has_parent(queue)};
  int64_t rest = amount - local_available(queue, fr);
  QuotaNode node = parent(queue);
  while (borrows_with(node, fr, rest)) {
    if (!has_parent(node)) return {at(node).height, false};
    rest -= local_available(node, fr);
    node = parent(node);
  }
  return {at(node).height, has_parent(node)};
}

void QuotaTree::add(QuotaNode node, FlavorResource fr, Int128 amount) {
  const Int128 kept = std::min(amount, wide_local_available(node, fr));
  nodes_[node.value].usage[fr.value] += amount;
  if (has_parent(node) && amount > kept) add(parent(node), fr, amount - kept);
}

void QuotaTree::remove(QuotaNode node, FlavorResource fr, Int128 amount) {
  const Int128 in_parent = std::max<Int128>(0, at(node).usage[fr.value] - wide_local_quota(node, fr));
  nodes_[node.value].usage[fr.value] -= amount;
  if (has_parent(node) && in_parent > 0) remove(parent(node), fr, std::min(amount, in_parent));
}

void QuotaTree::add_usage(QuotaNode queue, const Amounts& amounts) {
  for (const auto& [fr, amount] : amounts)
    if (amount > 0) add(queue, fr, amount);
}

void QuotaTree::remove_usage(QuotaNode queue, const Amounts& amounts) {
  for (const auto& [fr, amount] : amounts)
    if (amount > 0) remove(queue, fr, amount);
}

FairShare QuotaTree::share(QuotaNode node) const {
  FairShare share{0, at(node).fair_weight};
  if (!has_parent(node)) return share;
  const std::vector<double>& lendable = at(parent(node)).lendable;
  absl::InlinedVector<double, 8> borrowed(lendable.size(), 0);
  for (size_t i = 0; i < flavor_resources_.size(); ++i)
    if (const Int128 beyond = at(node).usage[i] - at(node).subtree[i]; beyond > 0)
      borrowed[resource_of_[i]] += static_cast<double>(beyond);
  for (size_t i = 0; i < borrowed.size(); ++i)
    if (const double of = lendable[i]; borrowed[i] > 0 && of > 0)
      share.unweighted = std::max(share.unweighted, borrowed[i] * 1000 / of);
  return share;
}

QuotaTree::Share QuotaTree::share_with(QuotaNode node, QuotaNode queue, const Amounts& amounts) {
  add_usage(queue, amounts);
  const auto borrows = [&](const auto& used) { return borrows_with(node, used.first, 0); };
  const Share out{std::ranges::any_of(amounts, borrows), share(node)};
  remove_usage(queue, amounts);
  return out;
}

}  // namespace berth::quota
