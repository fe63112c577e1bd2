#include "engine/stand_ins.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/same_value.h"

namespace berth::engine {

bool operator==(const PodLooks& a, const PodLooks& b) {
  return same_value(a.labels, b.labels) && same_value(a.spec, b.spec);
}

// In its own name nobody sees it.
model::Pod StandIns::make(const model::Workload& workload, size_t set, const PodLooks& looks, int32_t number) {
  const model::PodSet& pods = workload.pod_sets[set];
  model::Pod out;
  out.uid = number < 0 ? fmt::format("looks:{}", names_made_++)
                       : fmt::format("stand-in:{}:{}:{}", workload.uid, pods.name, number);
  out.namespace_name = workload.namespace_name;
  out.name = fmt::format("{}-{}", workload.name, pods.name);
  out.labels = looks.labels;
  out.priority = workload.priority;
  out.created = workload.created;
  out.spec = looks.spec;
  out.workload = workload.full_name();
  out.pod_set = pods.name;
  out.stand_in = true;
  return out;
}

PodSlot StandIns::enter(model::Pod&& pod) {
  State& state = context_.state;
  const PodSlot slot = state.add_pod(std::move(pod));
  const PodState& made = state.pod(slot);
  if (state.pod_class(made.cls).seen_by != state.peers().identity(made.identity).matches) state.reclassify(slot);
  return slot;
}

void StandIns::keep_class(PodSlot pod) {
  State& state = context_.state;
  const ClassId id = state.pod(pod).cls;
  if (std::any_of(kept_.begin(), kept_.end(), [&](PodSlot kept) { return state.pod(kept).cls == id; })) return;
  model::Pod keeps = state.pod(pod).pod;
  keeps.uid = fmt::format("looks:{}", names_made_++);
  keeps.keeps_class = true;
  const PodSlot slot = enter(std::move(keeps));
  context_.queue.of(id).last_used = UINT64_MAX;  // not one of those that are dropped for being idle
  if (kept_.size() < kKeptMax) {
    kept_.push_back(slot);
    return;
  }
  const PodSlot old = std::exchange(kept_[next_kept_], slot);
  if (ClassQueue& cls = context_.queue.of(state.pod(old).cls); cls.last_used == UINT64_MAX) cls.last_used = 0;
  state.remove_pod(old);
  next_kept_ = (next_kept_ + 1) % kKeptMax;
}

const Candidates& StandIns::look(PodSlot pod) {
  const ClassId id = context_.state.pod(pod).cls;
  Candidates& candidates = context_.queue.of(id).candidates;
  WorkBudget unlimited{INT64_MAX};
  candidates.refresh(context_.state, context_.policies, context_.state.pod_class(id), context_.sets, unlimited);
  used_ += INT64_MAX - unlimited.left;
  return candidates;
}

}  // namespace berth::engine
