// PodDefaults: what the API server adds to the pods of a template when they are made, which their Workload has to count
// before there are any: what LimitRanges of their namespace default, and the overhead of their RuntimeClass. Pods that
// are there already have it.
//
// A Workload's template has these amounts, so that one that is admitted goes on counting them whatever becomes of the
// LimitRange. Source: AdjustResources of Kueue (pkg/workload/resources.go).
// Owner thread only; deterministic.
#pragma once

#include <string>
#include <vector>

#include "api/cluster.h"
#include "api/kueue.h"
#include "limits/limit_ranges.h"
#include "limits/runtime_classes.h"

namespace berth::queueing {

// Why LimitRanges of the namespace would refuse pods of these sets, as a sentence; empty: they would not.
std::string refusal(const limits::LimitRanges& ranges, const std::string& namespace_name,
                    const std::vector<api::WorkloadPodSet>& sets);

class PodDefaults {
 public:
  // False: that is known already.
  bool see(api::LimitRange range);
  bool see(const api::RuntimeClass& runtime_class);
  void range_gone(const std::string& namespace_name, const std::string& name) { ranges_.remove(namespace_name, name); }
  void class_gone(const std::string& name) { classes_.remove(name); }

  // Gives the template its amounts; returns it as JSON, `json` before.
  std::string complete(const std::string& namespace_name, api::PodSpec& spec, const std::string& json) const;
  // Where pods of its RuntimeClass may be.
  void add_places(api::PodSpec& spec) const;
  const limits::LimitRanges& ranges() const { return ranges_; }

 private:
  limits::LimitRanges ranges_;
  limits::RuntimeClasses classes_;
};

}  // namespace berth::queueing
