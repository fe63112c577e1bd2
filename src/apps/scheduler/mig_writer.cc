#include "apps/scheduler/mig_writer.h"

#include <algorithm>
#include <utility>

#include "api/patch.h"
#include "bridge/mig.h"

namespace berth::apps {
namespace {

using Kind = MigOutcome::Kind;
using State = bridge::MigDesired::State;

constexpr Duration kAgainMin = Duration::millis(500);  // a watch is slower than an answer
constexpr Duration kAgainMax = Duration::seconds(15);

// 401: a token is being renewed. 409: the node is another by now, which its watch will show.
bool is_refusal(const Error& error) {
  const int status = error.http_status;
  return io::surely_not_applied(error) && status >= 400 && status != 401 && status != 409 && status != 429;
}

// The first write of a change. The MIG manager's word on an earlier one goes, so that what it says next is of this.
std::string begin_json(const bridge::MigDesired& desired, const NodeMig& mig, const std::string& version) {
  api::NodePatch patch{version, {{std::string(bridge::kMigDesiredAnnotation), mig_desired_json(desired)}}, {}};
  if (!desired.config.empty()) {
    const bool stands = mig.config == desired.config;
    patch.labels.emplace_back(bridge::kMigConfig, stands ? std::nullopt : std::optional(desired.config));
    patch.labels.emplace_back(bridge::kMigConfigState, std::nullopt);
  }
  return api::node_patch_json(patch);
}

}  // namespace

void MigWriter::seen(const std::string& node, NodeMig mig) {
  seen_[node] = std::move(mig);
  fresh_.insert(node);
}

void MigWriter::gone(const std::string& node) {
  seen_.erase(node);
  fresh_.erase(node);
  changes_.erase(node);
}

std::vector<std::string> MigWriter::nodes() const {
  std::vector<std::string> out;
  for (const auto& [node, mig] : seen_) out.push_back(node);
  return out;
}

const NodeMig* MigWriter::find(const std::string& node) const {
  const auto at = seen_.find(node);
  return at == seen_.end() ? nullptr : &at->second;
}

void MigWriter::begin(const std::string& node, bridge::MigDesired desired) {
  Change change;
  change.desired = std::move(desired);
  change.version = seen_.at(node).resource_version;
  changes_.insert_or_assign(node, std::move(change));
}

void MigWriter::end(const std::string& node, State how, const std::string& reason, Time until_wall, int failures) {
  const auto at = changes_.find(node);
  if (at == changes_.end() || at->second.over) return;
  Change& change = at->second;
  if (!change.stored) return void(changes_.erase(at));
  change.over = true;
  change.desired.state = how;
  change.desired.reason = reason;
  change.desired.until = until_wall;
  change.desired.failures = failures;
  change.again = {};
}

const bridge::MigDesired* MigWriter::change(const std::string& node) const {
  const auto at = changes_.find(node);
  return at == changes_.end() || at->second.over ? nullptr : &at->second.desired;
}

std::vector<std::string> MigWriter::changing() const {
  std::vector<std::string> out;
  for (const auto& [node, change] : changes_)
    if (!change.over) out.push_back(node);
  return out;
}

void MigWriter::handle(const NodePatched& answer, Time now) {
  const auto at = changes_.find(answer.node);
  if (at == changes_.end() || at->second.attempt != answer.attempt) return;
  Change& change = at->second;
  change.attempt = 0;
  change.error = answer.error;
  if (answer.applied) change.stored = true;
  else if (answer.refused && !change.stored) change.refused = true;
  change.again = now + std::max(answer.applied ? kAgainMin : change.backoff, answer.wait);
}

void MigWriter::send(const std::string& node, Change& change, const std::string& body, Time now) {
  change.attempt = ++attempts_;
  change.backoff = std::clamp(change.backoff * 2, kAgainMin, kAgainMax);
  change.again = now + change.backoff;
  const auto done = [post = hooks_.post, node, attempt = change.attempt](const Result<std::string>& answer) {
    if (answer) return post({node, attempt, true, false, ""});
    const Error& error = answer.error();
    post({node, attempt, false, is_refusal(error), error.message, kube::retry_after(error)});
  };
  client_.patch(kube::kNodes.object("", node), kube::PatchType::kMerge, body, done,
                {.timeout = timeout_, .may_start = hooks_.may_send});
}

std::vector<MigOutcome> MigWriter::tick(Time now) {
  std::vector<MigOutcome> out;
  for (auto at = changes_.begin(); at != changes_.end();) {
    const std::string node = at->first;
    auto& change = at->second;
    std::optional<MigOutcome> outcome;
    bool done = false;
    if (change.over) done = look_at_end(node, change, now);
    else outcome = look_at(node, change, now);
    if (outcome) {
      done = outcome->kind == Kind::kWithdrawn || outcome->kind == Kind::kRefused;
      out.push_back(std::move(*outcome));
    }
    if (done) fresh_.insert(node);  // it may carry another's change
    at = done ? changes_.erase(at) : std::next(at);
  }
  for (const std::string& node : std::exchange(fresh_, {})) {
    const NodeMig& mig = seen_.at(node);
    if (!mig.desired || mig.desired->state != State::kWanted || changes_.contains(node)) continue;
    Change change;
    change.desired = *mig.desired;
    change.stored = change.shown = true;
    changes_.emplace(node, std::move(change));
    out.push_back({Kind::kAdopted, node, "", mig.desired});
  }
  wakeup_.reset();
  for (const auto& [node, change] : changes_)
    if (change.attempt == 0 && change.again > now) wakeup_ = std::min(wakeup_.value_or(change.again), change.again);
  return out;
}

std::optional<MigOutcome> MigWriter::look_at(const std::string& node, Change& change, Time now) {
  const NodeMig& mig = seen_.at(node);
  const bool stands = mig.desired && mig.desired->id == change.desired.id;
  if (stands) change.stored = change.shown = true;
  if (change.refused) return MigOutcome{Kind::kRefused, node, change.error};
  if (change.stored && !change.shown) return std::nullopt;  // the watch is behind
  if (change.stored && !stands) return MigOutcome{Kind::kWithdrawn, node, "its annotation was taken away"};
  if (change.stored) return look_at_cutting(node, change, now);
  if (change.attempt != 0) return std::nullopt;
  if (mig.resource_version != change.version) return MigOutcome{Kind::kWithdrawn, node, "the node has changed"};
  if (now >= change.again) send(node, change, begin_json(change.desired, mig, change.version), now);
  return std::nullopt;
}

// What whoever cuts says, of a change that stands on the node.
std::optional<MigOutcome> MigWriter::look_at_cutting(const std::string& node, Change& change, Time now) {
  const NodeMig& mig = seen_.at(node);
  if (mig.failed.starts_with(change.desired.id + " "))
    return MigOutcome{Kind::kFailed, node, mig.failed.substr(change.desired.id.size() + 1)};
  if (change.desired.config.empty()) return std::nullopt;
  if (mig.config.empty()) {
    if (change.attempt == 0 && now >= change.again)
      send(node, change,
           api::node_patch_json({mig.resource_version, {}, {{std::string(bridge::kMigConfig), change.desired.config}}}),
           now);
    return std::nullopt;
  }
  if (mig.config != change.desired.config)
    return MigOutcome{Kind::kFailed, node, "somebody else has set its label nvidia.com/mig.config to " + mig.config};
  if (mig.state == "failed")
    return MigOutcome{Kind::kFailed, node, "NVIDIA's MIG manager could not apply " + mig.config};
  return std::nullopt;
}

// True once the node says that the change is over, or another is there.
bool MigWriter::look_at_end(const std::string& node, Change& change, Time now) {
  const NodeMig& mig = seen_.at(node);
  const bool stands = mig.desired && mig.desired->id == change.desired.id;
  change.shown |= stands;
  if (stands ? mig.desired->state == change.desired.state : change.shown) return true;
  if (change.attempt == 0 && now >= change.again)
    send(node, change,
         api::node_patch_json({mig.resource_version,
                               {{std::string(bridge::kMigDesiredAnnotation), mig_desired_json(change.desired)}},
                               {}}),
         now);
  return false;
}

}  // namespace berth::apps
