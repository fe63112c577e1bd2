#include "apps/scheduler/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "apps/scheduler/binder.h"
#include "apps/scheduler/evictor.h"
#include "apps/scheduler/live_gauges.h"
#include "apps/scheduler/storage_watch.h"
#include "engine/fragmentation.h"

namespace berth::apps {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

const Histogram::BucketBoundaries kLatency{0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05,
                                           0.1,    0.2,    0.5,   1,     2,     5,    10,   30};
const Histogram::BucketBoundaries kLongLatency{0.005, 0.01, 0.05, 0.1, 0.5, 1,   2,    5,
                                               10,    30,   60,   120, 300, 600, 1800, 3600};
const Histogram::BucketBoundaries kUpdates{1, 10, 50, 100, 200, 500, 1000, 2000, 5000, 20'000};
const Histogram::BucketBoundaries kVictims{1, 2, 4, 8, 16, 32, 64};  // kube-scheduler's

Family<Counter>& counter(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}
Family<Gauge>& gauge(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}
Family<Histogram>& histogram(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

}  // namespace

struct Metrics::Families {
  prometheus::Registry registry;
  Family<Counter>& outcomes = counter(registry, "berth_scheduling_outcomes_total",
                                      "Pods bound (scheduled), told another reason why they fit nowhere "
                                      "(unschedulable), or not bound although they had a place (error).");
  Histogram& pod_seconds =
      histogram(registry, "berth_pod_scheduling_duration_seconds",
                "Until a pod was bound, from its creation or, where it had scheduling gates, from when the last fell.")
          .Add({}, kLongLatency);
  Family<Gauge>& pending =
      gauge(registry, "scheduler_pending_pods", "Pods that wait, by queue: active, backoff, unschedulable or gated.");
  Histogram& cycle_seconds =
      histogram(registry, "berth_cycle_duration_seconds", "How long the owner thread was busy with one cycle.")
          .Add({}, kLatency);
  Counter& cycle_work = counter(registry, "berth_cycle_work_units_total", "Candidates examined.").Add({});
  Histogram& turn_seconds =
      histogram(
          registry, "berth_owner_turn_duration_seconds",
          "How long the owner thread was occupied at a stretch: updates applied, a cycle, its decisions handed out.")
          .Add({}, kLatency);
  Histogram& turn_updates =
      histogram(registry, "berth_owner_turn_updates", "Updates applied at a stretch, lists aside.").Add({}, kUpdates);
  Gauge& turn_max =
      gauge(registry, "berth_owner_turn_max_seconds", "What such a stretch is meant to stay below: turnMax.").Add({});
  Gauge& turn_longest = gauge(registry, "berth_owner_turn_longest_seconds",
                              "The longest such stretch since the process started, lists included.")
                            .Add({});
  Family<Counter>& turns_over =
      counter(registry, "berth_owner_turns_over_max_total",
              "Stretches longer than turnMax, by whether a list was applied, which cannot be divided.");
  Gauge& backlog =
      gauge(registry, "berth_owner_backlog", "Messages that wait for the owner thread's next turn.").Add({});
  Family<Counter>& binds = counter(registry, "berth_binds_total", "Bindings sent, by result.");
  Histogram& bind_seconds =
      histogram(registry, "berth_bind_duration_seconds", "From handing a Binding to the transport until its answer.")
          .Add({}, kLatency);
  Gauge& outstanding = gauge(registry, "berth_binds_outstanding", "Bindings decided and not yet answered.").Add({});
  Counter& throttled = counter(registry, "berth_binds_throttled_total",
                               "Bindings that the server refused with 429; they are sent again.")
                           .Add({});
  Gauge& reserved = gauge(registry, "berth_reserved_pods", "Waiting pods that a node is kept for.").Add({});
  Gauge& kept = gauge(registry, "berth_reserved_workloads", "Waiting workloads that room is kept for.").Add({});
  Counter& reservations = counter(registry, "berth_reservations_total",
                                  "Times that room was kept for a pod or workload which had waited long.")
                              .Add({});
  Counter& preemptions =
      counter(registry, "berth_preemptions_total", "Pods for which others were chosen to be evicted.").Add({});
  Histogram& victims =
      histogram(registry, "scheduler_preemption_victims", "Pods chosen to be evicted for one pod.").Add({}, kVictims);
  Family<Counter>& evictions = counter(registry, "berth_evictions_total", "Evictions, by result.");
  Family<Counter>& repartitions =
      counter(registry, "berth_mig_repartitions_total",
              "Changes of how a node's GPUs are cut: begun, and what became of them (arrived, failed, withdrawn).");
  Gauge& repartitioning =
      gauge(registry, "berth_mig_nodes_repartitioning", "Nodes whose GPUs are being cut anew.").Add({});
  Family<Counter>& patches =
      counter(registry, "berth_status_patches_total", "PodScheduled conditions written, by result.");
  Family<Counter>& quarantined = counter(registry, "berth_quarantined_objects_total",
                                         "Objects from the API server that could not be understood, by kind.");
  Gauge& leader = gauge(registry, "berth_leader", "1 while this replica holds the lease.").Add({});
  Family<Gauge>& room =
      gauge(registry, "berth_fragmentation_requests",
            "How many more requests of so many devices of a resource would fit now, beside one another.");
  Family<Gauge>& room_if_cut =
      gauge(registry, "berth_fragmentation_requests_if_cut",
            "How many would fit if on nodes with dynamic MIG all idle GPUs were cut, or made whole, for them alone.");
  Family<Gauge>& stranded = gauge(registry, "berth_fragmentation_stranded",
                                  "Free devices that requests of so many cannot use, by what keeps them from it.");
  LiveGauges shown_rooms;  // of the three above
  Family<Gauge>& gpus = gauge(registry, "berth_gpus", "GPUs of all nodes, by state: allocatable or used.");
  Family<Gauge>& mig_instances =
      gauge(registry, "berth_mig_instances", "MIG instances of all nodes, by state: allocatable or used.");
  Gauge& nodes = gauge(registry, "berth_nodes", "Nodes known.").Add({});
  Family<Counter>& events = counter(registry, "berth_events_total", "Events: created, aggregated, dropped.");
  Family<Counter>& watch =
      counter(registry, "berth_watch_total", "Lists, watches, 410s (gone) and failures, by resource.");

  // Of the counts of one session: what has been added to the counters already, by series.
  std::mutex mutex;
  std::map<Counter*, uint64_t> counted;
  void count_to(Counter& series, uint64_t so_far) {
    uint64_t& before = counted[&series];
    if (so_far > before) series.Increment(static_cast<double>(so_far - before));
    before = std::max(before, so_far);
  }
};

Metrics::Metrics() : families_(std::make_unique<Families>()) {
  for (const char* result : {"begun", "arrived", "failed", "withdrawn"})
    families_->repartitions.Add({{"result", result}});
  for (const char* result : {"scheduled", "unschedulable", "error"}) families_->outcomes.Add({{"result", result}});
  for (const BindEnd end : {BindEnd::kBound, BindEnd::kUnknown, BindEnd::kFailed, BindEnd::kGone, BindEnd::kElsewhere})
    families_->binds.Add({{"result", std::string(to_string(end))}});
  for (const char* list : {"yes", "no"}) families_->turns_over.Add({{"list", list}});
  for (const EvictionEnd end :
       {EvictionEnd::kEvicted, EvictionEnd::kGone, EvictionEnd::kRefused, EvictionEnd::kWithdrawn})
    families_->evictions.Add({{"result", std::string(to_string(end))}});
  for (const char* result : {"ok", "failed"}) families_->patches.Add({{"result", result}});
  for (const char* kind : {"Pod", "Node", "Namespace", "PodDisruptionBudget"})
    families_->quarantined.Add({{"kind", kind}});
  for (size_t i = 0; i < std::variant_size_v<model::StorageObject>; ++i)
    families_->quarantined.Add({{"kind", std::string(kind_of(static_cast<model::StorageKind>(i)))}});
  events({});
  for (const char* resource : {"pods", "nodes", "namespaces", "poddisruptionbudgets"}) watch(resource, {});
  for (size_t i = 0; i < std::variant_size_v<model::StorageObject>; ++i)
    watch(plural_of(static_cast<model::StorageKind>(i)), {});
}
Metrics::~Metrics() = default;

std::string Metrics::text() const {
  return prometheus::TextSerializer().Serialize(families_->registry.Collect()) + queues_.text();
}

void Metrics::outcome(std::string_view result) {
  families_->outcomes.Add({{"result", std::string(result)}}).Increment();
}
void Metrics::pod_scheduled(Duration waited) { families_->pod_seconds.Observe(waited.as_seconds()); }
void Metrics::cycle(Duration took, int64_t work_units) {
  families_->cycle_seconds.Observe(took.as_seconds());
  families_->cycle_work.Increment(static_cast<double>(work_units));
}
void Metrics::owner_turn(Duration took, Duration longest, size_t updates, bool lists) {
  families_->turn_seconds.Observe(took.as_seconds());
  families_->turn_max.Set(longest.as_seconds());
  families_->turn_longest.Set(std::max(families_->turn_longest.Value(), took.as_seconds()));
  if (!lists) families_->turn_updates.Observe(static_cast<double>(updates));
  if (took > longest) families_->turns_over.Add({{"list", lists ? "yes" : "no"}}).Increment();
}
void Metrics::owner_backlog(size_t messages) { families_->backlog.Set(static_cast<double>(messages)); }
void Metrics::bind(std::string_view result, Duration took) {
  families_->binds.Add({{"result", std::string(result)}}).Increment();
  families_->bind_seconds.Observe(took.as_seconds());
}
void Metrics::preemption(size_t victims) {
  families_->preemptions.Increment();
  families_->victims.Observe(static_cast<double>(victims));
}
void Metrics::eviction(std::string_view result) {
  families_->evictions.Add({{"result", std::string(result)}}).Increment();
}
void Metrics::repartition(std::string_view result) {
  families_->repartitions.Add({{"result", std::string(result)}}).Increment();
}

void Metrics::repartitioning(size_t nodes) { families_->repartitioning.Set(static_cast<double>(nodes)); }

void Metrics::status_patch(bool ok) { families_->patches.Add({{"result", ok ? "ok" : "failed"}}).Increment(); }
void Metrics::quarantined(std::string_view kind) {
  families_->quarantined.Add({{"kind", std::string(kind)}}).Increment();
}
void Metrics::pending(const PendingCounts& counts) {
  families_->pending.Add({{"queue", "active"}}).Set(static_cast<double>(counts.active));
  families_->pending.Add({{"queue", "backoff"}}).Set(static_cast<double>(counts.backoff));
  families_->pending.Add({{"queue", "unschedulable"}}).Set(static_cast<double>(counts.unschedulable));
  families_->pending.Add({{"queue", "gated"}}).Set(static_cast<double>(counts.gated));
}
void Metrics::binds_outstanding(size_t count) { families_->outstanding.Set(static_cast<double>(count)); }
void Metrics::binds_throttled(uint64_t so_far) {
  const std::lock_guard lock(families_->mutex);
  families_->count_to(families_->throttled, so_far);
}
void Metrics::reservations(size_t pods, size_t workloads, uint64_t so_far) {
  families_->reserved.Set(static_cast<double>(pods));
  families_->kept.Set(static_cast<double>(workloads));
  const std::lock_guard lock(families_->mutex);
  families_->count_to(families_->reservations, so_far);
}
void Metrics::leader(bool leading) { families_->leader.Set(leading ? 1 : 0); }
void Metrics::gpus(const engine::GpuTotals& totals) {
  const auto set = [](Family<Gauge>& family, int64_t allocatable, int64_t used) {
    family.Add({{"state", "allocatable"}}).Set(static_cast<double>(allocatable));
    family.Add({{"state", "used"}}).Set(static_cast<double>(used));
  };
  set(families_->gpus, totals.allocatable, totals.used);
  set(families_->mig_instances, totals.mig_allocatable, totals.mig_used);
}
void Metrics::fragmentation(const std::vector<engine::ResourceRoom>& rooms) {
  LiveGauges& shown = families_->shown_rooms;
  const auto set = [&](Family<Gauge>& family, const prometheus::Labels& labels, int64_t value) {
    shown.set(family, labels, static_cast<double>(value));
  };
  shown.begin();
  for (const engine::ResourceRoom& room : rooms) {
    for (const engine::ShapeRoom& shape : room.shapes) {
      prometheus::Labels labels = {{"resource", room.resource},
                                   {"kind", std::string(to_string(room.unit))},
                                   {"size", std::to_string(shape.size)}};
      set(families_->room, labels, shape.fit);
      if (shape.fit_if_cut) set(families_->room_if_cut, labels, *shape.fit_if_cut);
      for (size_t i = 0; i < shape.stranded.size(); ++i) {
        labels["by"] = std::string(engine::kStrandings[i]);
        set(families_->stranded, labels, shape.stranded[i]);
      }
    }
  }
  shown.end();
}
void Metrics::nodes(size_t count) { families_->nodes.Set(static_cast<double>(count)); }
void Metrics::session_began() {
  const std::lock_guard lock(families_->mutex);
  families_->counted.clear();
}
void Metrics::events(const kube::EventStats& so_far) {
  const std::lock_guard lock(families_->mutex);
  const auto count = [&](const char* result, uint64_t value) {
    families_->count_to(families_->events.Add({{"result", result}}), value);
  };
  count("created", so_far.created);
  count("aggregated", so_far.aggregated);
  count("dropped", so_far.dropped);
}
void Metrics::watch(std::string_view resource, const kube::ReflectorStats& so_far) {
  const std::lock_guard lock(families_->mutex);
  const auto count = [&](const char* what, uint64_t value) {
    families_->count_to(families_->watch.Add({{"resource", std::string(resource)}, {"what", what}}), value);
  };
  count("lists", so_far.lists);
  count("watches", so_far.watches);
  count("gone", so_far.gone);
  count("failures", so_far.failures);
}

}  // namespace berth::apps
