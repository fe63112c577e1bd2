#include "scenario/trace_svg.h"

#include <fmt/format.h>

#include <cmath>

namespace berth::scenario {
namespace {

constexpr double kWidth = 760;
constexpr double kHeight = 420;
constexpr double kLeft = 64;
constexpr double kRight = 160;
constexpr double kTop = 62;
constexpr double kBottom = 58;
constexpr double kLabelGap = 18;  // between the two names at the ends of the curves

constexpr std::string_view kStyle = R"(<style>
  .paper { fill: #ffffff } .grid { stroke: #d8dee4; stroke-width: 1 }
  text { font: 14px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #24292f }
  .title { font-size: 17px; font-weight: 600 } .small { font-size: 13px; fill: #57606a } .name { font-weight: 600 }
  polyline { fill: none; stroke-width: 2.5 }
  .allocated { stroke: #0b62b8 } text.allocated { stroke: none; fill: #0b62b8 }
  .fragmented { stroke: #c2410c } text.fragmented { stroke: none; fill: #c2410c }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117 } text { fill: #e6edf3 } .small { fill: #9da7b3 } .grid { stroke: #30363d }
    .allocated { stroke: #6cb6ff } text.allocated { fill: #6cb6ff }
    .fragmented { stroke: #ffa26b } text.fragmented { fill: #ffa26b }
  }
</style>
)";

double y_of(double percent) { return kHeight - kBottom - percent / 100 * (kHeight - kTop - kBottom); }

double x_of(size_t arrived, size_t last) {
  return kLeft + static_cast<double>(arrived) / static_cast<double>(last) * (kWidth - kLeft - kRight);
}

std::string curve(const TraceResult& result, std::string_view name, double TracePoint::*value) {
  std::string points;
  for (size_t p = 0; p < result.points.size(); ++p)
    points += fmt::format("{:.1f},{:.1f} ", x_of(p + 1, result.points.size()), y_of(result.points[p].*value));
  return fmt::format("<polyline class=\"{}\" points=\"{}\"/>\n", name, points);
}

// Ticks at multiples of a round step, ten of them at most.
size_t step_for(size_t last) {
  size_t step = 1;
  for (const size_t factor : {2, 5, 10, 20, 50, 100, 200})
    if (last / step > 10) step = factor;
  return step;
}

std::string axes(size_t last) {
  std::string out;
  for (int percent = 0; percent <= 100; percent += 20) {
    const double y = y_of(percent);
    out += fmt::format("<line class=\"grid\" x1=\"{}\" y1=\"{y:.1f}\" x2=\"{}\" y2=\"{y:.1f}\"/>", kLeft,
                       kWidth - kRight, fmt::arg("y", y));
    out += fmt::format("<text class=\"small\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}%</text>\n", kLeft - 8, y + 4,
                       percent);
  }
  for (size_t arrived = 0; arrived <= last; arrived += step_for(last))
    out += fmt::format("<text class=\"small\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}%</text>\n",
                       x_of(arrived, last), kHeight - kBottom + 20, arrived);
  out += fmt::format(
      "<text class=\"small\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">GPUs that the pods asked for, of the fleet's"
      "</text>\n",
      (kLeft + kWidth - kRight) / 2, kHeight - 14);
  return out;
}

// What the curves are called, beside their ends and apart from each other.
std::string names(const TracePoint& last) {
  double allocated = y_of(last.gpu_allocation_percent) + 5;
  double fragmented = y_of(last.fragmentation_ratio_percent) + 5;
  if (std::abs(allocated - fragmented) < kLabelGap) {
    const double middle = (allocated + fragmented) / 2;
    const double up = allocated < fragmented ? 1 : -1;
    allocated = middle - up * kLabelGap / 2;
    fragmented = middle + up * kLabelGap / 2;
  }
  const auto name = [](std::string_view word, double y, double percent) {
    return fmt::format("<text class=\"name {0}\" x=\"{1}\" y=\"{2:.1f}\">{0} {3:.1f}%</text>\n", word,
                       kWidth - kRight + 8, y, percent);
  };
  return name("allocated", allocated, last.gpu_allocation_percent) +
         name("fragmented", fragmented, last.fragmentation_ratio_percent);
}

}  // namespace

std::string trace_svg(const TraceResult& result) {
  const std::string title =
      fmt::format("{}, seed {}: GPUs allocated and fragmented", trace_policy(result), result.seed);
  std::string out =
      fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\">\n<title>{}</title>\n",
                  kWidth, kHeight, title);
  out += kStyle;
  out += fmt::format("<rect class=\"paper\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n", kWidth, kHeight);
  out += fmt::format("<text class=\"title\" x=\"{}\" y=\"28\">{}</text>\n", kLeft, title);
  out += fmt::format("<text class=\"small\" x=\"{}\" y=\"48\">{} pods arrived, {} {}</text>\n", kLeft, result.pods,
                     result.failed, result.batch > 0 ? "wait in the end" : "did not fit");
  out += axes(result.points.size());
  out += curve(result, "fragmented", &TracePoint::fragmentation_ratio_percent);
  out += curve(result, "allocated", &TracePoint::gpu_allocation_percent);
  out += names(result.points.back());
  return out + "</svg>\n";
}

}  // namespace berth::scenario
