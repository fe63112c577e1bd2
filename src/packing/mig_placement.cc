#include "packing/mig_placement.h"

#include <bit>

namespace berth::packing {
namespace {

using model::MigLayout;
using model::MigModel;
using model::MigProfileIndex;

// The profile of that name on each model, looked up once for devices of the same model in a row.
class ProfileOf {
 public:
  explicit ProfileOf(std::string_view name) : name_(name) {}
  std::optional<MigProfileIndex> on(const MigModel& model) {
    if (&model != model_) {
      model_ = &model;
      profile_ = model.find(name_);
    }
    return profile_;
  }

 private:
  std::string_view name_;
  const MigModel* model_ = nullptr;
  std::optional<MigProfileIndex> profile_;
};

}  // namespace

std::optional<MigPlace> first_fit(std::span<const MigLayout> devices, std::string_view profile) {
  ProfileOf wanted(profile);
  for (uint32_t d = 0; d < devices.size(); ++d) {
    const auto index = wanted.on(devices[d].model());
    const model::MigSlices starts = index ? devices[d].starts_for(*index) : model::MigSlices{0};
    if (starts != 0) return MigPlace{d, {*index, static_cast<uint8_t>(std::countr_zero(starts))}};
  }
  return std::nullopt;
}

std::optional<MigPlace> most_room(std::span<const MigLayout> devices, std::string_view profile, MigDemand& demand) {
  ProfileOf wanted(profile);
  const MigModel* model = nullptr;
  const MigRoom* room = nullptr;
  std::optional<MigPlace> best;
  int64_t least = 0;
  for (uint32_t d = 0; d < devices.size(); ++d) {
    const auto index = wanted.on(devices[d].model());
    if (!index) continue;
    if (&devices[d].model() != model) {
      model = &devices[d].model();
      room = &demand.room(*model);
    }
    const auto place = room->best_start(devices[d], *index);
    if (!place) continue;
    const int64_t lost = room->cost(devices[d], *place);
    if (best && lost >= least) continue;
    best = MigPlace{d, *place};
    least = lost;
  }
  return best;
}

}  // namespace berth::packing
