// A linear program with many columns, of which few are ever looked at.
//
//   maximise value · x, such that entries · x <= limits, x >= 0, and all limits >= 0
//
// Solved by the revised simplex method; columns are made when the prices ask for them (Gilmore and Gomory, "A Linear
// Programming Approach to the Cutting-Stock Problem", 1961). Limits of 0 are read as a hair above, so that no pivot
// stands still: what is found is never below the truth for that. A pure function; deterministic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace berth::packing {

struct LinearColumn {
  double value = 0;
  std::vector<std::pair<uint32_t, double>> entries;  // row, what one unit of the column takes there
};

// What a column gains at these prices, by row.
double gain_of(const LinearColumn& column, std::span<const double> prices);

// A column whose gain_of() is above 0, best the highest; none when there is no such column.
using BestColumn = std::function<std::optional<LinearColumn>(std::span<const double> prices)>;

struct LinearOptimum {
  double value = 0;
  std::vector<double> prices;  // by row: what one more unit of the limit is worth
};

// The optimum; none where it takes more than `pivots_max` columns, or has no limit. A pivot costs the square of the
// number of rows.
std::optional<LinearOptimum> maximise(const std::vector<double>& limits, const BestColumn& best_column,
                                      size_t pivots_max);

}  // namespace berth::packing
