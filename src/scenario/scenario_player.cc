#include "scenario/scenario_player.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace berth::scenario {
namespace {

using Kind = LinedValue::Kind;

constexpr int64_t kNodesPerStepMax = 10'000;
constexpr std::string_view kOfQueues = "flavors, cohorts, queues, checks";  // what add_queues() makes

bool is_of_queues(const std::string& key) {
  return key == "flavors" || key == "cohorts" || key == "queues" || key == "checks";
}

// The scalar itself, or each item of a list.
std::vector<const LinedValue*> items(const LinedValue& value) {
  std::vector<const LinedValue*> out;
  if (value.kind != Kind::kList) return {&value};
  for (const auto& [key, item] : value.members) out.push_back(&item);
  return out;
}

LinedValue string_value(std::string text, int line) { return {Kind::kString, line, std::move(text), {}}; }

LinedValue& member(LinedValue& map, std::string_view key, Kind kind) {
  for (auto& [name, value] : map.members)
    if (name == key) return value;
  map.kind = Kind::kMap;
  map.members.push_back({std::string(key), LinedValue{kind, map.line, "", {}}});
  return map.members.back().value;
}

// Sets every member of `from` in `into`; null removes it.
void merge(LinedValue& into, const LinedValue& from) {
  for (const auto& [key, value] : from.members) {
    if (value.kind == Kind::kNull)
      std::erase_if(into.members, [&, k = key](const auto& entry) { return entry.name == k; });
    else member(into, key, value.kind) = value;
  }
}

}  // namespace

// Every step by name.
struct StepTable {
  using Function = void (*)(ScenarioPlayer&, const LinedValue&);
  struct Entry {
    std::string_view name;
    Function run;
  };

  template <typename F>
  static void each(ScenarioPlayer& p, const LinedValue& what, F&& act) {
    for (const LinedValue* item : items(what)) p.require(act(item->text), *item);
  }

  static constexpr Entry kSteps[] = {
      {"submit", [](ScenarioPlayer& p, const LinedValue& v) { p.submit(v); }},
      {"update", [](ScenarioPlayer& p, const LinedValue& v) { p.update(v); }},
      {"delete",
       [](ScenarioPlayer& p, const LinedValue& v) { each(p, v, [&](auto& n) { return p.cluster_.delete_pod(n); }); }},
      {"finish",
       [](ScenarioPlayer& p, const LinedValue& v) { each(p, v, [&](auto& n) { return p.cluster_.finish_pod(n); }); }},
      {"fail", [](ScenarioPlayer& p,
                  const LinedValue& v) { each(p, v, [&](auto& n) { return p.cluster_.fail_pod(n, "Error"); }); }},
      {"kubelet_rejects", [](ScenarioPlayer& p, const LinedValue& v) { p.kubelet_rejects(v); }},
      {"node_added", [](ScenarioPlayer& p, const LinedValue& v) { p.add_nodes(v); }},
      {"node_lost",
       [](ScenarioPlayer& p, const LinedValue& v) { each(p, v, [&](auto& n) { return p.cluster_.lose_node(n); }); }},
      {"cordon", [](ScenarioPlayer& p,
                    const LinedValue& v) { each(p, v, [&](auto& n) { return p.cluster_.cordon_node(n, true); }); }},
      {"uncordon", [](ScenarioPlayer& p,
                      const LinedValue& v) { each(p, v, [&](auto& n) { return p.cluster_.cordon_node(n, false); }); }},
      {"bind_fails",
       [](ScenarioPlayer& p, const LinedValue& v) {
         each(p, v, [&](auto& n) { return p.cluster_.plan_bind(n, BindFate::kFails), Status(); });
       }},
      {"bind_unknown",
       [](ScenarioPlayer& p, const LinedValue& v) {
         each(p, v, [&](auto& n) { return p.cluster_.plan_bind(n, BindFate::kUnknown), Status(); });
       }},
      {"bind_settled", [](ScenarioPlayer& p, const LinedValue& v) { p.settle_bind(v); }},
      {"queues",
       [](ScenarioPlayer& p, const LinedValue& v) {
         for (const auto& [key, value] : v.members)
           if (!is_of_queues(key)) p.mismatch(value, fmt::format("'{}' is none of {}", key, kOfQueues));
         p.add_queues(v);
       }},
      {"job",
       [](ScenarioPlayer& p, const LinedValue& v) {
         for (const LinedValue* item : items(v)) p.add_job(*item);
       }},
      {"activate", [](ScenarioPlayer& p,
                      const LinedValue& v) { each(p, v, [&](auto& n) { return p.cluster_.set_active(n, true); }); }},
      {"deactivate", [](ScenarioPlayer& p,
                        const LinedValue& v) { each(p, v, [&](auto& n) { return p.cluster_.set_active(n, false); }); }},
      {"check", [](ScenarioPlayer& p, const LinedValue& v) { p.report_checks(v); }},
      {"relist", [](ScenarioPlayer& p, const LinedValue&) { p.cluster_.relist(); }},
      {"advance", [](ScenarioPlayer& p, const LinedValue& v) { p.advance(v); }},
      {"expect", [](ScenarioPlayer& p, const LinedValue& v) { p.expect(v); }},
  };
};

