#include "packing/mig_options.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace berth::packing {
namespace {

using model::MigInstance;
using model::MigLayout;
using model::MigProfileIndex;

class Enumeration {
 public:
  Enumeration(const MigLayout& layout, const std::vector<std::string>& wanted, const SliceCounts& most,
              const MigRoom& room)
      : layout_(layout), most_(most), room_(room) {
    for (const std::string& name : wanted) profiles_.push_back(layout.model().find(name));
    now_.serves.assign(wanted.size(), 0);
  }

  // Every way to place wanted instances from slice `from` on, each once, since they come by start.
  void run(MigLayout& with, uint8_t from = 0) {
    if (from == model::kMigMemorySlicesMax) return keep(with);
    run(with, from + 1);
    for (size_t w = 0; w < profiles_.size(); ++w) {
      if (!profiles_[w] || now_.serves[w] >= most_[w]) continue;
      const MigInstance instance{*profiles_[w], from};
      if (!with.fits(instance)) continue;
      with.place(instance);
      now_.instances.push_back(instance);
      ++now_.serves[w];
      run(with, from + 1);
      --now_.serves[w];
      now_.instances.pop_back();
      with.remove(instance);
    }
  }

  std::vector<GeometryOption> take() {
    std::vector<GeometryOption> out;
    for (auto& [serves, best] : best_) out.push_back(std::move(best.option));
    return out;
  }

 private:
  struct Best {
    GeometryOption option;
    size_t there;  // how many of its instances the device has already
  };

  void keep(const MigLayout& with) {
    const size_t there =
        static_cast<size_t>(std::count_if(now_.instances.begin(), now_.instances.end(),
                                          [this](MigInstance instance) { return layout_.contains(instance); }));
    now_.changes = there != now_.instances.size();
    now_.room = room_.of(with);
    const auto found = best_.find(now_.serves);
    if (found == best_.end()) {
      best_.emplace(now_.serves, Best{now_, there});
    } else if (better(now_, there, found->second)) {
      found->second = {now_, there};
    }
  }

  static bool better(const GeometryOption& a, size_t there, const Best& b) {
    return std::tuple(!a.changes, a.room, there) > std::tuple(!b.option.changes, b.option.room, b.there);
  }

  const MigLayout& layout_;
  const SliceCounts& most_;
  const MigRoom& room_;
  std::vector<std::optional<MigProfileIndex>> profiles_;  // of the device's model, by wanted profile
  GeometryOption now_;
  std::map<SliceCounts, Best> best_;
};

}  // namespace

std::vector<GeometryOption> geometry_options(const MigLayout& layout, const MigLayout& used,
                                             const std::vector<std::string>& wanted, const SliceCounts& most,
                                             const MigRoom& room) {
  Enumeration enumeration(layout, wanted, most, room);
  MigLayout with = used;
  enumeration.run(with);
  return enumeration.take();
}

MigLayout apply_option(const MigLayout& layout, const MigLayout& used, const GeometryOption& option) {
  if (!option.changes) return layout;
  MigLayout out = used;
  for (const MigInstance instance : option.instances) out.place(instance);
  for (const MigInstance instance : layout.instances())
    if (out.fits(instance)) out.place(instance);
  return out;
}

}  // namespace berth::packing
