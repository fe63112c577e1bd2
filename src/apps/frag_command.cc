#include "apps/frag_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/choices.h"
#include "apps/exit_code.h"
#include "apps/offline_run.h"
#include "engine/fragmentation.h"
#include "mig/idle_devices.h"
#include "model/quantity.h"
#include "scenario/text_table.h"

namespace berth::apps {
namespace {

using engine::ResourceRoom;
using engine::ShapeRoom;
using Json = nlohmann::ordered_json;

struct Flags {
  OfflineInput input;
  std::string output = "table";
};

constexpr const char* kFooter =
    R"(For each GPU resource and each shape of request: how many more would fit, and what strands the
free devices that such requests cannot use:
  TAINT   the node is cordoned, or no pod that asks for the resource tolerates its taints
  CPU, MEMORY, PODS   the node has too little of it left
  SHAPE   too few free devices on the node for one more
IF CUT, where nodes have dynamic MIG: how many would fit if their idle GPUs were cut for that shape alone.
A request asks for the cpu and memory that the pods given ask for per device in the median.

Examples:
  berth frag -f cluster/
  kubectl get nodes,pods,priorityclasses -A -o yaml | berth frag -f -)";

std::string table_text(const std::vector<ResourceRoom>& rooms) {
  if (rooms.empty()) return "no node has GPUs\n";
  const auto has_cut = [](const ResourceRoom& room) { return room.shapes.front().fit_if_cut.has_value(); };
  const bool cut = std::any_of(rooms.begin(), rooms.end(), has_cut);
  std::vector<std::string> head = {"RESOURCE", ">SIZE",   ">FIT",  ">FREE", ">TAINT",
                                   ">CPU",     ">MEMORY", ">PODS", ">SHAPE"};
  if (cut) head.insert(head.begin() + 3, ">IF CUT");
  scenario::TextTable table(std::move(head));
  std::string notes;
  for (const ResourceRoom& room : rooms) {
    const bool whole = room.unit == engine::GpuUnit::kDevice;
    const std::string name = whole ? room.resource : fmt::format("{} ({}s)", room.resource, to_string(room.unit));
    for (const ShapeRoom& shape : room.shapes) {
      std::vector<std::string> cells = {name, std::to_string(shape.size), std::to_string(shape.fit),
                                        std::to_string(room.free)};
      if (cut) cells.insert(cells.begin() + 3, shape.fit_if_cut ? std::to_string(*shape.fit_if_cut) : "-");
      for (const int64_t devices : shape.stranded) cells.push_back(devices == 0 ? "-" : std::to_string(devices));
      table.add(std::move(cells));
    }
    if (room.allocatable == 0) continue;
    notes += fmt::format("{}: {} of {} free; counted with {} cpu and {} memory for each\n", name, room.free,
                         room.allocatable, model::format_resource("cpu", room.cpu_millis),
                         model::format_resource("memory", room.memory_bytes));
  }
  return table.text() + "\n" + notes;
}

std::string json_text(const std::vector<ResourceRoom>& rooms) {
  Json out = {{"apiVersion", "berth.dev/v1alpha1"}, {"kind", "FragmentationReport"}, {"resources", Json::array()}};
  for (const ResourceRoom& room : rooms) {
    Json shapes = Json::array();
    for (const ShapeRoom& shape : room.shapes) {
      Json stranded = Json::object();
      for (size_t i = 0; i < shape.stranded.size(); ++i)
        stranded[std::string(engine::kStrandings[i])] = shape.stranded[i];
      shapes.push_back({{"size", shape.size},
                        {"fit", shape.fit},
                        {"fit_if_cut", shape.fit_if_cut ? Json(*shape.fit_if_cut) : Json()},
                        {"stranded", std::move(stranded)}});
    }
    out["resources"].push_back({{"name", room.resource},
                                {"unit", to_string(room.unit)},
                                {"allocatable", room.allocatable},
                                {"free", room.free},
                                {"cpu_per_device", model::format_resource("cpu", room.cpu_millis)},
                                {"memory_per_device", model::format_resource("memory", room.memory_bytes)},
                                {"shapes", std::move(shapes)}});
  }
  return out.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

int frag(const Flags& flags) {
  const auto cluster = run_offline(flags.input);
  if (cluster == nullptr) return kExitUsage;
  mig::IdleDevices idle;
  const std::vector<ResourceRoom> rooms = mig::measure_fragmentation(cluster->engine(), idle);
  std::cout << (flags.output == "json" ? json_text(rooms) : table_text(rooms));
  return kExitOk;
}

}  // namespace

void add_frag_command(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("frag", "Say what the free GPUs of a fleet are good for");
  command->footer(kFooter);
  add_files_option(*command, flags->input)->required()->allow_extra_args(false);
  command->add_option("-o,--output", flags->output, "table or json")
      ->check(one_of({"table", "json"}))
      ->type_name("FORMAT");
  add_config_option(*command, flags->input);
  command->callback([flags, &exit_code] { exit_code = frag(*flags); });
}

}  // namespace berth::apps
