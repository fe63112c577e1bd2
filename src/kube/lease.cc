#include "kube/lease.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "kube/answer.h"

namespace berth::kube {
namespace {

using nlohmann::json;

// client-go's JitterFactor: waits are drawn from [period, 1.2 × period).
constexpr int64_t kJitterPercent = 20;

using api::Field;
using api::Reader;

constexpr Field<LeaseObject> kMetadata[] = {
    {"resourceVersion", [](const Reader& r, LeaseObject& lease) { r.read(lease.resource_version); }}};
constexpr Field<LeaseObject> kSpec[] = {
    {"holderIdentity", [](const Reader& r, LeaseObject& lease) { r.read(lease.record.holder); }},
    {"leaseDurationSeconds", [](const Reader& r, LeaseObject& lease) { r.read(lease.record.duration_s); }},
    {"acquireTime", [](const Reader& r, LeaseObject& lease) { r.read(lease.record.acquired); }},
    {"renewTime", [](const Reader& r, LeaseObject& lease) { r.read(lease.record.renewed); }},
    {"leaseTransitions", [](const Reader& r, LeaseObject& lease) { r.read(lease.record.transitions); }}};
constexpr Field<LeaseObject> kLease[] = {
    {"metadata", [](const Reader& r, LeaseObject& lease) { read_object(r, kMetadata, lease); }},
    {"spec", [](const Reader& r, LeaseObject& lease) { read_object(r, kSpec, lease); }}};

// The member, made an object where it is none.
json& object_at(json& object, const char* key) {
  json& member = object[key];
  if (!member.is_object()) member = json::object();
  return member;
}

}  // namespace

Result<LeaseObject> decode_lease(std::string_view text) {
  BERTH_TRY(lease, read_answer(text, "Lease", kLease));
  lease.json = text;
  return lease;
}

std::string encode_lease(const LeaseOptions& options, const LeaseRecord& record, const LeaseObject* base) {
  json object = base != nullptr ? json::parse(base->json, nullptr, false) : json::object();
  if (!object.is_object()) object = json::object();
  object["apiVersion"] = "coordination.k8s.io/v1";
  object["kind"] = "Lease";
  json& metadata = object_at(object, "metadata");
  metadata["name"] = options.name;
  metadata["namespace"] = options.name_space;
  json& spec = object_at(object, "spec");
  spec["holderIdentity"] = record.holder;
  spec["leaseDurationSeconds"] = record.duration_s;
  spec["acquireTime"] = format_rfc3339_micro(record.acquired);
  spec["renewTime"] = format_rfc3339_micro(record.renewed);
  spec["leaseTransitions"] = record.transitions;
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

LeaseElector::LeaseElector(const LeaseOptions& options) : options_(options), rng_(options.seed) {
  check(!options_.identity.empty(), "a candidate of an election needs an identity");
  check(options_.renew_deadline < options_.lease_duration, "the renew deadline must be shorter than the lease");
}

Duration LeaseElector::jittered(Duration period) {
  return period + Duration{rng_.between(0, period.nanos * kJitterPercent / 100)};
}

// As client-go: the record counts as valid for our lease_duration from when we saw it change.
bool LeaseElector::held_by_other(Time mono) const {
  return observed_ && !observed_->record.holder.empty() && observed_->record.holder != options_.identity &&
         mono < observed_at_ + options_.lease_duration;
}

LeaseStep LeaseElector::next(Time mono, Time wall) {
  expire(mono);
  if (mono < wait_until_) return {.kind = LeaseStep::Kind::kWait, .wait_until = wait_until_};
  if (must_read_) return {.kind = LeaseStep::Kind::kRead};
  if (!missing_ && held_by_other(mono)) {
    must_read_ = true;
    wait_until_ = mono + jittered(options_.retry_period);
    return {.kind = LeaseStep::Kind::kWait, .wait_until = wait_until_};
  }
  LeaseRecord record{.holder = options_.identity,
                     .duration_s = static_cast<int32_t>(options_.lease_duration.nanos / 1'000'000'000),
                     .acquired = wall,
                     .renewed = wall,
                     .transitions = 0};
  if (missing_) return {.kind = LeaseStep::Kind::kCreate, .record = record};
  const LeaseRecord& old = observed_->record;
  const bool ours = old.holder == options_.identity;
  if (ours) record.acquired = old.acquired;
  record.transitions = old.transitions;
  if (!ours && old.transitions < std::numeric_limits<int32_t>::max()) ++record.transitions;
  return {.kind = LeaseStep::Kind::kUpdate, .record = record};
}

void LeaseElector::observe(LeaseObject lease, Time mono) {
  if (!observed_ || !(observed_->record == lease.record)) observed_at_ = mono;
  observed_ = std::move(lease);
  missing_ = false;
  if (leading_ && observed_->record.holder != options_.identity) leading_ = false;
}

void LeaseElector::on_read(Result<LeaseObject> lease, Time mono) {
  if (lease) {
    observe(std::move(*lease), mono);
    must_read_ = false;
    return;
  }
  if (lease.error().code == ErrorCode::kNotFound) {
    missing_ = true;
    observed_.reset();
    must_read_ = false;
    return;
  }
  wait_until_ = mono + jittered(options_.retry_period);
}

void LeaseElector::on_written(Result<LeaseObject> lease, Time sent, Time now) {
  wait_until_ = now + (leading_ ? options_.retry_period : jittered(options_.retry_period));
  if (!lease) {
    // Lost a race, or do not know: read before the next write. Whether we still lead is the deadline's affair.
    must_read_ = true;
    missing_ = false;
    return;
  }
  observe(std::move(*lease), now);
  must_read_ = false;
  if (observed_->record.holder != options_.identity) return;
  deadline_ = sent + options_.renew_deadline;
  leading_ = now < deadline_;
  if (leading_) wait_until_ = std::max(now, sent + options_.retry_period);
}

bool LeaseElector::expire(Time mono) {
  if (!leading_ || mono < deadline_) return false;
  leading_ = false;
  must_read_ = true;
  return true;
}

std::optional<LeaseRecord> LeaseElector::release(Time wall) {
  const bool ours = leading_ && observed_ && observed_->record.holder == options_.identity;
  leading_ = false;
  if (!ours) return std::nullopt;
  return LeaseRecord{
      .holder = "", .duration_s = 1, .acquired = wall, .renewed = wall, .transitions = observed_->record.transitions};
}

// Drives the elector on the transport's thread. `deadline_` is what other threads see of it.
class LeaderElection::Loop : public std::enable_shared_from_this<Loop> {
 public:
  Loop(Client& client, LeaseOptions options, LeaseCallbacks callbacks)
      : client_(client), options_(std::move(options)), callbacks_(std::move(callbacks)), elector_(options_) {}

  void start() { later(Duration{}); }

  void stop() {
    const std::lock_guard lock(gate_);
    stopped_ = true;
    deadline_ = 0;
  }

  bool release(Duration limit) {
    const auto self = shared_from_this();
    client_.transport().run_after(Duration{}, [self, limit] { self->begin_release(limit); });
    std::unique_lock lock(released_mutex_);
    released_cv_.wait_for(lock, std::chrono::nanoseconds(limit.nanos), [&] { return released_ != Released::kPending; });
    return released_ == Released::kFree;
  }

  bool may_act(Time mono_now, Duration margin) const { return mono_now + margin < Time{deadline_.load()}; }
  Time deadline() const { return {deadline_.load()}; }
  bool in_touch(Time mono_now) const {
    return touched_ && mono_now - Time{touched_at_.load()} <= options_.lease_duration;
  }

 private:
  enum class Released { kPending, kFree, kUnknown };

  Time mono() const { return client_.transport().clock().monotonic(); }
  Time wall() const { return client_.transport().clock().wall(); }
  std::string path() const { return kLeases.object(options_.name_space, options_.name); }

  void later(Duration delay) {
    client_.transport().run_after(delay, [self = shared_from_this()] { self->turn(); });
  }

  void turn() {
    const std::lock_guard lock(gate_);
    if (stopped_ || releasing_) return;
    publish("the lease could not be renewed in time");
    const LeaseStep step = elector_.next(mono(), wall());
    switch (step.kind) {
      case LeaseStep::Kind::kWait: return later(std::max(Duration{}, step.wait_until - mono()));
      case LeaseStep::Kind::kRead: return read();
      case LeaseStep::Kind::kCreate: return write(step.record, nullptr);
      case LeaseStep::Kind::kUpdate: return write(step.record, &*elector_.observed());
    }
  }

  // Half the deadline, as client-go: one lost answer leaves time for another try.
  CallOptions call_options() const {
    CallOptions options;
    options.timeout = std::max(Duration::seconds(1), Duration{options_.renew_deadline.nanos / 2});
    return options;
  }

  void read() {
    client_.get(
        path(),
        [self = shared_from_this()](Result<std::string> body) {
          const std::lock_guard lock(self->gate_);
          if (self->stopped_ || self->releasing_) return;
          Result<LeaseObject> lease = body ? decode_lease(*body) : fail(body.error());
          if (lease) self->touched();
          else if (lease.error().code != ErrorCode::kNotFound) self->report(lease.error());
          self->elector_.on_read(std::move(lease), self->mono());
          self->publish("another holds the lease");
          self->later(Duration{});
        },
        call_options());
  }

  void write(const LeaseRecord& record, const LeaseObject* base) {
    const Time sent = mono();
    auto done = [self = shared_from_this(), sent](Result<std::string> body) {
      const std::lock_guard lock(self->gate_);
      if (self->stopped_) return;
      Result<LeaseObject> lease = body ? decode_lease(*body) : fail(body.error());
      if (lease) self->touched();
      else self->report(lease.error());
      if (self->releasing_) {
        self->elector_.on_written(std::move(lease), sent, self->mono());
        return self->write_release();
      }
      self->elector_.on_written(std::move(lease), sent, self->mono());
      self->writing_ = false;
      self->publish("another holds the lease");
      self->later(Duration{});
    };
    writing_ = true;
    std::string body = encode_lease(options_, record, base);
    if (base == nullptr) {
      client_.create(kLeases.collection(options_.name_space), std::move(body), std::move(done), call_options());
    } else {
      client_.update(path(), std::move(body), std::move(done), call_options());
    }
    arm_deadline();
  }

  // Someone must notice the deadline even while an answer is outstanding.
  void arm_deadline() {
    const Time deadline = elector_.deadline();
    if (deadline == Time{} || deadline == armed_) return;
    armed_ = deadline;
    client_.transport().run_after(deadline - mono(), [self = shared_from_this()] {
      const std::lock_guard lock(self->gate_);
      if (!self->stopped_ && !self->releasing_) self->publish("the lease could not be renewed in time");
    });
  }

  void touched() {
    touched_at_ = mono().nanos;
    touched_ = true;
    if (callbacks_.on_answer) callbacks_.on_answer();
  }

  void report(const Error& error) {
    if (callbacks_.on_error) callbacks_.on_error(error);
  }

  // Makes the elector's state visible and tells of its changes. The fence falls before on_stopped and rises before
  // on_started.
  void publish(std::string_view why_stopped) {
    elector_.expire(mono());
    const bool leads = elector_.leading(mono());
    deadline_ = leads ? elector_.deadline().nanos : 0;
    if (leads != led_) {
      led_ = leads;
      if (leads && callbacks_.on_started) callbacks_.on_started();
      if (!leads && callbacks_.on_stopped) callbacks_.on_stopped(std::string(why_stopped));
    }
    const std::string holder = elector_.observed() ? elector_.observed()->record.holder : "";
    if (holder != holder_) {
      holder_ = holder;
      if (callbacks_.on_new_leader) callbacks_.on_new_leader(holder);
    }
  }

  void begin_release(Duration limit) {
    const std::lock_guard lock(gate_);
    if (stopped_ || releasing_) return finish_release(false);
    releasing_ = true;
    release_until_ = mono() + limit;
    deadline_ = 0;
    if (std::exchange(led_, false) && callbacks_.on_stopped) callbacks_.on_stopped("shutting down");
    if (!writing_) write_release();  // else once the renewal under way has its answer, and with it the version
  }

  void write_release() {
    const std::optional<LeaseRecord> record = elector_.release(wall());
    const std::optional<LeaseObject>& seen = elector_.observed();
    if (!record) return finish_release(!seen || seen->record.holder != options_.identity);
    CallOptions options;
    options.timeout = release_until_ - mono();
    client_.update(
        path(), encode_lease(options_, *record, &*elector_.observed()),
        [self = shared_from_this()](const Result<std::string>& body) { self->finish_release(body.has_value()); },
        options);
  }

  void finish_release(bool free) {
    const std::lock_guard lock(released_mutex_);
    released_ = free ? Released::kFree : Released::kUnknown;
    released_cv_.notify_all();
  }

  Client& client_;
  const LeaseOptions options_;
  const LeaseCallbacks callbacks_;
  std::recursive_mutex gate_;  // held for each turn; recursive since a callback may stop the election
  LeaseElector elector_;
  bool stopped_ = false, releasing_ = false, writing_ = false, led_ = false;
  Time armed_{}, release_until_{};
  std::string holder_;
  std::atomic<int64_t> deadline_{0};
  std::atomic<int64_t> touched_at_{0};  // meaningful once touched_
  std::atomic<bool> touched_{false};

  std::mutex released_mutex_;
  std::condition_variable released_cv_;
  Released released_ = Released::kPending;
};

LeaderElection::LeaderElection(Client& client, LeaseOptions options, LeaseCallbacks callbacks)
    : loop_(std::make_shared<Loop>(client, std::move(options), std::move(callbacks))) {}
LeaderElection::~LeaderElection() { loop_->stop(); }
void LeaderElection::start() { loop_->start(); }
bool LeaderElection::release(Duration limit) { return loop_->release(limit); }
bool LeaderElection::may_act(Time mono_now, Duration margin) const { return loop_->may_act(mono_now, margin); }
Time LeaderElection::deadline_mono() const { return loop_->deadline(); }
bool LeaderElection::in_touch(Time mono_now) const { return loop_->in_touch(mono_now); }

}  // namespace berth::kube
