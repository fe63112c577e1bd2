#include "packing/mig_geometry.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "packing/mig_options.h"

namespace berth::packing {
namespace {

using model::MigInstance;
using model::MigLayout;

// What waits, as far as devices could give it.
struct Wish {
  std::vector<std::string> names;
  SliceCounts counts;
  std::vector<int64_t> slices;  // that one counts with: what it takes on the model that gives it with the fewest
};

int64_t slices_of(const SliceCounts& counts, const Wish& wish) {
  int64_t sum = 0;
  for (size_t w = 0; w < counts.size(); ++w) sum += counts[w] * wish.slices[w];
  return sum;
}

// One way to have served part of what waits with the devices so far.
struct State {
  SliceCounts rest;
  int64_t served = 0;
  int64_t hope = 0;  // no way to go on serves more, all told
  int changed = 0;
  int64_t room = 0;
  uint32_t before = 0;  // the state of the device before that it comes from
  uint32_t option = 0;  // of this device

  // Whether it is the better way to the same rest.
  bool beats(const State& other) const {
    return std::tuple(served, -changed, room) > std::tuple(other.served, -other.changed, other.room);
  }
};

using Options = std::vector<GeometryOption>;

struct Choice {
  size_t device;
  const Options* options;
  int64_t free_slices;  // beside what is used
};

class Search {
 public:
  Search(std::vector<Choice> choices, const Wish& wish, int64_t work_max) : choices_(std::move(choices)), wish_(wish) {
    int64_t steps = 1;
    for (const Choice& choice : choices_) {
      steps += static_cast<int64_t>(choice.options->size());
      free_slices_ += choice.free_slices;
    }
    kept_max_ = static_cast<size_t>(std::max<int64_t>(8, work_max / steps));
    layers_.push_back({State{.rest = wish.counts}});
  }

  // By choice, the option to take.
  std::vector<const GeometryOption*> run() {
    for (const Choice& choice : choices_) step(choice);
    const auto& last = layers_.back();
    size_t at = 0;
    for (size_t s = 1; s < last.size(); ++s)
      if (last[s].beats(last[at])) at = s;
    std::vector<const GeometryOption*> taken(choices_.size());
    for (size_t c = choices_.size(); c > 0; --c) {
      const State& state = layers_[c][at];
      taken[c - 1] = &(*choices_[c - 1].options)[state.option];
      at = state.before;
    }
    return taken;
  }

 private:
  void step(const Choice& choice) {
    free_slices_ -= choice.free_slices;
    std::vector<State> next;
    absl::flat_hash_map<SliceCounts, size_t> by_rest;
    const auto& layer = layers_.back();
    for (uint32_t s = 0; s < layer.size(); ++s) {
      for (uint32_t o = 0; o < choice.options->size(); ++o) {
        State state = layer[s];
        if (!take(state, (*choice.options)[o])) continue;
        state.before = s;
        state.option = o;
        state.hope = state.served + std::min(slices_of(state.rest, wish_), free_slices_);
        const auto [found, is_new] = by_rest.try_emplace(state.rest, next.size());
        if (is_new) {
          next.push_back(std::move(state));
        } else if (state.beats(next[found->second])) {
          next[found->second] = std::move(state);
        }
      }
    }
    keep_best(next);
    layers_.push_back(std::move(next));
  }

  // False where less is left than the option serves.
  bool take(State& state, const GeometryOption& option) const {
    for (size_t w = 0; w < state.rest.size(); ++w) {
      if (state.rest[w] < option.serves[w]) return false;
      state.rest[w] -= option.serves[w];
    }
    state.served += slices_of(option.serves, wish_);
    state.changed += option.changes ? 1 : 0;
    state.room += option.room;
    return true;
  }

  void keep_best(std::vector<State>& states) const {
    if (states.size() <= kept_max_) return;
    std::stable_sort(states.begin(), states.end(), [](const State& a, const State& b) {
      return std::tuple(a.hope, a.served, -a.changed, a.room) > std::tuple(b.hope, b.served, -b.changed, b.room);
    });
    states.resize(kept_max_);
  }

  std::vector<Choice> choices_;
  const Wish& wish_;
  int64_t free_slices_ = 0;  // on devices that are still to come
  size_t kept_max_ = 0;
  std::vector<std::vector<State>> layers_;
};

class Planner {
 public:
  Planner(std::span<const MigDevice> devices, const MigWaiting& waiting, MigDemand& demand, int64_t work_max)
      : devices_(devices), demand_(demand), work_max_(work_max) {
    for (const MigDevice& device : devices)
      for (const MigInstance instance : device.used.instances())
        check(device.layout.contains(instance), "a MIG instance is in use that its device has not");
    for (const auto& [name, count] : waiting) add_wish(name, count);
  }