ScenarioPlayer::ScenarioPlayer(const Scenario& scenario, const Shapes& shapes, uint64_t shuffle_seed)
    : scenario_(scenario),
      shapes_(shapes),
      cluster_({.policies = scenario.policies,
                .engine = scenario.engine,
                .shuffle_seed = shuffle_seed,
                .record = true,
                .check_invariants = true}) {}

std::vector<Mismatch> ScenarioPlayer::play() {
  build_cluster();
  for (const LinedValue* item : items(*scenario_.root.find("steps"))) step(*item);
  if (problems_line_ != 0)
    mismatches_.push_back(
        {problems_line_, "the manifests have problems: " + api::to_string(problems_.front()), "", ""});
  return std::move(mismatches_);
}

void ScenarioPlayer::build_cluster() {
  const LinedValue* cluster = scenario_.root.find("cluster");
  if (cluster == nullptr) return;
  for (const auto& [key, value] : cluster->members) {
    if (key == "nodes") add_nodes(value);
    else if (key == "objects") submit(value);
    else if (!is_of_queues(key)) mismatch(value, fmt::format("'{}' is none of nodes, objects, {}", key, kOfQueues));
  }
  add_queues(*cluster);
  cluster_.settle();
}

void ScenarioPlayer::step(const LinedValue& step) {
  if (step.kind != Kind::kMap || step.members.size() != 1)
    return mismatch(step, "a step is one action and what it is about");
  const std::string& name = step.members.front().name;
  const LinedValue& what = step.members.front().value;
  const auto* at =
      std::find_if(std::begin(StepTable::kSteps), std::end(StepTable::kSteps), [&](auto& e) { return e.name == name; });
  if (at == std::end(StepTable::kSteps)) return mismatch(step, fmt::format("no step is called '{}'", name));
  if (problems_line_ != 0 && name != "expect") {
    mismatches_.push_back(
        {problems_line_, "the manifests have problems: " + api::to_string(problems_.front()), "", ""});
    problems_line_ = 0;
  }
  at->run(*this, what);
  if (name != "expect") cluster_.settle();
  for (; broken_seen_ < cluster_.broken().size(); ++broken_seen_)
    mismatch(what, "an invariant is broken: " + cluster_.broken()[broken_seen_]);
}

// ---- steps ----------------------------------------------------------------------------------------------------------

// Manifests as a value (one object or a list), as text, or in a file beside the scenario.
std::vector<Manifest> ScenarioPlayer::read(const LinedValue& what) {
  problems_.clear();
  notes_.clear();
  std::vector<api::Document> documents;
  if (what.kind == Kind::kString) {
    const bool inline_text = what.text.find('\n') != std::string::npos;
    Result<std::string> text = inline_text ? what.text : scenario_.read_beside(what.text);
    if (!text) return mismatch(what, text.error().message), std::vector<Manifest>();
    documents = api::read_documents(*text, inline_text ? scenario_.file : what.text, problems_);
  } else {
    for (const LinedValue* item : items(what)) documents.push_back(to_document(*item, scenario_.file));
  }
  auto manifests = decode_manifests(documents, classes_, problems_, notes_);
  problems_line_ = problems_.empty() ? 0 : what.line;
  return manifests;
}

void ScenarioPlayer::submit(const LinedValue& what) {
  std::vector<Manifest> manifests = read(what);
  for (const Manifest& manifest : manifests)
    if (std::holds_alternative<api::ResourceFlavor>(manifest.object))
      flavors_named_.insert(api::metadata_of(manifest.object).name);
  require(cluster_.submit(std::move(manifests)), what);
}

