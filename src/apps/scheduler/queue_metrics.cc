#include "apps/scheduler/queue_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "apps/scheduler/live_gauges.h"
#include "model/quantity.h"
#include "quota/admission.h"

namespace berth::apps {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

// Kueue's: 1 s, 2.5 s, 5 s, then doubled.
const Histogram::BucketBoundaries kWaits{1,   2.5, 5,    10,   20,   40,    80,    160,
                                         320, 640, 1280, 2560, 5120, 10240, 20480, 40960};

// As Kueue tells it: where a node of weight 0 borrows, it is no number.
double of_share(const quota::FairShare& share) {
  const double weighted = share.weighted();
  return std::isinf(weighted) ? std::numeric_limits<double>::quiet_NaN() : weighted;
}

double of_resource(const std::string& resource, int64_t amount) {
  return static_cast<double>(amount) / static_cast<double>(model::quota_units(resource));
}

// Series of a family that are of one ClusterQueue each, and go with it.
template <typename Metric>
class SeriesOfQueues {
 public:
  explicit SeriesOfQueues(Family<Metric>& family) : family_(family) {}
  template <typename... Args>
  Metric& add(const std::string& queue, const prometheus::Labels& labels, Args&&... args) {
    Metric& series = family_.Add(labels, std::forward<Args>(args)...);
    by_queue_[queue].insert(&series);
    return series;
  }
  void keep_those_of(const quota::Admission& admission) {
    std::erase_if(by_queue_, [&](const auto& queue) {
      if (admission.cluster_queues().contains(queue.first)) return false;
      for (Metric* series : queue.second) family_.Remove(series);
      return true;
    });
  }

 private:
  Family<Metric>& family_;
  std::map<std::string, std::set<Metric*>> by_queue_;
};

}  // namespace

struct QueueMetrics::Families {
  prometheus::Registry registry;
  Family<Gauge>& gauge(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  }
  SeriesOfQueues<Counter> counter(const char* name, const char* help) {
    return SeriesOfQueues<Counter>(prometheus::BuildCounter().Name(name).Help(help).Register(registry));
  }
  SeriesOfQueues<Histogram> histogram(const char* name, const char* help) {
    return SeriesOfQueues<Histogram>(prometheus::BuildHistogram().Name(name).Help(help).Register(registry));
  }

  Family<Gauge>& pending = gauge("kueue_pending_workloads",
                                 "Workloads that wait, by ClusterQueue and status: active, or inadmissible (fits "
                                 "nowhere until something happens).");
  Family<Gauge>& local_pending = gauge("kueue_local_queue_pending_workloads", "The same by LocalQueue.");
  Family<Gauge>& reserving = gauge("kueue_reserving_active_workloads", "Workloads that hold quota, by ClusterQueue.");
  Family<Gauge>& admitted = gauge("kueue_admitted_active_workloads", "Workloads that are admitted, by ClusterQueue.");
  Family<Gauge>& local_admitted = gauge("kueue_local_queue_admitted_active_workloads", "The same by LocalQueue.");
  Family<Gauge>& status = gauge("kueue_cluster_queue_status",
                                "1 for the state that a ClusterQueue is in: pending (it cannot admit) or active.");
  Family<Gauge>& reservation =
      gauge("kueue_cluster_queue_resource_reservation", "Quota that is held, by ClusterQueue, flavor and resource.");
  Family<Gauge>& usage =
      gauge("kueue_cluster_queue_resource_usage", "Quota of admitted workloads, by ClusterQueue, flavor and resource.");
  Family<Gauge>& nominal = gauge("kueue_cluster_queue_nominal_quota", "Nominal quota of a ClusterQueue.");
  Family<Gauge>& borrowing =
      gauge("kueue_cluster_queue_borrowing_limit", "How much a ClusterQueue may borrow, where it is limited.");
  Family<Gauge>& lending =
      gauge("kueue_cluster_queue_lending_limit", "How much a ClusterQueue lends, where it is limited.");
  Family<Gauge>& share = gauge("kueue_cluster_queue_weighted_share",
                               "The dominant share of what a ClusterQueue borrows, over its weight, where fair sharing "
                               "is on; no number where its weight is 0 and it borrows.");
  Family<Gauge>& cohort_share = gauge("kueue_cohort_weighted_share", "The same of a Cohort.");
  Family<Gauge>& budget =
      gauge("berth_queue_budget",
            "What a queue may spend in its window, by unit: GPU-hours or dollars; the namespace of a "
            "ClusterQueue is empty.");
  Family<Gauge>& spent = gauge("berth_queue_budget_spent", "What it has spent of that in this window.");
  SeriesOfQueues<Counter> reserved_total =
      counter("kueue_quota_reserved_workloads_total", "Workloads that were given quota, by ClusterQueue.");
  SeriesOfQueues<Counter> admitted_total =
      counter("kueue_admitted_workloads_total", "Workloads admitted, by ClusterQueue.");
  SeriesOfQueues<Counter> evicted_total =
      counter("kueue_evicted_workloads_total", "Evictions, by ClusterQueue and reason.");
  SeriesOfQueues<Counter> preempted_total =
      counter("kueue_preempted_workloads_total", "Workloads preempted, by the ClusterQueue they went for and reason.");
  SeriesOfQueues<Histogram> reserved_wait =
      histogram("kueue_quota_reserved_wait_time_seconds",
                "From a workload's creation, or from when it was requeued, until it was given quota.");
  SeriesOfQueues<Histogram> admitted_wait =
      histogram("kueue_admission_wait_time_seconds", "The same, until it was admitted.");
  SeriesOfQueues<Histogram> checks_wait =
      histogram("kueue_admission_checks_wait_time_seconds", "From when it was given quota until its checks let it in.");
  LiveGauges shown;
};

