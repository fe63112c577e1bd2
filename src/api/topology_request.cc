#include "api/topology_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/kueue_names.h"
#include "api/names.h"
#include "api/reader.h"
#include "base/printable.h"

namespace berth::api {
namespace {

constexpr std::string_view kCompletionIndex = "batch.kubernetes.io/job-completion-index",
                           kReplicaIndex = "training.kubeflow.org/replica-index";

std::optional<int32_t> number_in(std::string_view text) {
  int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// As JSON, a number may be written as a string.
constexpr Field<model::SliceLayer> kLayer[] = {
    {"topology", [](const Reader& r, model::SliceLayer& l) { r.read(l.key); }},
    {"size",
     [](const Reader& r, model::SliceLayer& l) {
       std::string text;
       if (r.read_string_or_number(text)) l.size = number_in(text).value_or(0);
     }},
};

Result<std::vector<model::SliceLayer>> read_layers(const std::string& text) {
  std::vector<model::SliceLayer> out;
  ProblemSink sink;
  sink.strict = true;
  const Status read = read_json(text, sink, [&](const Reader& root) { read_slice_layers(root, out); });
  if (!read) return fail(ErrorCode::kInvalidInput, read.error().message);
  if (!sink.problems.empty())
    return fail(ErrorCode::kInvalidInput,
                fmt::format("{}: {}", sink.problems.front().path, sink.problems.front().message));
  return out;
}

// What is wrong with the layers of a set of so many pods; empty: nothing.
std::string problem_of(const std::vector<model::SliceLayer>& layers, int32_t count) {
  if (layers.empty() || layers.size() > kSliceLayersMax)
    return fmt::format("{} levels; name 1 to {}, the widest first", layers.size(), kSliceLayersMax);
  for (size_t i = 0; i < layers.size(); ++i) {
    const model::SliceLayer& layer = layers[i];
    if (const std::string wrong = check_qualified_name(layer.key); !wrong.empty())
      return fmt::format("'{}' is no node label: {}", printable(layer.key, 80), wrong);
    const auto same = [&](const model::SliceLayer& other) { return other.key == layer.key; };
    if (std::any_of(layers.begin(), layers.begin() + static_cast<std::ptrdiff_t>(i), same))
      return fmt::format("{} stands there twice", layer.key);
    if (layer.size < 1) return fmt::format("the slices of {} need a size, of 1 at least", layer.key);
    const int32_t whole = i == 0 ? count : layers[i - 1].size;
    if (whole % layer.size == 0) continue;
    return i == 0 ? fmt::format("{} pods cannot be cut into slices of {}", count, layer.size)
                  : fmt::format("slices of {} cannot be cut into slices of {}", whole, layer.size);
  }
  return "";
}

}  // namespace

void read_slice_layers(const Reader& reader, std::vector<model::SliceLayer>& out) {
  read_list<model::SliceLayer>(reader, out, [](const Reader& r, model::SliceLayer& layer) {
    layer.size = 0;
    read_object(r, kLayer, layer);
  });
}

std::string to_annotation(const std::vector<model::SliceLayer>& layers) {
  std::string out;
  for (const model::SliceLayer& layer : layers)
    out += fmt::format("{}{{\"topology\": \"{}\", \"size\": {}}}", out.empty() ? "" : ", ", layer.key, layer.size);
  return "[" + out + "]";
}

Result<std::vector<model::SliceLayer>> slice_layers(const ObjectMeta& metadata, int32_t count) {
  const std::string *key = metadata.annotation(kSliceTopologyAnnotation),
                    *size = metadata.annotation(kSliceSizeAnnotation),
                    *several = metadata.annotation(kSliceLayersAnnotation);
  const auto wrong = [](std::string_view annotation, const std::string& why) {
    return fail(ErrorCode::kInvalidInput, fmt::format("annotation {}: {}.", annotation, why));
  };
  if (several != nullptr) {
    if (key != nullptr) return wrong(kSliceLayersAnnotation, fmt::format("goes without {}", kSliceTopologyAnnotation));
    auto layers = read_layers(*several);
    if (!layers)
      return wrong(kSliceLayersAnnotation,
                   fmt::format("{}; write for example [{{\"topology\": \"rack\", \"size\": 8}}]",
                               printable(layers.error().message, 200)));
    if (const std::string problem = problem_of(*layers, count); !problem.empty())
      return wrong(kSliceLayersAnnotation, problem);
    return layers;
  }
  if (key == nullptr) return std::vector<model::SliceLayer>();
  if (size == nullptr) return wrong(kSliceTopologyAnnotation, fmt::format("needs {} beside it", kSliceSizeAnnotation));
  const auto number = number_in(*size);
  if (!number) return wrong(kSliceSizeAnnotation, fmt::format("'{}' is no number of pods", printable(*size, 80)));
  std::vector<model::SliceLayer> layers{{*key, *number}};
  if (const std::string problem = problem_of(layers, count); !problem.empty())
    return wrong(kSliceTopologyAnnotation, problem);
  return layers;
}

std::optional<int32_t> pod_index(const ObjectMeta& metadata) {
  const auto in_label = [&](std::string_view key) -> std::optional<int32_t> {
    const std::string* text = metadata.labels.find(key);
    return text == nullptr ? std::nullopt : number_in(*text);
  };
  const std::string *named = metadata.annotation(kGroupIndexLabelAnnotation),
                    *completion = metadata.annotation(kCompletionIndex),
                    *offset = metadata.annotation(kIndexOffsetAnnotation);
  std::optional<int32_t> index = completion != nullptr ? number_in(*completion) : in_label(kCompletionIndex);
  for (const std::string_view key : {named != nullptr ? std::string_view(*named) : kGroupIndexLabel, kReplicaIndex})
    if (!index) index = in_label(key);
  if (!index || *index < 0) return std::nullopt;
  return *index - (offset != nullptr ? std::clamp(number_in(*offset).value_or(0), 0, *index) : 0);
}

}  // namespace berth::api
