// PodSet: pods of a workload that ask for the same, as a plain value.
//
// The terms are Kueue's (kueue.x-k8s.io/v1beta2 PodSet, https://kueue.sigs.k8s.io/docs/concepts/workload/).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/labels.h"
#include "model/node_affinity.h"
#include "model/peers.h"
#include "model/pod.h"
#include "model/resources.h"
#include "model/taint.h"

namespace berth::model {

struct PodSet {
  // A pod that is there already, and what decides where it fits.
  struct Member {
    std::string uid;
    std::shared_ptr<const SchedulingSpec> spec;
    std::shared_ptr<const Labels> labels;
  };

  std::string name;
  int32_t count = 1;
  std::optional<int32_t> min_count;  // so few will do
  int32_t reclaimable = 0;           // so many of them need nothing any more
  // What quota counts of one pod, a share of a GPU among it; one by memory as a whole GPU (but see quota/flavors.h).
  ResourceList requests;
  Labels node_selector;
  std::optional<std::vector<NodeSelectorTerm>> required_affinity;
  std::vector<Toleration> tolerations;
  // Everything that decides where one of its pods fits, with which places are looked for; null: no place is needed.
  std::shared_ptr<const SchedulingSpec> spec = {};
  std::shared_ptr<const Labels> labels = {};
  std::vector<SliceLayer> slices = {};  // the widest first; each size is a multiple of the next
  // Those that are there, where they differ in claims or labels, at most `count`; empty: all are as `spec` says.
  std::vector<Member> members = {};

  int32_t needed() const { return std::max(0, count - reclaimable); }
  int32_t slice_size() const { return slices.empty() ? 1 : slices.front().size; }
  // Partial admission, which leaves whole slices.
  int32_t fewest() const {
    const int64_t size = slice_size(), least = min_count.value_or(count);
    return static_cast<int32_t>(std::min<int64_t>(needed(), (least + size - 1) / size * size));
  }
};

}  // namespace berth::model
