// LocalUsage: what each LocalQueue has used of late, by which admission fair sharing ranks them.
//
// What was used counts ever less, half after a half-life: an exponential average of the amounts in use. It is brought
// up to a time exactly, from one change of the amounts to the next, where Kueue samples it. With its admission a
// workload counts as if it had run for one sampling interval already, so that workloads admitted at one moment come
// from different queues. Whoever takes over begins with what was written last; what has run since then counts as if it
// had been counted all the time. Source: KEP-4136, https://kueue.sigs.k8s.io/docs/concepts/admission_fair_sharing/.
//
// One thread; times never go back.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "base/int128.h"
#include "base/time.h"
#include "model/resources.h"
#include "quota/options.h"

namespace berth::quota {

class LocalUsage {
 public:
  using Queue = std::pair<std::string, std::string>;  // namespace and name

  explicit LocalUsage(AdmissionFairSharing options) : options_(std::move(options)) {}

  // What the queue has used, as of then, says whoever counted before; nothing where something is known of it.
  void know(const Queue& queue, const std::map<std::string, double>& amounts, Time then);
  // What was said to be known of the future is known now.
  void no_later_than(Time now);
  // A workload of the queue begins to use so much, or has ended.
  void begin(const Queue& queue, const model::ResourceList& amounts, Time now);
  // It has been using that since it was admitted, and is heard of now. What know() said includes it up to then.
  void resume(const Queue& queue, const model::ResourceList& amounts, Time admitted, Time now);
  void end(const Queue& queue, const model::ResourceList& amounts, Time now);
  // What each queue has used until then; what is in use stays.
  void take_averages(const LocalUsage& from, Time now);
  // What the queue has used, in whole ones of each resource (a GPU, a core, a byte).
  std::map<std::string, double> used(const Queue& queue, Time now) const;
  // How much of what was used counts after so long: 1 at once, a half after the half-life.
  double kept(Duration passed) const;
  const AdmissionFairSharing& options() const { return options_; }
  // Usage by the weights of its resources, per weight of the queue, in thousandths of a unit's; infinite without
  // weight. GPUs count one each, CPUs one a core, memory one a byte, as in Kueue.
  double weighted(const Queue& queue, int64_t fair_weight, Time now) const;

 private:
  struct Use {
    Int128 now = 0;      // in use; a sum of any number of int64
    double average = 0;  // as of Entry::at
  };
  struct Entry {
    Time at;
    std::map<std::string, Use> resources;
    Time known{INT64_MIN};  // up to when it was counted by others
  };
  double at_once() const;
  void bring_up(Entry& entry, Time now) const;

  AdmissionFairSharing options_;
  std::map<Queue, Entry> queues_;
};

}  // namespace berth::quota
