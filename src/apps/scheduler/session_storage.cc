// Session's part for volumes: what the storage watches bring, and pods whose claims are bound before they are.
#include <fmt/format.h>

#include <algorithm>

#include "apps/scheduler/log.h"
#include "apps/scheduler/session.h"

namespace berth::apps {

using model::StorageKind;

// Every kind has been listed, or may not be.
bool Session::storage_listed() {
  if (storage_listed_.size() >= std::variant_size_v<model::StorageObject>) return true;
  for (const StorageKind kind : storage_->refused()) {
    if (!storage_listed_.insert(kind).second) continue;
    cycle_due_ = true;  // nothing else may come that would begin one
    log_error("storage cannot be read: pods with volumes will wait; deploy/rbac.yaml lists what is needed",
              {{"resource", std::string(plural_of(kind))}});
  }
  return storage_listed_.size() >= std::variant_size_v<model::StorageObject>;
}

void Session::handle(StorageUpdates& batch) {
  const std::string_view kind = kind_of(batch.kind);
  for (auto& update : batch.updates) {
    if (auto* list = std::get_if<kube::ListReplaced<SeenStorage>>(&update)) {
      doubtful_ = doubtful_ || list->went_back;
      engine::StorageReplaced all{batch.kind, {}};
      set_aside_.clear(kind);
      if (batch.kind == StorageKind::kVolume) volume_versions_.clear();
      for (SeenStorage& seen : list->objects) {
        remember_version(seen);
        all.objects.push_back(std::move(seen.object));
      }
      engine_.apply(all);
      storage_listed_.insert(batch.kind);
    } else if (auto* upserted = std::get_if<kube::Upserted<SeenStorage>>(&update)) {
      set_aside_.remove(kind, "", model::key_of(upserted->object.object));
      remember_version(upserted->object);
      engine_.apply(engine::StorageUpserted{std::move(upserted->object.object)});
    } else if (auto* deleted = std::get_if<kube::Deleted<SeenStorage>>(&update)) {
      forget_storage(batch.kind, model::key_of(deleted->object.object));
    } else if (auto* malformed = std::get_if<kube::Malformed>(&update)) {
      forget_storage(batch.kind,
                     malformed->name_space.empty() ? malformed->name : malformed->name_space + "/" + malformed->name);
      if (!malformed->deleted) quarantine(std::string(kind).c_str(), *malformed);
    }
  }
}

void Session::remember_version(const SeenStorage& seen) {
  if (const auto* volume = std::get_if<model::Volume>(&seen.object))
    volume_versions_[volume->name] = seen.resource_version;
}

void Session::forget_storage(StorageKind kind, const std::string& key) {
  if (kind == StorageKind::kVolume) volume_versions_.erase(key);
  set_aside_.remove(kind_of(kind), "", key);
  engine_.apply(engine::StorageDeleted{kind, key});
}

VolumeBinder::Hooks Session::volume_hooks() {
  return {.post = [this](ClaimPatched answer) { inbox_.push(std::move(answer)); },
          .may_send = options_.may_bind,
          .bound = [this](const engine::Decision& decision) { send_bind(decision); },
          .failed = [this](const engine::Decision& decision, const std::string& why) { give_up(decision, why); }};
}

// The claims of a placed pod could not be bound: what kube-scheduler says of it, and the pod is tried again.
void Session::give_up(const engine::Decision& decision, const std::string& why) {
  const std::string note = "running PreBind plugin \"VolumeBinding\": binding volumes: " + why;
  log_warn("the volumes of a pod could not be bound; it backs off",
           {{"pod", decision.namespace_name + "/" + decision.pod_name}, {"error", why}});
  tell_error(decision, note);
  options_.metrics->outcome("error");
  engine_.apply(engine::BindProgress{decision.pod_uid, engine::BindOutcome::kFailed});
  cycle_due_ = true;
}

}  // namespace berth::apps
