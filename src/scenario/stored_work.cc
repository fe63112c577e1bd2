#include "scenario/stored_work.h"

#include <algorithm>
#include <utility>

#include "workloads/kinds.h"
#include "workloads/kueue/queued.h"

namespace berth::scenario {

void StoredWork::see(const api::Object& object, const api::Document& document) {
  const api::ObjectMeta& metadata = api::metadata_of(object);
  any_local_queue_ |= std::holds_alternative<api::LocalQueue>(object);
  if (metadata.uid.empty()) return;
  if (std::holds_alternative<api::Job>(object)) jobs_.insert(metadata.uid);
  const auto* workload = std::get_if<api::Workload>(&object);
  if (workload == nullptr || workload->pod_sets.empty()) return;
  auto seen = queueing::decode_workload(document.json);
  if (!seen) return;
  seen->workload = *workload;  // of either version
  const auto stored = std::make_shared<const queueing::SeenWorkload>(std::move(*seen));
  by_uid_[metadata.uid] = stored;
  if (const api::OwnerReference* owner = metadata.controller(); owner != nullptr) by_owner_[owner->uid] = stored;
}

StoredWork::Stored StoredWork::of(const api::Object& object) const {
  const bool is_job = std::holds_alternative<api::Job>(object);
  if (!any_local_queue_ || (!is_job && !std::holds_alternative<api::Workload>(object))) return nullptr;
  const std::map<std::string, Stored>& known = is_job ? by_owner_ : by_uid_;
  const auto at = known.find(api::metadata_of(object).uid);
  if (at == known.end()) return nullptr;
  if (!is_job) return at->second;
  auto of_job = std::make_shared<queueing::SeenWorkload>(*at->second);
  workloads::declare_runtime(std::get<api::Job>(object), of_job->workload);
  return of_job;
}

bool StoredWork::comes_with_its_job(const api::Object& workload) const {
  const api::OwnerReference* owner = api::metadata_of(workload).controller();
  return any_local_queue_ && std::holds_alternative<api::Workload>(workload) && owner != nullptr &&
         jobs_.contains(owner->uid);
}

void sort_by_creation(std::vector<Manifest>& manifests) {
  std::vector<size_t> places;
  std::vector<Manifest> work;
  for (size_t i = 0; i < manifests.size(); ++i) {
    const api::Object& object = manifests[i].object;
    const api::ObjectMeta& metadata = api::metadata_of(object);
    const bool is_work = workloads::find_kind(object) != nullptr || std::holds_alternative<api::Pod>(object) ||
                         std::holds_alternative<api::Workload>(object);
    if (!is_work || metadata.uid.empty() || !metadata.created) continue;
    places.push_back(i);
    work.push_back(std::move(manifests[i]));
  }
  std::ranges::stable_sort(work, {}, [](const Manifest& one) { return *api::metadata_of(one.object).created; });
  for (size_t i = 0; i < places.size(); ++i) manifests[places[i]] = std::move(work[i]);
}

}  // namespace berth::scenario
