#include "packing/share_worth.h"

#include <algorithm>
#include <numeric>

namespace berth::packing {
namespace {

constexpr double kEpsilon = 1e-9;
constexpr size_t kPivotsPerSize = 16;

using Prices = std::vector<double>;
using WorthTable = std::array<double, kMilliPerDevice + 1>;

// For each remnant the dearest shares that it holds; `last` says which share was put in last, -1 for none.
WorthTable worth_at(const std::vector<ShareCount>& shares, const Prices& prices,
                    std::array<int, kMilliPerDevice + 1>& last) {
  WorthTable worth{};
  last.fill(-1);
  for (int32_t room = 1; room <= kMilliPerDevice; ++room) {
    worth[room] = worth[room - 1];
    for (size_t s = 0; s < shares.size() && shares[s].milli <= room; ++s) {
      const double with = worth[room - shares[s].milli] + prices[s];
      if (with <= worth[room] + kEpsilon) continue;
      worth[room] = with;
      last[room] = static_cast<int>(s);
    }
  }
  return worth;
}

// The cutting-stock program, by the simplex method with patterns made when they are needed. Minimise the number of
// devices, such that each size is packed at least as often as it comes.
class CuttingStock {
 public:
  explicit CuttingStock(const std::vector<ShareCount>& shares) : shares_(shares), size_(shares.size()) {
    inverse_.assign(size_ * size_, 0);
    costs_.assign(size_, 1);
    for (size_t s = 0; s < size_; ++s) {
      const int32_t copies = kMilliPerDevice / shares[s].milli;
      inverse_[s * size_ + s] = 1.0 / copies;
      amounts_.push_back(static_cast<double>(shares[s].count) / copies);
    }
  }

  // Prices at which no pattern is dearer than one device.
  Prices solve() {
    Prices prices = duals();
    for (size_t pivots = 0; pivots < kPivotsPerSize * size_ && improve(prices); ++pivots) prices = duals();
    for (double& price : prices) price = std::max(price, 0.0);
    std::array<int, kMilliPerDevice + 1> last{};
    const double dearest = worth_at(shares_, prices, last).back();
    for (double& price : prices) price /= std::max(dearest, 1.0);  // stopped before the end: still prices, not the best
    return prices;
  }

 private:
  Prices duals() const {
    Prices prices(size_, 0);
    for (size_t row = 0; row < size_; ++row)
      for (size_t s = 0; s < size_; ++s) prices[s] += costs_[row] * inverse_[row * size_ + s];
    return prices;
  }

  // Brings the best column into the basis; false when there is none: the prices are the best.
  bool improve(const Prices& prices) {
    std::vector<double> column(size_, 0);
    const size_t cheapest = std::min_element(prices.begin(), prices.end()) - prices.begin();
    if (prices[cheapest] < -kEpsilon) {  // better to pack more of the size than come
      column[cheapest] = -1;
      return pivot(column, 0);
    }
    std::array<int, kMilliPerDevice + 1> last{};
    if (worth_at(shares_, prices, last).back() <= 1 + kEpsilon) return false;
    for (int32_t room = kMilliPerDevice; room > 0;) {
      if (last[room] < 0) {
        --room;
        continue;
      }
      column[last[room]] += 1;
      room -= shares_[last[room]].milli;
    }
    return pivot(column, 1);
  }

  bool pivot(const std::vector<double>& column, double cost) {
    std::vector<double> change(size_, 0);
    for (size_t row = 0; row < size_; ++row)
      for (size_t s = 0; s < size_; ++s) change[row] += inverse_[row * size_ + s] * column[s];
    size_t leaves = size_;
    for (size_t row = 0; row < size_; ++row) {
      if (change[row] <= kEpsilon) continue;
      if (leaves == size_ || amounts_[row] / change[row] < amounts_[leaves] / change[leaves]) leaves = row;
    }
    if (leaves == size_) return false;
    for (size_t s = 0; s < size_; ++s) inverse_[leaves * size_ + s] /= change[leaves];
    amounts_[leaves] /= change[leaves];
    for (size_t row = 0; row < size_; ++row) {
      if (row == leaves) continue;
      for (size_t s = 0; s < size_; ++s) inverse_[row * size_ + s] -= change[row] * inverse_[leaves * size_ + s];
      amounts_[row] -= change[row] * amounts_[leaves];
    }
    costs_[leaves] = cost;
    return true;
  }

  const std::vector<ShareCount>& shares_;
  size_t size_;
  std::vector<double> inverse_;  // of the basis, row by row
  std::vector<double> costs_;    // of the basis: 1 for a pattern, 0 for packing more than comes
  std::vector<double> amounts_;  // how much of each column of the basis is used
};

}  // namespace

ShareWorth::ShareWorth(std::vector<ShareCount> shares) {
  std::sort(shares.begin(), shares.end(), [](const ShareCount& a, const ShareCount& b) {
    return a.count != b.count ? a.count > b.count : a.milli > b.milli;
  });
  if (shares.size() > kShareSizesMax) shares.resize(kShareSizesMax);
  std::sort(shares.begin(), shares.end(), [](const ShareCount& a, const ShareCount& b) { return a.milli < b.milli; });
  std::array<int, kMilliPerDevice + 1> last{};
  worth_ = worth_at(shares, CuttingStock(shares).solve(), last);
  worth_.back() = 1;
}

double ShareWorth::of(const Devices& devices) const {
  return std::accumulate(devices.free_milli.begin(), devices.free_milli.end(), 0.0,
                         [this](double sum, int32_t free) { return sum + of(free); });
}

}  // namespace berth::packing
