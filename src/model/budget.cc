#include "model/budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/quantity.h"

namespace berth::model {

std::optional<int64_t> parse_micros(const std::string& text, int64_t max) {
  constexpr size_t kDecimalsMax = 6;
  const size_t point = text.find('.');
  if (text.empty() || text.find_first_not_of("0123456789.") != std::string::npos) return std::nullopt;
  if (point != std::string::npos && text.size() - point - 1 > kDecimalsMax) return std::nullopt;
  const Result<int64_t> micros = parse_quantity(text, kDecimalsMax);
  return micros && *micros <= max ? std::optional(*micros) : std::nullopt;
}

std::string format_micros(int64_t micros) {
  constexpr int64_t kMillion = 1'000'000;
  std::string out = fmt::format("{}.{:06}", micros / kMillion, micros % kMillion);
  out.erase(out.find_last_not_of('0') + 1);
  if (out.back() == '.') out.pop_back();
  return out;
}

int64_t gpu_price(const GpuPrices& prices, const Labels& labels) {
  int64_t dearest = 0;
  for (const auto& [model, price] : prices) dearest = std::max(dearest, price);
  const std::string* product = labels.find(kGpuProductLabel);
  if (product == nullptr) return dearest;
  auto found = prices.find(*product);
  for (const std::string_view suffix : {"-SHARED", "-MIG-"})
    if (found == prices.end()) found = prices.find(product->substr(0, product->find(suffix)));
  return found == prices.end() ? dearest : found->second;
}

int64_t gpu_sevenths(std::string_view resource) {
  constexpr std::string_view kMig = "nvidia.com/mig-";
  constexpr int64_t kWhole = 7;
  if (!is_gpu_resource(resource)) return 0;
  if (!resource.starts_with(kMig) || resource.size() < kMig.size() + 2) return kWhole;
  const char slices = resource[kMig.size()];
  const bool told = slices >= '1' && slices <= '7' && resource[kMig.size() + 1] == 'g';
  return told ? slices - '0' : kWhole;
}

}  // namespace berth::model
