#include "engine/place_search.h"

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include <algorithm>

#include "engine/gather_room.h"
#include "engine/shared_domains.h"

namespace berth::engine {
namespace {

// How many of the numbers are from `begin` on and below `end`.
int32_t count_in(const std::vector<int32_t>& numbers, int32_t begin, int32_t end) {
  return static_cast<int32_t>(std::ranges::lower_bound(numbers, end) - std::ranges::lower_bound(numbers, begin));
}

// A node and the values of its labels.
struct Item {
  std::vector<std::string_view> path;
  NodeSlot node;
};

}  // namespace

PlaceSearch::~PlaceSearch() {
  txn_.rollback();
  for (const std::vector<PodSlot>& pods : pods_)
    for (const PodSlot pod : pods) context_.state.remove_pod(pod);
}

void PlaceSearch::evict(PodSlot pod) {
  txn_.evict(pod);
  evicted_ = txn_.mark();
}

bool PlaceSearch::run(const std::vector<Set>& sets, bool partly) {
  // All are there before the first is placed, so that where they want to be together it looks for room for all.
  for (const Set& set : sets) {
    std::vector<PodSlot>& pods = pods_.emplace_back();
    for (size_t i = 0; i < set.numbers.size(); ++i)
      pods.push_back(stand_ins_.enter(stand_ins_.make(workload_, set.index, set.looks, -1)));
  }
  if (attempt(sets, false, partly)) return true;
  if (partly) return false;
  for (int tried = 0; tried < kDomainsMax; ++tried) {
    const bool shared = std::ranges::any_of(pods_, [&](const std::vector<PodSlot>& pods) {
      return !pods.empty() && !shared_layers(context_.state, pods.front()).empty();
    });
    if (!shared) return false;
    if (attempt(sets, true, false)) return true;
    if (chooser_ == nullptr || last_ == chooser_) return false;  // it has tried all domains
    avoided_.insert(chosen_);
  }
  return false;
}

// False: some pod has no place; `last_` is its set.
bool PlaceSearch::attempt(const std::vector<Set>& sets, bool by_domain, bool partly) {
  txn_.rollback_to(evicted_);
  found_.clear();
  chooser_ = nullptr;
  bool all = true;
  const bool to_be_told = explains_ && failure_.why.empty();
  const auto counts = [&](const Set& set) { return to_be_told && set.index == failure_.set; };  // looks otherwise
  for (size_t i = 0; i < sets.size() && (all || partly || counts(sets[i])); ++i) {
    const Set& set = sets[i];
    if (set.numbers.empty()) continue;
    const bool sliced = !workload_.pod_sets[set.index].slices.empty();
    const bool domains = sliced || (by_domain && !shared_layers(context_.state, pods_[i].front()).empty());
    if (domains ? place_by_domain(set, pods_[i], partly) : place_one_by_one(set, pods_[i])) continue;
    if (all || partly) last_ = &set;
    all = false;
  }
  if (!all && to_be_told) failure_.placed = placed(failure_.set);
  return all;
}

// How many pods of the set have been.
size_t PlaceSearch::placed(size_t set) const {
  return static_cast<size_t>(std::ranges::count(found_, set, &Place::set));
}

// `why` empty: what the pod lacks on each node, as things are now.
void PlaceSearch::fail(size_t set, PodSlot pod, std::string why) {
  if (!explains_ || !failure_.why.empty()) return;
  if (why.empty()) {
    const Candidates& candidates = stand_ins_.look(pod);
    const size_t nodes = context_.state.node_count();
    why = !candidates.objection().empty() || nodes == 0 ? objection_message(candidates.objection(), nodes)
                                                        : fit_message(candidates.counts(), context_.sets);
  }
  failure_ = {set, placed(set), std::move(why)};
}

bool PlaceSearch::place_one_by_one(const Set& set, const std::vector<PodSlot>& pods) {
  for (size_t i = 0; i < pods.size(); ++i) {
    const NodeSlot node = stand_ins_.look(pods[i]).best();
    if (i == 0) stand_ins_.keep_class(pods[i]);
    if (!node.valid()) {
      fail(set.index, pods[i], "");
      return false;
    }
    txn_.place(pods[i], node);
    found_.push_back({set.index, node, set.numbers[i]});
  }
  return true;
}

bool PlaceSearch::place_by_domain(const Set& set, const std::vector<PodSlot>& pods, bool partly) {
  const Candidates& candidates = stand_ins_.look(pods.front());
  stand_ins_.keep_class(pods.front());
  Plan plan{&set, &pods, shared_layers(context_.state, pods.front()), 0, {}};
  plan.shared = plan.layers.size();
  plan.chooses = plan.shared > 0 && chooser_ == nullptr && set.there.empty();
  const std::vector<model::SliceLayer>& slices = workload_.pod_sets[set.index].slices;
  plan.layers.insert(plan.layers.end(), slices.begin(), slices.end());
  note_.clear();
  const std::vector<Domain> domains =
      candidates.objection().empty() ? domains_of(plan, candidates) : std::vector<Domain>();
  int32_t end = set.numbers.back() + 1;
  if (!set.there.empty()) end = std::max(end, set.there.back().first + 1);
  return place_slices(plan, 0, 0, end, domains, partly);
}

// The domains of nodes that fit, or have pods of the set.
std::vector<PlaceSearch::Domain> PlaceSearch::domains_of(Plan& plan, const Candidates& candidates) const {
  const State& state = context_.state;
  plan.room.assign(state.node_slots(), 0);
  std::vector<Item> items;
  for (const auto& [name, node] : state.nodes_by_name()) {
    if (!state.node(node).present) continue;
    const bool has_some =
        std::ranges::find(plan.set->there, node, &std::pair<int32_t, NodeSlot>::second) != plan.set->there.end();
    if (candidates.failure(node) != kFits && !has_some) continue;
    Item item{{}, node};
    for (const model::SliceLayer& layer : plan.layers)
      if (const std::string* value = state.node(node).node.labels.find(layer.key)) item.path.push_back(*value);
    if (item.path.size() < plan.layers.size()) continue;
    count(plan, node, candidates);
    items.push_back(std::move(item));
  }
  const auto group = [&](const auto& self, const std::vector<Item>& in, size_t layer) -> std::vector<Domain> {
    std::vector<Domain> out;
    std::vector<std::vector<Item>> parts;
    absl::flat_hash_map<std::string_view, size_t> known;
    for (const Item& item : in) {
      const auto [at, fresh] = known.try_emplace(item.path[layer], out.size());
      if (fresh) {
        out.push_back({item.path[layer], {}, {}});
        parts.emplace_back();
      }
      if (layer + 1 == plan.layers.size()) out[at->second].nodes.push_back(item.node);
      else parts[at->second].push_back(item);
    }
    for (size_t i = 0; i < out.size(); ++i)
      if (!parts[i].empty()) out[i].parts = self(self, parts[i], layer + 1);
    return out;
  };
  return group(group, items, 0);
}

// How many more of the set's pods the node has room for, at most.
void PlaceSearch::count(Plan& plan, NodeSlot node, const Candidates& candidates) const {
  const State& state = context_.state;
  const PodClass& cls = state.pod_class(state.pod(plan.pods->front()).cls);
  int64_t& room = plan.room[node.value];
  room = candidates.failure(node) == kFits ? pods_that_fit(state.view(node), cls) : 0;
  if (stand_apart(state, cls)) room = std::min<int64_t>(room, 1);
}

// How many pods the domain has room for, in whole slices of the layers below.
int64_t PlaceSearch::room(const Plan& plan, size_t layer, const Domain& domain) {
  int64_t out = 0;
  for (const NodeSlot node : domain.nodes) out += plan.room[node.value];
  for (const Domain& part : domain.parts) {
    const int64_t size = plan.layers[layer + 1].size, pods = room(plan, layer + 1, part);
    out += layer + 1 < plan.shared ? pods : pods / size * size;
  }
  return out;
}

// The pods with numbers from `begin` on and below `end`, slice by slice of the layer. `partly`: also where one slice
// comes to nothing.
bool PlaceSearch::place_slices(Plan& plan, size_t layer, int32_t begin, int32_t end, const std::vector<Domain>& domains,
                               bool partly) {
  const int32_t size = plan.layers[layer].size;
  bool all = true;
  for (int32_t first = begin; first < end && (all || partly);) {
    const int32_t behind = end - first > size ? first + size : end;
    const int32_t rest = count_in(plan.set->numbers, first, end);
    all = place_slice(plan, layer, {first, behind}, rest, domains, partly && layer < plan.shared) && all;
    first = behind;
  }
  return all;
}

// One slice, in the domain where some of it are, or in the first domain with room for it that it is found a place in:
// those with room for the `rest`, too, the smallest first; then the largest.
bool PlaceSearch::place_slice(Plan& plan, size_t layer, std::pair<int32_t, int32_t> range, int64_t rest,
                              const std::vector<Domain>& domains, bool partly) {
  const int32_t begin = range.first, end = range.second;
  const int32_t wanted = count_in(plan.set->numbers, begin, end);
  if (wanted == 0) return true;
  const size_t mark = txn_.mark();
  const auto place_in = [&](const Domain& domain) {
    const bool placed = layer + 1 == plan.layers.size()
                            ? place_pods(plan, begin, end, domain)
                            : place_slices(plan, layer + 1, begin, end, domain.parts, partly);
    if (!placed && !partly) undo_to(plan, mark);
    return placed;
  };
  const std::string& key = plan.layers[layer].key;
  const PodSlot pod = (*plan.pods)[static_cast<size_t>(count_in(plan.set->numbers, 0, begin))];
  const auto mate = std::ranges::lower_bound(plan.set->there, begin, {}, &std::pair<int32_t, NodeSlot>::first);
  if (mate != plan.set->there.end() && mate->first < end) {
    const std::string* value = context_.state.node(mate->second).node.labels.find(key);
    for (const Domain& domain : domains)
      if (value != nullptr && domain.value == *value && place_in(domain)) return true;
    note_ = fmt::format("{}={} has no room for {} of the slice whose others are there", key,
                        value == nullptr ? "" : *value, wanted);
    if (layer == 0) fail(plan.set->index, pod, note_);
    return false;
  }
  const int64_t unit = layer + 1 < plan.layers.size() && layer + 1 >= plan.shared ? plan.layers[layer + 1].size : 1;
  std::vector<std::pair<int64_t, const Domain*>> order;
  int64_t most = 0;
  for (const Domain& domain : domains) {
    if (layer == 0 && plan.chooses && avoided_.contains(domain.value)) continue;
    const int64_t pods = room(plan, layer, domain);
    most = std::max(most, pods);
    if (partly || pods >= wanted / unit * unit) order.emplace_back(pods, &domain);
  }
  std::ranges::stable_sort(order, [&](const auto& a, const auto& b) {
    const bool a_all = a.first >= rest, b_all = b.first >= rest;
    if (a_all != b_all) return a_all;
    return a_all ? a.first < b.first : a.first > b.first;
  });
  for (const auto& [pods, domain] : order) {
    if (place_in(*domain)) {
      if (layer == 0 && plan.chooses) {
        chooser_ = plan.set;
        chosen_ = domain->value;
      }
      return true;
    }
    if (partly) break;
  }
  if (order.empty() && !domains.empty())
    note_ = layer < plan.shared
                ? fmt::format("no {} has room for all {} of them, but for {} at most", key, wanted, most)
                : fmt::format("no {} has room for the next slice of {}, but for {} more at most", key, wanted, most);
  if (layer == 0) fail(plan.set->index, pod, note_);
  return false;
}

// The pods with these numbers on the nodes of a domain of the last layer, each on the best that is left.
bool PlaceSearch::place_pods(Plan& plan, int32_t begin, int32_t end, const Domain& domain) {
  const std::vector<int32_t>& numbers = plan.set->numbers;
  const auto first = static_cast<size_t>(count_in(numbers, 0, begin));
  for (size_t i = first; i < numbers.size() && numbers[i] < end; ++i) {
    const PodSlot pod = (*plan.pods)[i];
    const Candidates& candidates = stand_ins_.look(pod);
    NodeSlot best;
    for (const NodeSlot node : domain.nodes)
      if (candidates.failure(node) == kFits && (!best.valid() || candidates.score(node) > candidates.score(best)))
        best = node;
    if (!best.valid()) {
      note_ =
          fmt::format("of the {} that are to be together {} have a place in {}={}: {}", count_in(numbers, begin, end),
                      i - first, plan.layers.back().key, domain.value, fit_message(candidates.counts(), context_.sets));
      return false;
    }
    txn_.place(pod, best);
    found_.push_back({plan.set->index, best, numbers[i]});
    count(plan, best, stand_ins_.look(pod));
  }
  return true;
}

void PlaceSearch::undo_to(Plan& plan, size_t mark) {
  const size_t undone = txn_.mark() - mark;
  txn_.rollback_to(mark);
  const Candidates& candidates = stand_ins_.look(plan.pods->front());
  for (size_t i = 0; i < undone; ++i) {
    count(plan, found_.back().node, candidates);
    found_.pop_back();
  }
}

}  // namespace berth::engine