  GeometryPlan run() {
    std::vector<MigLayout> layouts;
    for (const MigDevice& device : devices_) layouts.push_back(device.layout);
    // A beam may find more from where it ended, so it begins again until it finds no more. Each time serves more, so
    // this ends; and it ends where planning anew would end at once.
    for (;;) {
      std::vector<MigLayout> next = improved(layouts);
      take_back_idle_changes(next, layouts);
      if (value(supply(next)) <= value(supply(layouts))) return told(std::move(layouts));
      layouts = std::move(next);
    }
  }

 private:
  // What options depend on: the model's name, what is used, what is there.
  using Look = std::tuple<std::string, std::vector<MigInstance>, std::vector<MigInstance>>;

  void add_wish(const std::string& name, int count) {
    int64_t possible = 0;
    int64_t slices = model::kMigMemorySlicesMax;
    for (const MigDevice& device : devices_) {
      const auto profile = device.layout.model().find(name);
      if (!profile) continue;
      possible += device.used.room_for(*profile);
      slices = std::min<int64_t>(slices, device.layout.model().profiles[*profile].memory_slices);
    }
    if (count <= 0 || possible == 0) return;
    wish_.names.push_back(name);
    wish_.counts.push_back(static_cast<int32_t>(std::min<int64_t>(count, possible)));
    wish_.slices.push_back(slices);
  }

  std::vector<MigLayout> improved(const std::vector<MigLayout>& layouts) {
    std::map<Look, Options> by_look;
    std::vector<Choice> choices;
    for (size_t d = 0; d < devices_.size(); ++d) {
      const MigLayout& used = devices_[d].used;
      Options& options = by_look[{used.model().name, used.instances(), layouts[d].instances()}];
      if (options.empty())
        options = geometry_options(layouts[d], used, wish_.names, wish_.counts, demand_.room(used.model()));
      if (options.size() > 1)
        choices.push_back({d, &options, used.model().memory_slices - used.allocated_memory_slices()});
    }
    // The tightest first: they have the fewest ways. Of equals the last first, for of equal ways to one rest the search
    // keeps that which leaves most to the devices still to come, and that should be the lowest.
    std::sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
      return a.free_slices != b.free_slices ? a.free_slices < b.free_slices : a.device > b.device;
    });
    const std::vector<const GeometryOption*> taken = Search(choices, wish_, work_max_).run();
    std::vector<MigLayout> out = layouts;
    for (size_t c = 0; c < choices.size(); ++c) {
      const size_t d = choices[c].device;
      out[d] = apply_option(layouts[d], devices_[d].used, *taken[c]);
    }
    return out;
  }

  // Where a change serves nothing, the device stays as it was. Only a beam makes such changes.
  void take_back_idle_changes(std::vector<MigLayout>& layouts, const std::vector<MigLayout>& before) const {
    SliceCounts with = supply(layouts);
    for (size_t d = 0; d < layouts.size(); ++d) {
      if (layouts[d] == before[d]) continue;
      SliceCounts without = with;
      add_supply(without, d, layouts[d], -1);
      add_supply(without, d, before[d], 1);
      if (value(without) < value(with)) continue;
      layouts[d] = before[d];
      with = std::move(without);
    }
  }

  // Adds, `times` over, the instances of the layout that the device does not use.
  void add_supply(SliceCounts& supply, size_t device, const MigLayout& layout, int32_t times) const {
    for (size_t w = 0; w < wish_.names.size(); ++w)
      if (const auto profile = layout.model().find(wish_.names[w]))
        supply[w] += times * (layout.count(*profile) - devices_[device].used.count(*profile));
  }

  SliceCounts supply(const std::vector<MigLayout>& layouts) const {
    SliceCounts out(wish_.names.size(), 0);
    for (size_t d = 0; d < layouts.size(); ++d) add_supply(out, d, layouts[d], 1);
    return out;
  }

  int64_t value(const SliceCounts& supply) const {
    int64_t sum = 0;
    for (size_t w = 0; w < supply.size(); ++w) sum += std::min(supply[w], wish_.counts[w]) * wish_.slices[w];
    return sum;
  }

  GeometryPlan told(std::vector<MigLayout> layouts) const {
    GeometryPlan plan;
    const SliceCounts there = supply(layouts);
    plan.served_memory_slices = value(there);
    for (size_t w = 0; w < there.size(); ++w)
      if (there[w] > 0) plan.served[wish_.names[w]] = std::min(there[w], wish_.counts[w]);
    for (uint32_t d = 0; d < layouts.size(); ++d)
      if (!(layouts[d] == devices_[d].layout)) plan.changed.push_back(d);
    plan.layouts = std::move(layouts);
    return plan;
  }

  std::span<const MigDevice> devices_;
  MigDemand& demand_;
  int64_t work_max_;
  Wish wish_;
};

}  // namespace

GeometryPlan plan_geometry(std::span<const MigDevice> devices, const MigWaiting& waiting, MigDemand& demand,
                           int64_t work_max) {
  return Planner(devices, waiting, demand, work_max).run();
}

}  // namespace berth::packing
