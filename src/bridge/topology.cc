#include "bridge/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "api/kueue_names.h"
#include "api/names.h"
#include "api/topology_request.h"
#include "base/printable.h"
#include "base/result.h"

namespace berth::bridge {
namespace {

constexpr int32_t kWeight = 100;  // of a preference; the most that the API knows

struct Wish {
  bool apart = false, required = false;
  size_t level = 0;
  std::string_view text;
};

struct Word {
  std::string_view text;
  bool apart, required;
};
constexpr std::array<Word, 4> kWords{{{"required", false, true},
                                      {"preferred", false, false},
                                      {"apart-required", true, true},
                                      {"apart-preferred", true, false}}};

std::string names_of(const TopologyLevels& levels) {
  std::string out;
  for (const TopologyLevel& level : levels) out += (out.empty() ? "" : ", ") + level.name;
  return out;
}

Result<Wish> read_wish(std::string_view text, const TopologyLevels& levels) {
  const size_t equals = text.find('=');
  const auto word =
      std::find_if(kWords.begin(), kWords.end(), [&](const Word& w) { return w.text == text.substr(0, equals); });
  if (equals == std::string_view::npos || word == kWords.end())
    return fail(ErrorCode::kInvalidInput,
                fmt::format("'{}' is no wish; write required=, preferred=, apart-required= or apart-preferred= and a "
                            "level, for example required=rack",
                            printable(text, 80)));
  const auto level = std::find_if(levels.begin(), levels.end(),
                                  [&](const TopologyLevel& l) { return l.name == text.substr(equals + 1); });
  if (level == levels.end())
    return fail(ErrorCode::kInvalidInput, fmt::format("'{}' is no level of the topology; these are: {}",
                                                      printable(text.substr(equals + 1), 80), names_of(levels)));
  return Wish{word->apart, word->required, static_cast<size_t>(level - levels.begin()), text};
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

Result<std::vector<Wish>> read_wishes(std::string_view value, const TopologyLevels& levels) {
  std::vector<Wish> out;
  for (size_t begin = 0; begin <= value.size();) {
    const size_t comma = std::min(value.find(',', begin), value.size());
    BERTH_TRY(wish, read_wish(trimmed(value.substr(begin, comma - begin)), levels));
    for (const Wish& other : out) {
      if (wish.text == other.text)
        return fail(ErrorCode::kInvalidInput, fmt::format("'{}' stands there twice", wish.text));
      const Wish &apart = wish.apart ? wish : other, &together = wish.apart ? other : wish;
      if (wish.apart != other.apart && apart.level <= together.level)
        return fail(ErrorCode::kInvalidInput,
                    fmt::format("'{}' and '{}' exclude each other; pods can be apart only at a narrower level than "
                                "that at which they are together",
                                together.text, apart.text));
    }
    out.push_back(wish);
    begin = comma + 1;
  }
  return out;
}

}  // namespace

const TopologyLevels& default_topology_levels() {
  static const TopologyLevels levels = {{"zone", "topology.kubernetes.io/zone"},
                                        {"block", "cloud.provider.com/topology-block"},
                                        {"rack", "cloud.provider.com/topology-rack"},
                                        {"host", "kubernetes.io/hostname"}};
  return levels;
}

std::string topology_annotation_problem(const std::string& value, const TopologyLevels& levels) {
  const auto wishes = read_wishes(value, levels);
  return wishes ? "" : wishes.error().message;
}

namespace {

// Who the pods that belong together are seen by: their controller, or the group that they name themselves.
std::string owner_of(const api::ObjectMeta& pod) {
  if (const api::OwnerReference* owner = pod.controller(); owner != nullptr) return owner->uid;
  const std::string* group = pod.labels.find(api::kGroupLabel);
  return group == nullptr || group->empty() ? "" : "pod group " + *group;
}

// Kueue's words are about a pod set, or all sets of a group; "main" is that of work that has no other.
std::string owner_of_set(const api::ObjectMeta& pod) {
  std::string owner = owner_of(pod);
  if (owner.empty() || pod.annotation(kTopologyAnnotation) != nullptr) return owner;
  if (const std::string* group = pod.annotation(api::kSetGroupAnnotation)) return owner + " group " + *group;
  const std::string* set = pod.labels.find(api::kPodSetLabel);
  return set == nullptr || *set == "main" ? owner : owner + " set " + *set;
}

struct Together {
  bool apart = false, required = false;
  std::string key;  // of the node label
};

// What the pod asks for in Berth's words, else in Kueue's, whose levels are node labels themselves.
Result<std::vector<Together>> asked_for(const api::ObjectMeta& pod, const TopologyLevels& levels) {
  std::vector<Together> out;
  if (const std::string* value = pod.annotation(kTopologyAnnotation); value != nullptr) {
    const auto wishes = read_wishes(*value, levels);
    if (!wishes)
      return fail(wishes.error().code, fmt::format("annotation {}: {}.", kTopologyAnnotation, wishes.error().message));
    for (const Wish& wish : *wishes) out.push_back({wish.apart, wish.required, levels[wish.level].key});
    return out;
  }
  for (const std::string_view annotation : {api::kSliceTopologyAnnotation, api::kSliceLayersAnnotation})
    if (pod.annotation(annotation) != nullptr && pod.annotation(api::kWorkloadAnnotation) == nullptr)
      return fail(ErrorCode::kInvalidInput,
                  fmt::format("annotation {} is for the pods of a workload in a queue, and this pod is of none. Name a "
                              "queue (label {}), or say what is wanted by {}.",
                              annotation, api::kQueueLabel, kTopologyAnnotation));
  for (const std::string_view annotation : {api::kRequiredTopologyAnnotation, api::kPreferredTopologyAnnotation}) {
    const std::string* key = pod.annotation(annotation);
    if (key == nullptr) continue;
    if (const std::string wrong = api::check_qualified_name(*key); !wrong.empty())
      return fail(ErrorCode::kInvalidInput,
                  fmt::format("annotation {}: '{}' is no node label: {}.", annotation, printable(*key, 80), wrong));
    out.push_back({false, annotation == api::kRequiredTopologyAnnotation, *key});
  }
  return out;
}

}  // namespace

Result<std::vector<model::SliceLayer>> slices_of(const api::ObjectMeta& pod, int32_t count) {
  if (pod.annotation(kTopologyAnnotation) != nullptr) return std::vector<model::SliceLayer>();
  return api::slice_layers(pod, count);
}

void add_topology(const api::ObjectMeta& pod, const TopologyLevels& levels, model::Labels& labels,
                  model::Peers& peers) {
  const auto asked = asked_for(pod, levels);
  if (!asked) {
    peers.problem = asked.error().message;
    return;
  }
  const std::string owner = owner_of_set(pod);
  if (asked->empty() || owner.empty()) return;
  labels.set(std::string(kOwnerLabel), owner);
  model::PeerSelector of_owner;
  of_owner.namespaces = {pod.namespace_name};
  of_owner.pods.requirements = {{std::string(kOwnerLabel), model::NodeSelectorOperator::kIn, {owner}}};
  for (const Together& wish : *asked) {
    const model::PodAffinityTerm term{of_owner, wish.key, !wish.apart};
    if (!wish.required) peers.preferred.push_back({wish.apart ? -kWeight : kWeight, term});
    else if (wish.apart) peers.anti_affinity.push_back(term);
    else peers.affinity.push_back(term);
  }
}

}  // namespace berth::bridge
