#include "engine/set_search.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/rng.h"
#include "engine/txn.h"
#include "model/mig.h"

namespace berth::engine {
namespace {

constexpr uint64_t kSeed = 1;
// Compute slices of the devices that can be cut (A100, H100, H200, B200); on an A30, which has 4, instances count less.
constexpr int64_t kMigSlices = 7;

// Of one of the resource, on a node that advertises each GPU once: "nvidia.com/mig-3g.20gb" is 3/7 of one.
int64_t micros_of(ResourceId id, const ResourceTable& resources) {
  const std::string& name = resources.name(id);
  if (!model::is_mig_resource(name)) return model::kWholeGpu;
  const size_t digit = name.find("mig-") + 4;
  const bool sliced = digit < name.size() && name[digit] >= '1' && name[digit] <= '7';
  return model::kWholeGpu * (sliced ? name[digit] - '0' : 1) / kMigSlices;
}

// What a pod of the class has of the node's GPUs.
int64_t gpu_micros_on(const NodeView& node, const PodClass& cls) {
  if (!cls.requests_gpu) return 0;
  const model::NodeGpus& gpus = node.node().gpus;
  Int128 micros = 0;
  for (const ResourceAmount& request : cls.requests) {
    if (!node.resources().is_gpu(request.id)) continue;
    const bool replicas = request.id == node.share_resource() && gpus.replicas > 1;
    micros += Int128{request.amount} * micros_of(request.id, node.resources()) / (replicas ? gpus.replicas : 1);
  }
  const model::GpuShare& share = cls.spec->gpu_share;
  micros += share.micros;
  if (gpus.memory_bytes > 0) micros += Int128{share.memory_bytes} * model::kWholeGpu / gpus.memory_bytes;
  return NodeView::narrow(micros);
}

// The square of the devices that are free, for each GPU resource of the node.
Int128 squares(const NodeView& node) {
  Int128 sum = 0;
  for (uint32_t id = 0; id < node.resources().size(); ++id) {
    if (!node.resources().is_gpu(ResourceId{id})) continue;
    const Int128 free = std::max<int64_t>(node.free(ResourceId{id}), 0);
    sum += free * free;
  }
  return sum;
}

bool share_one(const std::vector<SelectorId>& a, const std::vector<SelectorId>& b) {
  return std::any_of(a.begin(), a.end(), [&](SelectorId id) { return std::binary_search(b.begin(), b.end(), id); });
}

}  // namespace

SetSearch::SetSearch(const PlacementContext& context, int32_t priority, Time due) : context_(context) {
  const State& state = context_.state;
  const QueueOrder before{&state};
  const auto& queues = context_.queue.classes();
  for (uint32_t i = 0; i < queues.size(); ++i) {
    if (queues[i] == nullptr || queues[i]->pods.empty()) continue;
    const PodClass& cls = state.pod_class(ClassId{i});
    if (cls.priority == priority && (!queues[i]->blocked || !cls.peers.hopes.empty())) ids_.push_back(ClassId{i});
  }
  const auto first = [&](ClassId id) { return *queues[id.value]->pods.begin(); };
  std::sort(ids_.begin(), ids_.end(), [&](ClassId a, ClassId b) { return before(first(a), first(b)); });
  if (ids_.size() < 2) return;
  std::vector<Int128> free(state.resources().size(), 0);
  for (const auto& [name, slot] : state.nodes_by_name()) {
    const NodeView node = state.view(slot);
    for (uint32_t id = 0; id < free.size(); ++id) free[id] += std::max<int64_t>(node.free(ResourceId{id}), 0);
  }
  std::vector<std::pair<PodSlot, uint32_t>> turns;
  for (const ClassId id : ids_) {
    for (const PodSlot pod : list(id, free)) turns.emplace_back(pod, static_cast<uint32_t>(classes_.size() - 1));
  }
  std::sort(turns.begin(), turns.end(), [&](auto& a, auto& b) { return before(a.first, b.first); });
  for (const auto& [pod, cls] : turns) {
    queue_order_.push_back(cls);
    due_ += state.pod(pod).pod.created <= due ? 1 : 0;
  }
}

// Lists the class with as many of its pods as the free resources of all nodes could hold.
const std::vector<PodSlot>& SetSearch::list(ClassId id, const std::vector<Int128>& free) {
  const PodClass& cls = context_.state.pod_class(id);
  const auto& pods = context_.queue.of(id).pods;
  Int128 most = static_cast<Int128>(pods.size());
  Class out;
  for (const ResourceAmount& request : cls.requests) {
    most = std::min(most, free[request.id.value] / request.amount);
    if (!context_.state.resources().is_gpu(request.id)) continue;
    out.gpu_micros += request.amount * micros_of(request.id, context_.state.resources());
  }
  out.gpu_micros += cls.spec->gpu_share.micros;
  out.cpu_millis = cls.request(kCpu);
  out.pods.assign(pods.begin(), std::next(pods.begin(), static_cast<ptrdiff_t>(most)));
  classes_.push_back(std::move(out));
  return classes_.back().pods;
}

// Were an order better that gives the same GPUs to more pods, small ones would go first cycle after cycle, and none
// would be left to fill what large ones leave: under load that costs a point of utilization, and large pods wait for
// hours.
std::optional<std::vector<SetSearch::Place>> SetSearch::run(int32_t orders_max, WorkBudget& work) {
  for (size_t i = 0; i < classes_.size(); ++i) {
    Candidates& candidates = context_.queue.of(ids_[i]).candidates;
    if (!candidates.refresh(context_.state, context_.policies, context_.state.pod_class(ids_[i]), context_.sets, work))
      return std::nullopt;
    const FailureCounts counts = candidates.counts();
    if (candidates.objection().empty() && !counts.by_set.empty()) classes_[i].fits = counts.by_set[kFits.value];
  }
  if (!try_order(queue_order_, work)) return std::nullopt;
  of_queue_ = best_.worth;
  if (!best_.left.empty() && try_order(by_size(), work) && try_order(by_nodes(), work)) improve(orders_max, work);
  return best_.places;
}

// Large requests first; of equals, those that ask for much CPU.
SetSearch::Order SetSearch::by_size() const {
  Order order = queue_order_;
  std::stable_sort(order.begin() + static_cast<ptrdiff_t>(due_), order.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(classes_[a].gpu_micros, classes_[a].cpu_millis) >
           std::pair(classes_[b].gpu_micros, classes_[b].cpu_millis);
  });
  return order;
}

