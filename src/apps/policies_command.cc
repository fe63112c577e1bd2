#include "apps/policies_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/choices.h"
#include "apps/exit_code.h"
#include "policy/registry.h"
#include "scenario/text_table.h"

namespace berth::apps {
namespace {

using Policies = std::vector<const engine::PolicyInfo*>;

// Filters in the order in which they run, then scores, the heaviest first.
Policies in_order() {
  Policies out = policy::all_policies();
  std::stable_sort(out.begin(), out.end(), [](auto* a, auto* b) {
    if (a->filters() != b->filters()) return a->filters();
    return a->filters() ? a->order < b->order : a->default_weight > b->default_weight;
  });
  return out;
}

std::string kind_of(const engine::PolicyInfo& policy) {
  if (policy.filters() && policy.scores()) return "filter, score";
  return policy.filters() ? "filter" : "score";
}

std::string table(const Policies& policies) {
  scenario::TextTable out({"POLICY", "KIND", ">WEIGHT", "WHAT IT DOES"});
  for (const engine::PolicyInfo* policy : policies)
    out.add({std::string(policy->name), kind_of(*policy),
             !policy->scores() ? "-" : std::to_string(policy->default_weight), std::string(policy->summary)});
  return out.text();
}

std::string json(const Policies& policies) {
  nlohmann::ordered_json out = {
      {"apiVersion", "berth.dev/v1alpha1"}, {"kind", "PolicyList"}, {"items", nlohmann::ordered_json::array()}};
  for (const engine::PolicyInfo* policy : policies) {
    nlohmann::ordered_json item = {{"name", policy->name}, {"kind", kind_of(*policy)}};
    if (policy->scores()) item["defaultWeight"] = policy->default_weight;
    item["summary"] = policy->summary;
    out["items"].push_back(std::move(item));
  }
  return out.dump(2) + "\n";
}

}  // namespace

void add_policies_command(CLI::App& app, int& exit_code) {
  auto format = std::make_shared<std::string>("table");
  CLI::App* command = app.add_subcommand("policies", "List the policies that decide where pods go");
  command->add_option("-o,--output", *format, "How to print them")
      ->check(one_of({"table", "json"}))
      ->type_name("table|json");
  command->callback([format, &exit_code] {
    std::cout << (*format == "json" ? json(in_order()) : table(in_order()));
    exit_code = kExitOk;
  });
}

}  // namespace berth::apps
