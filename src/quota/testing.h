// What tests of admission share: one queue, and what comes of it in time.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "quota/admission.h"

namespace berth::quota::testing {

inline constexpr const char* kGpu = "nvidia.com/gpu";

// So many GPUs, as quota counts them.
inline int64_t gpus(int64_t count) { return count * model::kWholeGpu; }

// A queue of four GPUs without nodes. What is evicted is told, and lets go when the test says so.
class OneQueue : public ::testing::Test {
 protected:
  explicit OneQueue(AdmissionOptions options = {}) : admission(std::move(options)) {
    model::ResourceFlavor flavor;
    flavor.name = "default";
    admission.upsert(flavor);
    admission.upsert(team());
    admission.upsert(model::LocalQueue{"default", "team", "team"});
  }

  static model::ClusterQueue team() {
    model::ClusterQueue queue;
    queue.name = "team";
    queue.namespaces = {};
    queue.groups = {{{kGpu}, {{"default", {{kGpu, {gpus(4), {}, {}}}}}}}};
    return queue;
  }

  static model::Workload workload(const std::string& name, int64_t count = 4) {
    model::Workload out;
    out.namespace_name = "default";
    out.name = out.uid = name;
    out.queue = "team";
    model::PodSet set;
    set.name = "main";
    set.requests.set(kGpu, gpus(count));
    out.pod_sets = {set};
    return out;
  }

  // Cycles at so many seconds until nothing changes; the evictions: "name: reason".
  std::vector<std::string> at(int64_t seconds) {
    std::vector<std::string> out;
    for (bool more = true; more;) {
      std::vector<AdmissionDecision> decisions;
      more = admission.run_cycle(Time{} + Duration::seconds(seconds), decisions);
      for (const AdmissionDecision& decision : decisions)
        if (decision.kind == AdmissionDecision::Kind::kEvict)
          out.push_back(admission.status(decision.workload).workload.name + ": " + decision.reason +
                        (decision.deactivates ? ", deactivated" : ""));
    }
    return out;
  }

  int64_t due() const {
    const std::optional<Time> next = admission.next_due();
    return next ? (*next - Time{}).nanos / Duration::seconds(1).nanos : -1;
  }
  WorkloadPhase phase(const char* name) const { return admission.status(admission.find(name)).phase; }

  WorkloadId submit(const model::Workload& made) { return admission.upsert(made); }
  const WorkloadStatus& status(const char* name) const { return admission.status(admission.find(name)); }

  Admission admission;
};

}  // namespace berth::quota::testing
