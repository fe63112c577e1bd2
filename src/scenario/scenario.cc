#include "scenario/scenario.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "scenario/engine_options.h"
#include "scenario/policy_options.h"
#include "scenario/scenario_player.h"

namespace berth::scenario {
namespace {

constexpr uint64_t kShuffleSeeds = 5;
constexpr std::string_view kKeys[] = {"policies",    "setPacking",           "reservations", "waitForPodsReady",
                                      "fairSharing", "admissionFairSharing", "cluster",      "steps"};

Result<std::vector<api::Document>> documents_of(const std::string& text, const std::string& file) {
  api::Problems problems;
  auto documents = api::read_plain_documents(text, file, problems);
  if (!problems.empty()) return fail(ErrorCode::kInvalidInput, api::to_string(problems.front()));
  return documents;
}

// Reads one of the objects that say how the engine is to go.
Status read_options(const api::Document& document, const std::function<void(const api::Reader&)>& read) {
  api::ProblemSink sink{.strict = true, .document = &document, .problems = {}};
  BERTH_TRY_VOID(api::read_json(document.json, sink, read));
  if (!sink.problems.empty()) return fail(ErrorCode::kInvalidInput, api::to_string(sink.problems.front()));
  return {};
}

// Where `what` stands in the line, but for those within a longer word: "running: 1" is not about the 1 of "a100-1".
std::vector<size_t> words(const std::string& line, const std::string& what) {
  const auto word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-'; };
  std::vector<size_t> out;
  for (size_t at = line.find(what); at != std::string::npos; at = line.find(what, at + 1)) {
    const size_t end = at + what.size();
    if ((at == 0 || !word(line[at - 1])) && (end == line.size() || !word(line[end]))) out.push_back(at);
  }
  return out;
}

// The first decision in which two runs differ.
std::string difference(const std::vector<std::string>& straight, const std::vector<std::string>& other) {
  for (size_t i = 0; i < std::max(straight.size(), other.size()); ++i) {
    const std::string a = i < straight.size() ? straight[i] : "nothing more";
    const std::string b = i < other.size() ? other[i] : "nothing more";
    if (a != b) return fmt::format("straight: {}; shuffled: {}", a, b);
  }
  return "";
}

}  // namespace

Result<Shapes> parse_shapes(const std::string& text, const std::string& file) {
  BERTH_TRY(documents, documents_of(text, file));
  Shapes shapes;
  for (const api::Document& document : documents) {
    LinedValue node = to_lined_value(document);
    const LinedValue* metadata = node.find("metadata");
    if (metadata == nullptr || metadata->get("name").empty())
      return fail(ErrorCode::kInvalidInput, fmt::format("{}:{}: a shape is a Node with a name", file, node.line));
    shapes.emplace_back(metadata->get("name"), std::move(node));
  }
  return shapes;
}

Result<Scenario> parse_scenario(const std::string& text, const std::string& file) {
  BERTH_TRY(documents, documents_of(text, file));
  if (documents.size() != 1)
    return fail(ErrorCode::kInvalidInput,
                fmt::format("{}: a scenario is one document, this file has {}", file, documents.size()));
  Scenario scenario{.file = file, .root = to_lined_value(documents.front())};
  for (const auto& [key, value] : scenario.root.members)
    if (std::ranges::find(kKeys, key) == std::end(kKeys))
      return fail(ErrorCode::kInvalidInput,
                  fmt::format("{}:{}: '{}' is none of {}", file, value.line, key, fmt::join(kKeys, ", ")));
  const LinedValue* steps = scenario.root.find("steps");
  if (steps == nullptr || steps->kind != LinedValue::Kind::kList)
    return fail(ErrorCode::kInvalidInput, fmt::format("{}: a scenario has a list of steps", file));
  const LinedValue* policies = scenario.root.find("policies");
  BERTH_TRY(set, policies == nullptr ? policy::make_policy_set() : read_policies(to_document(*policies, file)));
  scenario.policies = std::move(set);
  engine::EngineOptions& engine = scenario.engine;
  const auto read = [&](const char* key, const auto& reader) -> Status {
    const LinedValue* value = scenario.root.find(key);
    return value == nullptr ? Status() : read_options(to_document(*value, file), reader);
  };
  BERTH_TRY_VOID(
      read("waitForPodsReady", [&](const api::Reader& r) { read_pods_ready(r, engine.admission.pods_ready); }));
  BERTH_TRY_VOID(read("fairSharing", [&](const api::Reader& r) { read_fair_sharing(r, engine.admission.fair); }));
  BERTH_TRY_VOID(read("admissionFairSharing", [&](const api::Reader& r) { read_usage(r, engine.admission.usage); }));
  BERTH_TRY_VOID(read("setPacking", [&](const api::Reader& r) { read_set_packing(r, engine.set_packing); }));
  BERTH_TRY_VOID(read("reservations", [&](const api::Reader& r) { read_reservations(r, engine.reservations); }));
  return scenario;
}

std::vector<Mismatch> run_scenario(const Scenario& scenario, const Shapes& shapes) {
  ScenarioPlayer straight(scenario, shapes, 0);
  std::vector<Mismatch> mismatches = straight.play();
  for (const std::string& sentence : replay(straight.cluster().log(), scenario.policies, scenario.engine))
    mismatches.push_back({0, "replayed into a fresh engine: " + sentence, "", ""});
  const auto decisions = decisions_of(straight.cluster().log());
  for (uint64_t seed = 1; seed <= kShuffleSeeds && mismatches.empty(); ++seed) {
    ScenarioPlayer shuffled(scenario, shapes, seed);
    for (Mismatch& mismatch : shuffled.play())
      mismatches.push_back(
          {mismatch.line, fmt::format("delivery shuffled by seed {}: {}", seed, mismatch.sentence), "", ""});
    if (const std::string differs = difference(decisions, decisions_of(shuffled.cluster().log())); !differs.empty())
      mismatches.push_back(
          {0, fmt::format("delivery shuffled by seed {} decides otherwise: {}", seed, differs), "", ""});
    else if (straight.cluster().engine().state().hash() != shuffled.cluster().engine().state().hash())
      mismatches.push_back({0, fmt::format("delivery shuffled by seed {} ends in another state", seed), "", ""});
  }
  return mismatches;
}

namespace {

// The value as it can stand in the place of what is at `at` in the line: in quotes where plain YAML would read it
// otherwise, and there are none yet.
std::string in_place(const std::string& value, const std::string& line, size_t at) {
  const bool quoted = at > 0 && (line[at - 1] == '"' || line[at - 1] == '\'');
  const bool plain = value.find(": ") == std::string::npos && value.find(" #") == std::string::npos;
  const bool structure = value.starts_with('[') || value.starts_with('{') || value.starts_with('"');
  if (quoted || plain || structure) return value;
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

}  // namespace

std::string with_actual_values(const std::string& text, const std::vector<Mismatch>& mismatches, size_t& left) {
  std::vector<std::string> lines;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  left = 0;
  for (const Mismatch& mismatch : mismatches) {
    const size_t line = static_cast<size_t>(mismatch.line) - 1;
    const bool known = mismatch.line > 0 && line < lines.size() && !mismatch.expected.empty();
    const std::vector<size_t> at = known ? words(lines[line], mismatch.expected) : std::vector<size_t>();
    if (at.size() != 1) ++left;  // which of several is meant, nobody knows
    else lines[line].replace(at.front(), mismatch.expected.size(), in_place(mismatch.actual, lines[line], at.front()));
  }
  std::string out;
  for (size_t i = 0; i < lines.size(); ++i) out += lines[i] + (i + 1 < lines.size() ? "\n" : "");
  return out;
}

}  // namespace berth::scenario
