#include <fmt/format.h>

#include "api/decoders.h"
#include "api/names.h"

namespace berth::api {
namespace {

constexpr int32_t kPortMax = 65535;

void read_protocol(const Reader& reader, ContainerPort& out) {
  std::string_view text;
  if (!reader.read(text)) return;
  if (text.empty() || text == "TCP") out.protocol = model::Protocol::kTcp;
  else if (text == "UDP") out.protocol = model::Protocol::kUdp;
  else if (text == "SCTP") out.protocol = model::Protocol::kSctp;
  else reader.problem(unsupported_value(text, {"SCTP", "TCP", "UDP"}));
}

constexpr Field<ContainerPort> kPort[] = {
    {"name"},
    {"hostPort", [](const Reader& r, ContainerPort& p) { r.read(p.host_port); }},
    {"containerPort", [](const Reader& r, ContainerPort& p) { r.read(p.container_port); }},
    {"protocol", &read_protocol},
    {"hostIP", [](const Reader& r, ContainerPort& p) { r.read(p.host_ip); }},
};

void read_port(const Reader& reader, ContainerPort& out) {
  read_object(reader, kPort, out);
  if (!reader.strict()) return;
  const auto in_range = [](int32_t port) { return port >= 1 && port <= kPortMax; };
  if (out.container_port == 0 && reader.sound("containerPort"))
    reader.problem_at("containerPort", required_value("a port between 1 and 65535"));
  else if (out.container_port != 0 && !in_range(out.container_port))
    reader.problem_at("containerPort",
                      invalid_value(std::to_string(out.container_port), "must be between 1 and 65535, inclusive"));
  if (out.host_port != 0 && !in_range(out.host_port))
    reader.problem_at("hostPort",
                      invalid_value(std::to_string(out.host_port), "must be between 1 and 65535, inclusive"));
}

void read_restart_policy(const Reader& reader, Container& out) {
  std::string_view text;
  if (!reader.read(text)) return;
  out.restart_always = text == "Always";
  if (reader.strict() && text != "Always" && text != "OnFailure" && text != "Never")
    reader.problem(unsupported_value(text, {"Always", "Never", "OnFailure"}));
}

constexpr Field<Container> kContainer[] = {
    {"name", [](const Reader& r, Container& c) { r.read(c.name); }},
    {"image", [](const Reader& r, Container& c) { r.read(c.image); }},
    {"command",
     [](const Reader& r, Container&) {
       if (r.strict()) {
         std::vector<std::string> words;
         r.read(words);
       }
     }},
    {"args",
     [](const Reader& r, Container&) {
       if (r.strict()) {
         std::vector<std::string> words;
         r.read(words);
       }
     }},
    {"workingDir"},
    {"ports", [](const Reader& r, Container& c) { read_list(r, c.ports, &read_port); }},
    {"envFrom"},
    {"env"},
    {"resources", [](const Reader& r, Container& c) { read_container_resources(r, c.resources); }},
    {"resizePolicy"},
    {"restartPolicy", &read_restart_policy},
    {"restartPolicyRules"},
    {"volumeMounts"},
    {"volumeDevices"},
    {"livenessProbe"},
    {"readinessProbe"},
    {"startupProbe"},
    {"lifecycle"},
    {"terminationMessagePath"},
    {"terminationMessagePolicy"},
    {"imagePullPolicy"},
    {"securityContext"},
    {"stdin"},
    {"stdinOnce"},
    {"tty"},
};

}  // namespace

void read_container(const Reader& reader, Container& out) {
  read_object(reader, kContainer, out);
  if (!reader.strict()) return;
  if (out.name.empty()) {
    if (reader.sound("name")) reader.problem_at("name", required_value("give the container a name"));
  } else if (const std::string why = check_dns1123_label(out.name); !why.empty()) {
    reader.problem_at("name", invalid_value(out.name, why));
  }
  if (out.image.empty() && reader.sound("image")) reader.problem_at("image", required_value("name the image to run"));
}

}  // namespace berth::api
