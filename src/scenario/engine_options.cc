#include "scenario/engine_options.h"

#include <fmt/format.h>

#include <map>
#include <string>

#include "model/quantity.h"

namespace berth::scenario {
namespace {

using engine::ReservationOptions;
using engine::SetPackingOptions;

void read_work(const api::Reader& reader, int64_t& out) {
  int32_t work = 0;
  if (!reader.read(work)) return;
  if (work < 1)
    return reader.problem(fmt::format("{} is less than 1; `enabled: false` turns packing as a set off", work));
  out = work;
}

constexpr api::Field<SetPackingOptions> kSetPacking[] = {
    {"enabled", [](const api::Reader& r, SetPackingOptions& o) { r.read(o.enabled); }},
    {"headBound", [](const api::Reader& r, SetPackingOptions& o) { read_duration(r, o.head_bound); }},
    {"maxWork", [](const api::Reader& r, SetPackingOptions& o) { read_work(r, o.work_max); }},
};

constexpr api::Field<ReservationOptions> kReservations[] = {
    {"enabled", [](const api::Reader& r, ReservationOptions& o) { r.read(o.enabled); }},
    {"after", [](const api::Reader& r, ReservationOptions& o) { read_duration(r, o.after); }},
    {"perQueue",
     [](const api::Reader& r, ReservationOptions& o) {
       int32_t count = 0;
       if (!r.read(count)) return;
       if (count < 1) r.problem(fmt::format("{} is less than 1; `enabled: false` turns reservations off", count));
       else o.per_queue = count;
     }},
};

// Durations of 0 have a meaning here: "0s".
void read_duration_or_zero(const api::Reader& reader, Duration& out) {
  std::string text;
  const bool is_text = reader.type() == api::JsonType::kString && reader.read(text);
  if (const auto value = parse_duration(text); is_text && value && *value == Duration{}) out = {};
  else read_duration(reader, out);
}

void read_seconds(const api::Reader& reader, Duration& out) {
  int32_t seconds = 0;
  if (!reader.read(seconds)) return;
  if (seconds < 0) return reader.problem(fmt::format("{} is less than 0", seconds));
  out = Duration::seconds(seconds);
}

using quota::WaitForPodsReady;
constexpr api::Field<WaitForPodsReady> kRequeuing[] = {
    {"timestamp",
     [](const api::Reader& r, WaitForPodsReady& o) {
       std::string text;
       if (!r.read(text)) return;
       if (text != "Eviction" && text != "Creation")
         return r.problem(fmt::format("'{}' is neither Eviction nor Creation", text));
       o.timestamp = text == "Eviction" ? quota::RequeuingTimestamp::kEviction : quota::RequeuingTimestamp::kCreation;
     }},
    {"backoffLimitCount",
     [](const api::Reader& r, WaitForPodsReady& o) {
       int32_t count = 0;
       if (r.is_null() || !r.read(count)) return;
       if (count < 0) r.problem(fmt::format("{} is less than 0; null sets no limit", count));
       else o.backoff_limit = count;
     }},
    {"backoffBaseSeconds", [](const api::Reader& r, WaitForPodsReady& o) { read_seconds(r, o.backoff_base); }},
    {"backoffMaxSeconds", [](const api::Reader& r, WaitForPodsReady& o) { read_seconds(r, o.backoff_max); }},
};

constexpr api::Field<WaitForPodsReady> kPodsReady[] = {
    {"enabled", [](const api::Reader& r, WaitForPodsReady& o) { r.read(o.enabled); }},
    {"timeout", [](const api::Reader& r, WaitForPodsReady& o) { read_duration(r, o.timeout); }},
    {"recoveryTimeout",
     [](const api::Reader& r, WaitForPodsReady& o) {
       if (!r.is_null()) read_duration_or_zero(r, o.recovery_timeout.emplace());
     }},
    {"blockAdmission", [](const api::Reader& r, WaitForPodsReady& o) { r.read(o.block_admission); }},
    {"requeuingStrategy", [](const api::Reader& r, WaitForPodsReady& o) { api::read_object(r, kRequeuing, o); }},
};

using quota::AdmissionFairSharing;
// {nvidia.com/gpu: 4, cpu: 0.5}
void read_resource_weights(const api::Reader& reader, std::map<std::string, int64_t>& out) {
  if (!reader.expect(api::JsonType::kObject)) return;
  out.clear();
  for (api::Members members(reader); members.next();) {
    std::string text;
    if (!members.value().read_string_or_number(text)) continue;
    const Result<int64_t> weight = model::parse_quantity(text, 3);
    if (weight && *weight >= 0) out[std::string(members.key())] = *weight;
    else members.value().problem(fmt::format("'{}' is no number of at least 0", text));
  }
}

constexpr api::Field<AdmissionFairSharing> kUsage[] = {
    {"usageHalfLifeTime", [](const api::Reader& r, AdmissionFairSharing& o) { read_duration_or_zero(r, o.half_life); }},
    {"usageSamplingInterval",
     [](const api::Reader& r, AdmissionFairSharing& o) { read_duration(r, o.sampling_interval); }},
    {"resourceWeights",
     [](const api::Reader& r, AdmissionFairSharing& o) { read_resource_weights(r, o.resource_weights); }},
};

struct FairSharing {
  bool enable = true;
  quota::FairRules rules = {quota::FairRule::kLessThanOrEqualToFinalShare, quota::FairRule::kLessThanInitialShare};
};

void read_rules(const api::Reader& reader, quota::FairRules& out) {
  std::vector<std::string> names;
  if (!reader.read(names)) return;
  out.clear();
  for (const std::string& name : names) {
    if (name == "LessThanOrEqualToFinalShare") out.push_back(quota::FairRule::kLessThanOrEqualToFinalShare);
    else if (name == "LessThanInitialShare") out.push_back(quota::FairRule::kLessThanInitialShare);
    else reader.problem(fmt::format("'{}' is neither LessThanOrEqualToFinalShare nor LessThanInitialShare", name));
  }
  if (names.empty()) reader.problem("must name a strategy; without the field there are both");
}

constexpr api::Field<FairSharing> kFairSharing[] = {
    {"enable", [](const api::Reader& r, FairSharing& o) { r.read(o.enable); }},
    {"preemptionStrategies", [](const api::Reader& r, FairSharing& o) { read_rules(r, o.rules); }},
};

}  // namespace

void read_fair_sharing(const api::Reader& reader, std::optional<quota::FairRules>& out) {
  FairSharing read;
  api::read_object(reader, kFairSharing, read);
  if (read.enable) out = std::move(read.rules);
  else out.reset();
}

void read_pods_ready(const api::Reader& reader, WaitForPodsReady& out) {
  out.enabled = true;
  api::read_object(reader, kPodsReady, out);
}

void read_usage(const api::Reader& reader, AdmissionFairSharing& out) { api::read_object(reader, kUsage, out); }

void read_duration(const api::Reader& reader, Duration& out) {
  if (reader.type() == api::JsonType::kInteger || reader.type() == api::JsonType::kFloat)
    return reader.problem("a duration is a text with a unit, such as 90m, 1h30m or 45s");
  std::string text;
  if (!reader.read(text)) return;
  const Result<Duration> value = parse_duration(text);
  if (!value) return reader.problem(value.error().message);
  if (value->nanos <= 0) return reader.problem("must be longer than 0");
  out = *value;
}

void read_set_packing(const api::Reader& reader, SetPackingOptions& out) { api::read_object(reader, kSetPacking, out); }

void read_reservations(const api::Reader& reader, ReservationOptions& out) {
  api::read_object(reader, kReservations, out);
}

}  // namespace berth::scenario
