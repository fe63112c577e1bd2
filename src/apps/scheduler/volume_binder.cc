#include "apps/scheduler/volume_binder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/patch.h"

namespace berth::apps {
namespace {

constexpr Duration kAgain = Duration::seconds(1);

// All that does not say that the object is gone or has changed (404, 409, 422) or that we may not touch it (403).
bool may_pass(const Error& error) {
  const int status = error.http_status;
  return status == 0 || status == 401 || status == 429 || status >= 500;
}

}  // namespace

VolumeBinder::VolumeBinder(const engine::Engine& engine, kube::Client& client, Duration timeout, Duration call_timeout,
                           Hooks hooks)
    : engine_(engine), client_(client), timeout_(timeout), call_timeout_(call_timeout), hooks_(std::move(hooks)) {}

void VolumeBinder::begin(const engine::Decision& decision, const std::map<std::string, std::string>& versions,
                         Time now) {
  Pod pod{decision, {}, now + timeout_, ++attempts_, ""};
  for (const engine::VolumeBinding& binding : decision.volumes) {
    const auto version = versions.find(binding.volume);
    pod.claims.push_back({binding, version == versions.end() ? "" : version->second, false, false, false, now});
  }
  pods_.insert_or_assign(decision.pod_uid, std::move(pod));
  tick(now);
}

void VolumeBinder::handle(const ClaimPatched& answer, Time now) {
  const auto at = pods_.find(answer.pod_uid);
  if (at == pods_.end() || at->second.attempt != answer.attempt) return;
  for (Claim& claim : at->second.claims) {
    if (claim.binding.claim != answer.claim) continue;
    claim.sent = false;
    claim.asked = answer.applied;
    claim.again = std::max(claim.again, now + answer.wait);
    if (!answer.applied && !answer.passing) at->second.error = answer.error;
  }
}

void VolumeBinder::tick(Time now) {
  std::vector<std::pair<engine::Decision, std::string>> ended;
  for (auto at = pods_.begin(); at != pods_.end();) {
    Pod& pod = at->second;
    const engine::PodSlot slot = engine_.state().find_pod(at->first);
    if (!slot.valid() || engine_.state().pod(slot).phase != engine::PodPhase::kPreBinding) {
      at = pods_.erase(at);  // deleted, or bound by someone else
      continue;
    }
    std::string error = pod.error;
    if (engine_.state().pod(slot).pod.terminating) error = "the pod is being deleted";
    bool bound = true;
    for (Claim& claim : pod.claims) {
      if (!error.empty()) break;
      const bool done = look_at(pod, claim, error);
      bound &= done;
      if (done || claim.asked || claim.sent || now < claim.again || !error.empty()) continue;
      claim.again = now + kAgain;
      send(pod, claim);
    }
    if (error.empty() && !bound && now >= pod.deadline) error = "context deadline exceeded";
    if (error.empty() && !bound) {
      ++at;
      continue;
    }
    ended.emplace_back(std::move(pod.decision), std::move(error));
    at = pods_.erase(at);
  }
  for (const auto& [decision, error] : ended) {
    if (error.empty()) hooks_.bound(decision);
    else hooks_.failed(decision, error);
  }
}

bool VolumeBinder::look_at(const Pod& pod, Claim& claim, std::string& error) const {
  const auto& claims = engine_.state().volumes().claims();
  const auto at = claims.find(pod.decision.namespace_name + "/" + claim.binding.claim);
  if (at == claims.end() || !at->second->object || at->second->object->uid != claim.binding.claim_uid) {
    error = fmt::format("persistentvolumeclaim \"{}\" not found", claim.binding.claim);
    return false;
  }
  const model::VolumeClaim& object = *at->second->object;
  if (object.bound()) {
    if (!claim.binding.volume.empty() && object.volume_name != claim.binding.volume)
      error = fmt::format("PVC \"{}\" is bound to another volume, \"{}\"", claim.binding.claim, object.volume_name);
    const model::Volume* volume = engine_.state().volumes().volume(object.volume_name);
    if (volume == nullptr) return false;  // its watch is behind
    const engine::NodeSlot node = engine_.state().find_node(pod.decision.node_name);
    if (!node.valid()) error = fmt::format("node \"{}\" not found", pod.decision.node_name);
    else if (!volume->reachable_from(engine_.state().node(node).node.labels))
      error = fmt::format("pv \"{}\" node affinity doesn't match node \"{}\"", volume->name, pod.decision.node_name);
    return error.empty();
  }
  if (!claim.binding.volume.empty()) {
    const model::Volume* volume = engine_.state().volumes().volume(claim.binding.volume);
    if (volume == nullptr) error = fmt::format("persistentvolume \"{}\" not found", claim.binding.volume);
    else if (volume->claim && !volume->reserved_for(object))
      error = fmt::format("persistentvolume \"{}\" was taken by {}", volume->name, volume->claim->claim);
    else claim.asked |= volume->claim.has_value();
    return false;
  }
  if (object.selected_node == pod.decision.node_name) claim.selected = claim.asked = true;
  else if (claim.selected || !object.selected_node.empty())
    error = fmt::format("provisioning failed for PVC \"{}\"", claim.binding.claim);
  return false;
}

void VolumeBinder::send(const Pod& pod, Claim& claim) {
  claim.sent = true;
  const auto done = [post = hooks_.post, uid = pod.decision.pod_uid, name = claim.binding.claim,
                     attempt = pod.attempt](const Result<std::string>& answer) {
    if (answer) return post({uid, name, attempt, true, false, ""});
    const Error& error = answer.error();
    post({uid, name, attempt, false, may_pass(error), error.message, kube::retry_after(error)});
  };
  const kube::CallOptions options{.timeout = call_timeout_, .may_start = hooks_.may_send};
  const std::string& name_space = pod.decision.namespace_name;
  if (claim.binding.volume.empty())
    return client_.patch(kube::kPersistentVolumeClaims.object(name_space, claim.binding.claim), kube::PatchType::kMerge,
                         api::selected_node_patch_json(claim.binding.claim_uid, pod.decision.node_name), done, options);
  client_.patch(
      kube::kPersistentVolumes.object("", claim.binding.volume), kube::PatchType::kMerge,
      api::claim_reference_patch_json(claim.volume_version, name_space, claim.binding.claim, claim.binding.claim_uid),
      done, options);
}

}  // namespace berth::apps