QueueMetrics::QueueMetrics() : families_(std::make_unique<Families>()) {}
QueueMetrics::~QueueMetrics() = default;

std::string QueueMetrics::text() const { return prometheus::TextSerializer().Serialize(families_->registry.Collect()); }

// Of one that has quota now, is admitted now, or both.
void QueueMetrics::let_in(const quota::AdmissionDecision& decision, const Waited& waited) {
  const std::string& queue = decision.cluster_queue;
  const prometheus::Labels labels = {{"cluster_queue", queue}};
  if (!decision.had_quota) {
    families_->reserved_total.add(queue, labels).Increment();
    families_->reserved_wait.add(queue, labels, kWaits).Observe(waited.in_all.as_seconds());
  }
  if (decision.kind != quota::AdmissionDecision::Kind::kAdmit) return;
  families_->admitted_total.add(queue, labels).Increment();
  families_->admitted_wait.add(queue, labels, kWaits).Observe(waited.in_all.as_seconds());
  if (decision.had_quota) families_->checks_wait.add(queue, labels, kWaits).Observe(waited.with_quota.as_seconds());
}

void QueueMetrics::decided(const std::vector<quota::AdmissionDecision>& decisions, const quota::Admission& admission,
                           const WaitedOf& waited) {
  for (const quota::AdmissionDecision& decision : decisions) {
    if (decision.kind != quota::AdmissionDecision::Kind::kEvict) {
      let_in(decision, waited(decision));
      continue;
    }
    constexpr std::string_view kFor = "DeactivatedDueTo";  // Kueue tells that as the cause of another reason
    const bool deactivated = decision.reason.starts_with(kFor);
    families_->evicted_total
        .add(decision.cluster_queue, {{"cluster_queue", decision.cluster_queue},
                                      {"reason", deactivated ? "Deactivated" : decision.reason},
                                      {"underlying_cause", deactivated ? decision.reason.substr(kFor.size()) : ""}})
        .Increment();
    if (!decision.preemptor.valid()) continue;
    const std::string& by = admission.status(decision.preemptor).cluster_queue;
    families_->preempted_total.add(by, {{"preempting_cluster_queue", by}, {"reason", decision.preemption}}).Increment();
  }
}

