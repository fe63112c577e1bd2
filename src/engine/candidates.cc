#include "engine/candidates.h"

#include <algorithm>
#include <utility>

#include "engine/evaluate.h"

namespace berth::engine {
namespace {

// What counts as the work of examining one node.
constexpr size_t kTermsPerUnit = 16;
constexpr size_t kGroupsPerUnit = 8;

}  // namespace

bool Candidates::refresh(const State& state, const PolicySet& policies, const PodClass& cls, FailureSets& sets,
                         WorkBudget& work) {
  if (generation_ != cls.generation) start_over(state, policies, cls);
  if (!objection_.empty()) {
    version_ += nodes_ != state.node_count() ? 1 : 0;
    nodes_ = state.node_count();
    return true;
  }
  if (std::exchange(mix_version_, state.mix().version()) != state.mix().version()) examine_all_again();
  if (leaves_.size() < state.node_slots()) grow(state);
  if (!cls.seen_by.empty() || !cls.spec->peers.empty()) follow_terms(state, policies, cls);
  const int64_t cost = groups_ ? 1 + static_cast<int64_t>(groups_->shape().serials.size() / kTermsPerUnit) : 1;
  if (cursor_ < state.change_base()) {
    scanning_ = true;
    scan_ = 0;
  }
  if (scanning_) {
    if (scan_ == 0) cursor_ = state.change_end();
    for (; scan_ < state.node_slots(); ++scan_) {
      if (leaves_[scan_].generation == state.node(NodeSlot{scan_}).generation) continue;
      if (!work.spend(cost)) return false;
      batch_ = true;
      examine(NodeSlot{scan_}, state, policies, cls, sets);
    }
    scanning_ = false;
    scan_ = 0;
  }
  const auto better_leaf = [&](uint32_t a, uint32_t b) { return better(a, b, state); };
  const bool many = state.change_end() - cursor_ > leaves_.size() / 4;
  for (; cursor_ < state.change_end(); ++cursor_) {
    const NodeSlot slot = state.change(cursor_);
    if (leaves_[slot.value].generation == state.node(slot).generation) continue;
    if (!work.spend(cost)) return false;
    batch_ |= many;
    examine(slot, state, policies, cls, sets);
    if (!batch_ && !groups_) tournament_.update(slot.value, better_leaf);
  }
  if (groups_) work.spend(static_cast<int64_t>(groups_->settle(state, policies, cls, sets) / kGroupsPerUnit));
  else if (std::exchange(batch_, false)) tournament_.rebuild(better_leaf);
  return true;
}

// Groups hold for the terms, and for the ids, that they were made with.
void Candidates::follow_terms(const State& state, const PolicySet& policies, const PodClass& cls) {
  const bool ids_hold = reuse_version_ == state.topology().reuse_version() && order_version_ == state.order_version();
  const bool keys_hold = presence_version_ == state.topology().presence_version();
  if (terms_version_ == state.peers().terms_version() && ids_hold && keys_hold) return;
  presence_version_ = state.topology().presence_version();
  terms_version_ = state.peers().terms_version();
  reuse_version_ = state.topology().reuse_version();
  order_version_ = state.order_version();
  GroupShape shape = shape_of(state, cls);
  if (groups_ ? ids_hold && groups_->shape() == shape : shape.concerns_nobody()) return;
  version_ = version() + 1;
  groups_ = shape.concerns_nobody()
                ? nullptr
                : std::make_unique<Groups>(std::move(shape), state, cls, !policies.pool_group_weights.empty());
  examine_all_again();
}

// What the class as a whole depends on has changed: no conclusion about any node holds.
void Candidates::start_over(const State& state, const PolicySet& policies, const PodClass& cls) {
  generation_ = cls.generation;
  objection_ = run_pre_filters(policies, cls, state);
  ++version_;
  examine_all_again();
}

void Candidates::examine_all_again() {
  ++epoch_;
  for (Leaf& leaf : leaves_) leaf.generation = 0;
  scanning_ = true;
  scan_ = 0;
}

void Candidates::examine(NodeSlot slot, const State& state, const PolicySet& policies, const PodClass& cls,
                         FailureSets& sets) {
  Leaf& leaf = leaves_[slot.value];
  const FailureSetId before = leaf.failure;
  leaf.generation = state.node(slot).generation;
  leaf.score = kUnfit;
  leaf.failure = FailureSetId{};
  if (state.node(slot).present) {
    const NodeView view = state.view(slot);
    scratch_.clear();
    if (run_filters(policies, cls, view, scratch_)) leaf.score = run_scores(policies, cls, view);
    leaf.failure = sets.intern(scratch_, state.resources());
  }
  if (groups_) groups_->update(slot, state, cls, leaf.failure == kFits, leaf.score);
  if (before == leaf.failure) return;
  if (before.valid()) counts_.add(before, -1);
  if (leaf.failure.valid()) counts_.add(leaf.failure, +1);
  ++version_;
}

void Candidates::grow(const State& state) {
  tournament_.resize(state.node_slots());
  leaves_.resize(tournament_.size());
  batch_ = true;
}

uint32_t Candidates::better(uint32_t a, uint32_t b, const State& state) const {
  if (leaves_[a].score != leaves_[b].score) return leaves_[a].score > leaves_[b].score ? a : b;
  if (leaves_[a].score == kUnfit) return a;
  return state.node(NodeSlot{a}).order < state.node(NodeSlot{b}).order ? a : b;
}

FailureCounts Candidates::counts() const {
  FailureCounts out = counts_;
  if (groups_) groups_->correct(out);
  return out;
}

FailureSetId Candidates::failure(NodeSlot slot) const {
  const FailureSetId own = leaves_[slot.value].failure;
  return groups_ && own == kFits ? groups_->failure(slot) : own;
}

NodeSlot Candidates::best() const {
  if (!objection_.empty()) return NodeSlot{};
  if (groups_) return groups_->best();
  if (leaves_.empty() || leaves_[tournament_.winner()].score == kUnfit) return NodeSlot{};
  return NodeSlot{tournament_.winner()};
}

size_t Candidates::memory_bytes() const {
  return leaves_.capacity() * sizeof(Leaf) + tournament_.memory_bytes() + counts_.by_set.capacity() * sizeof(uint32_t) +
         (groups_ ? groups_->memory_bytes() : 0);
}

}  // namespace berth::engine