// What fits on the fewest nodes first, then by size.
SetSearch::Order SetSearch::by_nodes() const {
  Order order = by_size();
  std::stable_sort(order.begin() + static_cast<ptrdiff_t>(due_), order.end(),
                   [&](uint32_t a, uint32_t b) { return classes_[a].fits < classes_[b].fits; });
  return order;
}

// Small steps from the best order, until nobody is left out or `orders_max` orders have been tried.
void SetSearch::improve(int32_t orders_max, WorkBudget& work) {
  if (queue_order_.size() < due_ + 2) return;  // those that are due keep their turns
  Rng rng(kSeed);
  size_t fronts = 0;  // of the classes left out, how many have been at the front since the last improvement
  for (int32_t steps = 0; steps < 2 * orders_max && orders_ < orders_max && !best_.left.empty(); ++steps) {
    const std::vector<uint32_t> left = left_out();
    Order order = best_order_;
    if (fronts < left.size()) {
      const auto turn = order.begin() + left[fronts++];
      std::rotate(order.begin() + static_cast<ptrdiff_t>(due_), turn, turn + 1);
    } else {
      const uint64_t turns = order.size() - due_;
      std::swap(order[due_ + rng.below(turns)], order[due_ + rng.below(turns)]);
    }
    const Worth before = best_.worth;
    if (!try_order(std::move(order), work)) return;
    if (best_.worth != before) fronts = 0;
  }
}

// Of each class that the best order leaves out, its first such turn that is not due; those with most GPUs first.
std::vector<uint32_t> SetSearch::left_out() const {
  std::vector<uint32_t> turns;
  std::vector<bool> seen(classes_.size(), false);
  for (const uint32_t turn : best_.left)
    if (turn >= due_ && !seen[best_order_[turn]]) seen[best_order_[turn]] = true, turns.push_back(turn);
  std::stable_sort(turns.begin(), turns.end(), [&](uint32_t a, uint32_t b) {
    return classes_[best_order_[a]].gpu_micros > classes_[best_order_[b]].gpu_micros;
  });
  return turns;
}

// Keeps the order if it is better than the best so far. False: out of work.
bool SetSearch::try_order(Order order, WorkBudget& work) {
  if (!tried_.insert(order).second) return true;
  std::optional<Outcome> outcome = play(order, work);
  if (!outcome) return false;
  if (++orders_ > 1 && outcome->worth <= best_.worth) return true;
  best_ = *std::move(outcome);
  best_order_ = std::move(order);
  return true;
}

std::optional<SetSearch::Outcome> SetSearch::play(const Order& order, WorkBudget& work) {
  Outcome out;
  Txn txn(context_.state);
  std::vector<bool> taken(order.size(), false), blocked(classes_.size(), false);
  std::vector<size_t> placed(classes_.size(), 0);
  for (size_t at = 0; at < order.size(); ++at) {
    const uint32_t cls = order[at];
    if (taken[at] || blocked[cls]) continue;
    const PodClass& pod_class = context_.state.pod_class(ids_[cls]);
    Candidates& candidates = context_.queue.of(ids_[cls]).candidates;
    if (!candidates.refresh(context_.state, context_.policies, pod_class, context_.sets, work) || !work.spend())
      return std::nullopt;
    const NodeSlot node = candidates.best();
    blocked[cls] = !node.valid();
    if (blocked[cls]) continue;
    taken[at] = true;
    place({classes_[cls].pods[placed[cls]++], node}, txn, out);
    bool woken = false;
    for (size_t other = 0; other < classes_.size(); ++other)
      if (blocked[other] && share_one(context_.state.pod_class(ids_[other]).peers.hopes, pod_class.seen_by))
        blocked[other] = false, woken = true;
    if (woken) at = SIZE_MAX;  // from the front: the first turn that was passed over is the next
  }
  for (uint32_t turn = 0; turn < order.size(); ++turn)
    if (!taken[turn]) out.left.push_back(turn);
  return out;
}

void SetSearch::place(const Place& place, Txn& txn, Outcome& out) const {
  const NodeView node = context_.state.view(place.node);
  const Int128 before = squares(node);
  txn.place(place.pod, place.node);
  out.worth.together += squares(node) - before;
  const PodClass& cls = context_.state.pod_class(context_.state.pod(place.pod).cls);
  out.worth.gpu_micros += gpu_micros_on(node, cls);
  out.worth.pods += cls.requests_gpu ? 0 : 1;
  out.places.push_back(place);
}

}  // namespace berth::engine