void QueueMetrics::show_budget(const quota::Spending::Queue& queue, const model::Budget& budget,
                               const quota::Spending& spending, Time now) {
  const std::optional<model::Spent> spent = spending.spent(queue, now);
  if (!spent) return;
  const auto show = [&](const char* unit, const std::optional<int64_t>& limit, int64_t amount) {
    if (!limit) return;
    const prometheus::Labels labels = {{"namespace", queue.first}, {"queue", queue.second}, {"unit", unit}};
    families_->shown.set(families_->budget, labels, static_cast<double>(*limit) / 1e6);
    families_->shown.set(families_->spent, labels, static_cast<double>(amount) / 1e6);
  };
  show("gpu-hours", budget.gpu_time, spent->gpu_time);
  show("dollars", budget.cost, spent->cost);
}

void QueueMetrics::show(const quota::Admission& admission, const quota::QueueOverview& overview, Time now) {
  Families& all = *families_;
  all.shown.begin();
  for (const auto& [name, queue] : admission.cluster_queues())
    show_budget({"", name}, queue.budget, admission.spending(), now);
  for (const auto& [key, queue] : admission.local_queues()) show_budget(key, queue.budget, admission.spending(), now);
  const auto counts = [&](Family<Gauge>& pending, prometheus::Labels labels, const quota::QueueCounts& of) {
    labels["status"] = "active";
    all.shown.set(pending, labels, of.pending - of.inadmissible);
    labels["status"] = "inadmissible";
    all.shown.set(pending, labels, of.inadmissible);
  };
  for (const auto& [name, queue] : admission.cluster_queues()) {
    const quota::QueueStatus status = admission.queue_status(name, overview);
    const quota::QueueCounts& of = overview.of(name);
    const prometheus::Labels labels = {{"cluster_queue", name}};
    counts(all.pending, labels, of);
    all.shown.set(all.reserving, labels, of.reserving);
    all.shown.set(all.admitted, labels, of.admitted);
    for (const char* state : {"pending", "active"})
      all.shown.set(all.status, {{"cluster_queue", name}, {"status", state}},
                    status.active == (std::string_view(state) == "active") ? 1 : 0);
    if (status.share)
      all.shown.set(all.share, {{"cluster_queue", name}, {"cohort", queue.cohort}}, of_share(*status.share));
    const auto of_flavor = [&, name = name, cohort = queue.cohort](const std::string& flavor,
                                                                   const std::string& resource) {
      return prometheus::Labels{
          {"cohort", cohort}, {"cluster_queue", name}, {"flavor", flavor}, {"resource", resource}};
    };
    for (const auto& held : status.held) {
      all.shown.set(all.reservation, of_flavor(held.flavor, held.resource), of_resource(held.resource, held.total));
      all.shown.set(all.usage, of_flavor(held.flavor, held.resource), of_resource(held.resource, held.used));
    }
    for (const model::ResourceGroup& group : queue.groups)
      for (const model::FlavorQuotas& flavor : group.flavors)
        for (const auto& [resource, quota] : flavor.resources) {
          const prometheus::Labels series = of_flavor(flavor.flavor, resource);
          all.shown.set(all.nominal, series, of_resource(resource, quota.nominal));
          if (quota.borrowing_limit)
            all.shown.set(all.borrowing, series, of_resource(resource, *quota.borrowing_limit));
          if (quota.lending_limit) all.shown.set(all.lending, series, of_resource(resource, *quota.lending_limit));
        }
  }
  for (const auto& [cohort, share] : overview.cohort_shares)
    all.shown.set(all.cohort_share, {{"cohort", cohort}}, of_share(share));
  for (const auto& [name, local] : overview.local_queues) {
    const prometheus::Labels labels = {{"namespace", name.first}, {"name", name.second}};
    counts(all.local_pending, labels, local);
    all.shown.set(all.local_admitted, labels, local.admitted);
  }
  all.shown.end();
  for (SeriesOfQueues<Counter>* family :
       {&all.reserved_total, &all.admitted_total, &all.evicted_total, &all.preempted_total})
    family->keep_those_of(admission);
  for (SeriesOfQueues<Histogram>* family : {&all.reserved_wait, &all.admitted_wait, &all.checks_wait})
    family->keep_those_of(admission);
}

}  // namespace berth::apps
