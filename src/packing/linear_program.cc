#include "packing/linear_program.h"

#include <algorithm>
#include <cmath>

namespace berth::packing {
namespace {

constexpr double kEpsilon = 1e-9;
// What a limit is raised by, times 1 + its row: different for each, so that no two run out at once.
constexpr double kHair = 1e-9;

class Simplex {
 public:
  explicit Simplex(const std::vector<double>& limits)
      : rows_(limits.size()), inverse_(rows_ * rows_, 0), values_(rows_, 0), amounts_(limits), prices_(rows_, 0) {
    for (size_t row = 0; row < rows_; ++row) {
      inverse_[row * rows_ + row] = 1;
      amounts_[row] += kHair * static_cast<double>(row + 1);
    }
  }

  const std::vector<double>& prices() const { return prices_; }

  double value() const {
    double sum = 0;
    for (size_t row = 0; row < rows_; ++row) sum += values_[row] * amounts_[row];
    return sum;
  }

  // Brings the column into the basis; false where nothing limits it.
  bool pivot(const LinearColumn& column) {
    std::vector<double> change(rows_, 0);
    for (size_t row = 0; row < rows_; ++row)
      for (const auto& [at, entry] : column.entries) change[row] += inverse_[row * rows_ + at] * entry;
    size_t leaves = rows_;
    for (size_t row = 0; row < rows_; ++row) {
      if (change[row] <= kEpsilon) continue;
      if (leaves == rows_ || amounts_[row] * change[leaves] < amounts_[leaves] * change[row]) leaves = row;
    }
    if (leaves == rows_) return false;
    const double gain = gain_of(column, prices_);
    double* const leaving = &inverse_[leaves * rows_];
    for (size_t at = 0; at < rows_; ++at) leaving[at] /= change[leaves];
    amounts_[leaves] /= change[leaves];
    for (size_t row = 0; row < rows_; ++row) {
      if (row == leaves || std::abs(change[row]) < kEpsilon * kEpsilon) continue;
      double* const other = &inverse_[row * rows_];
      for (size_t at = 0; at < rows_; ++at) other[at] -= change[row] * leaving[at];
      amounts_[row] = std::max(amounts_[row] - change[row] * amounts_[leaves], 0.0);
    }
    for (size_t at = 0; at < rows_; ++at) prices_[at] += gain * leaving[at];
    values_[leaves] = column.value;
    return true;
  }

 private:
  size_t rows_;
  std::vector<double> inverse_;  // of the basis, row by row
  std::vector<double> values_;   // of the basis: 0 for what is left of a limit
  std::vector<double> amounts_;  // how much of each column of the basis is used
  std::vector<double> prices_;
};

}  // namespace

double gain_of(const LinearColumn& column, std::span<const double> prices) {
  double gain = column.value;
  for (const auto& [row, entry] : column.entries) gain -= prices[row] * entry;
  return gain;
}

std::optional<LinearOptimum> maximise(const std::vector<double>& limits, const BestColumn& best_column,
                                      size_t pivots_max) {
  Simplex simplex(limits);
  for (size_t pivots = 0; pivots < pivots_max; ++pivots) {
    const auto lowest = std::min_element(simplex.prices().begin(), simplex.prices().end());
    const bool leave_some = lowest != simplex.prices().end() && *lowest < -kEpsilon;  // better to use less of a limit
    const auto row = static_cast<uint32_t>(lowest - simplex.prices().begin());
    const std::optional<LinearColumn> column =
        leave_some ? LinearColumn{.value = 0, .entries = {{row, 1.0}}} : best_column(simplex.prices());
    if (!column) return LinearOptimum{.value = simplex.value(), .prices = simplex.prices()};
    if (!simplex.pivot(*column)) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace berth::packing
