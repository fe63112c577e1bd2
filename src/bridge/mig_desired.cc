#include "bridge/mig_desired.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/cluster.h"
#include "api/reader.h"

namespace berth::bridge {
namespace {

using Json = nlohmann::ordered_json;
using api::Field;
using api::Reader;
using State = MigDesired::State;

constexpr std::string_view kVersion = "v1";

void read_time(const Reader& reader, Time& out) {
  std::string text;
  if (!reader.read(text)) return;
  if (const auto time = parse_rfc3339(text)) out = *time;
  else reader.problem(time.error().message);
}

void read_state(const Reader& reader, MigDesired& out) {
  std::string text;
  if (!reader.read(text)) return;
  for (const State state : {State::kWanted, State::kArrived, State::kFailed})
    if (text == to_string(state)) return void(out.state = state);
  reader.problem(fmt::format("'{}' is none of wanted, arrived and failed", text));
}

void read_resources(const Reader& reader, MigDesired& out) {
  if (!reader.expect(api::JsonType::kObject)) return;
  for (api::Members members(reader); members.next();) {
    int64_t amount = 0;
    if (!members.value().read(amount)) continue;
    if (amount < 0) members.value().problem("must not be below 0");
    out.resources.set(members.key(), amount);
  }
}

constexpr Field<model::MigDeviceInstance> kInstance[] = {
    {"profile", [](const Reader& r, model::MigDeviceInstance& i) { r.read(i.profile); }},
    {"start",
     [](const Reader& r, model::MigDeviceInstance& i) {
       int64_t start = 0;
       if (r.read(start)) i.start = static_cast<int32_t>(start);
     }},
};
constexpr Field<DesiredDevice> kMig[] = {
    {"enabled", [](const Reader& r, DesiredDevice& d) { r.read(d.mig_enabled); }},
    {"instances",
     [](const Reader& r, DesiredDevice& d) {
       api::read_list<model::MigDeviceInstance>(
           r, d.instances, [](const Reader& item, auto& instance) { api::read_object(item, kInstance, instance); });
     }},
};
constexpr Field<DesiredDevice> kDevice[] = {
    {"uuid", [](const Reader& r, DesiredDevice& d) { r.read(d.uuid); }},
    {"mig", [](const Reader& r, DesiredDevice& d) { api::read_object(r, kMig, d); }},
};

struct Root {
  std::string version;
  MigDesired desired;
};
constexpr Field<Root> kRoot[] = {
    {"version", [](const Reader& r, Root& root) { r.read(root.version); }},
    {"id", [](const Reader& r, Root& root) { r.read(root.desired.id); }},
    {"state", [](const Reader& r, Root& root) { read_state(r, root.desired); }},
    {"since", [](const Reader& r, Root& root) { read_time(r, root.desired.since); }},
    {"until", [](const Reader& r, Root& root) { read_time(r, root.desired.until); }},
    {"failures",
     [](const Reader& r, Root& root) {
       int64_t failures = 0;
       if (r.read(failures)) root.desired.failures = static_cast<int>(std::clamp<int64_t>(failures, 0, 1'000'000));
     }},
    {"reason", [](const Reader& r, Root& root) { r.read(root.desired.reason); }},
    {"config", [](const Reader& r, Root& root) { r.read(root.desired.config); }},
    {"resources", [](const Reader& r, Root& root) { read_resources(r, root.desired); }},
    {"devices",
     [](const Reader& r, Root& root) {
       api::read_list<DesiredDevice>(r, root.desired.devices, [](const Reader& item, DesiredDevice& device) {
         api::read_object(item, kDevice, device);
       });
     }},
};

}  // namespace

std::string_view to_string(State state) {
  switch (state) {
    case State::kWanted: return "wanted";
    case State::kArrived: return "arrived";
    case State::kFailed: return "failed";
  }
  return "";
}

std::string mig_desired_json(const MigDesired& desired) {
  Json out{{"version", kVersion},
           {"id", desired.id},
           {"state", to_string(desired.state)},
           {"since", format_rfc3339(desired.since)},
           {"until", format_rfc3339(desired.until)},
           {"failures", desired.failures}};
  if (!desired.reason.empty()) out["reason"] = desired.reason;
  if (!desired.config.empty()) out["config"] = desired.config;
  out["resources"] = Json::object();
  for (const auto& [name, amount] : desired.resources) out["resources"][name] = amount;
  out["devices"] = Json::array();
  for (size_t index = 0; index < desired.devices.size(); ++index) {
    const DesiredDevice& device = desired.devices[index];
    Json entry{{"index", index}};
    if (!device.uuid.empty()) entry["uuid"] = device.uuid;
    entry["mig"]["enabled"] = device.mig_enabled;
    if (device.mig_enabled) {
      entry["mig"]["instances"] = Json::array();
      for (const model::MigDeviceInstance& instance : device.instances)
        entry["mig"]["instances"].push_back(Json{{"profile", instance.profile}, {"start", instance.start}});
    }
    out["devices"].push_back(std::move(entry));
  }
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<model::GpuDevice> told_devices(const MigDesired& desired) {
  std::vector<model::GpuDevice> out;
  for (const DesiredDevice& device : desired.devices) {
    if (device.uuid.empty()) return {};
    model::GpuDevice& told = out.emplace_back();
    told.uuid = device.uuid;
    told.mig_enabled = device.mig_enabled;
    told.mig_instances = device.instances;
  }
  return out;
}

Result<MigDesired> read_mig_desired(std::string_view json) {
  Root root;
  api::ProblemSink sink;
  const Status read = api::read_json(json, sink, [&](const Reader& reader) {
    api::read_object(reader, kRoot, root);
    if (root.version != kVersion)
      reader.problem_at("version",
                        fmt::format("'{}' is not {}, which is all that this scheduler reads", root.version, kVersion));
  });
  if (!read) return fail(ErrorCode::kInvalidInput, read.error().message);
  if (!sink.problems.empty()) return fail(ErrorCode::kInvalidInput, api::to_string(sink.problems.front()));
  return std::move(root.desired);
}

bool berth_cuts(const api::Node& node) {
  const std::string* text = node.metadata.annotation(kMigDesiredAnnotation);
  if (text == nullptr) return false;
  const auto desired = read_mig_desired(*text);
  return desired && desired->state == State::kWanted;
}

}  // namespace berth::bridge