void ScenarioPlayer::update(const LinedValue& what) {
  for (Manifest& manifest : read(what)) require(cluster_.update(std::move(manifest)), what);
}

LinedValue ScenarioPlayer::shaped_node(const LinedValue& wish, std::string name) {
  const std::string like = wish.get("like", "cpu-32");
  const auto shape = std::find_if(shapes_.begin(), shapes_.end(), [&](const auto& s) { return s.first == like; });
  if (shape == shapes_.end()) return mismatch(wish, fmt::format("no shape is called '{}'", like)), LinedValue();
  LinedValue node = shape->second;
  node.line = wish.line;
  LinedValue& metadata = member(node, "metadata", Kind::kMap);
  LinedValue& labels = member(metadata, "labels", Kind::kMap);
  member(labels, "kubernetes.io/hostname", Kind::kString) = string_value(name, wish.line);
  member(metadata, "name", Kind::kString) = string_value(std::move(name), wish.line);
  if (const LinedValue* extra = wish.find("labels")) merge(labels, *extra);
  LinedValue& spec = member(node, "spec", Kind::kMap);
  if (const LinedValue* taints = wish.find("taints")) member(spec, "taints", Kind::kList) = *taints;
  if (const LinedValue* cordoned = wish.find("unschedulable")) member(spec, "unschedulable", Kind::kBool) = *cordoned;
  LinedValue& status = member(node, "status", Kind::kMap);
  LinedValue& capacity = member(status, "capacity", Kind::kMap);
  if (const LinedValue* amounts = wish.find("capacity")) merge(capacity, *amounts);
  if (const LinedValue* amounts = wish.find("allocatable")) {
    LinedValue allocatable = capacity;
    merge(allocatable, *amounts);
    member(status, "allocatable", Kind::kMap) = std::move(allocatable);
  }
  return node;
}

// {like, name, count, labels, taints, unschedulable, capacity, allocatable}, or a list of them.
void ScenarioPlayer::add_nodes(const LinedValue& what) {
  static constexpr std::string_view kFields[] = {"like",   "name",          "count",    "labels",
                                                 "taints", "unschedulable", "capacity", "allocatable"};
  LinedValue nodes{Kind::kList, what.line, "", {}};
  for (const LinedValue* wish : items(what)) {
    for (const auto& [key, value] : wish->members)
      if (std::find(std::begin(kFields), std::end(kFields), key) == std::end(kFields))
        mismatch(value, fmt::format("'{}' says nothing about a node", key));
    const std::string base = wish->get("name", wish->get("like", "cpu-32"));
    const bool one = wish->find("count") == nullptr && wish->find("name") != nullptr;
    const int64_t count = std::clamp<int64_t>(std::atoll(wish->get("count", "1").c_str()), 0, kNodesPerStepMax);
    auto number = std::find_if(node_numbers_.begin(), node_numbers_.end(), [&](auto& n) { return n.first == base; });
    if (number == node_numbers_.end()) number = node_numbers_.insert(number, {base, 1});
    for (int64_t i = 0; i < count; ++i)
      nodes.members.push_back({"", shaped_node(*wish, one ? base : fmt::format("{}-{}", base, number->second++))});
  }
  submit(nodes);
}

void ScenarioPlayer::advance(const LinedValue& what) {
  const auto duration = parse_duration(what.text);
  if (!duration) return mismatch(what, duration.error().message);
  cluster_.advance(*duration);
}

// {pod: reason}.
void ScenarioPlayer::kubelet_rejects(const LinedValue& what) {
  for (const auto& [pod, reason] : what.members) require(cluster_.fail_pod(pod, reason.text), reason);
}

// {pod: stored|lost}.
void ScenarioPlayer::settle_bind(const LinedValue& what) {
  for (const auto& [pod, outcome] : what.members) {
    if (outcome.text != "stored" && outcome.text != "lost") mismatch(outcome, "a bind turns out to be stored or lost");
    else require(cluster_.settle_bind(pod, outcome.text == "stored"), outcome);
  }
}

void ScenarioPlayer::require(const Status& status, const LinedValue& where) {
  if (!status) mismatch(where, status.error().message);
}

void ScenarioPlayer::mismatch(const LinedValue& where, std::string sentence) {
  mismatches_.push_back({where.line, std::move(sentence), "", ""});
}

}  // namespace berth::scenario
