#include "apps/trace_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iostream>
#include <optional>

#include "apps/choices.h"
#include "apps/exit_code.h"
#include "apps/files.h"
#include "apps/progress_line.h"
#include "base/printable.h"
#include "io/system_clock.h"
#include "packing/placement_policy.h"
#include "scenario/trace_run.h"
#include "scenario/trace_svg.h"

namespace berth::apps {
namespace {

constexpr uint64_t kWindowMax = 1'000'000;

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const auto& policy : packing::placement_policies()) names.emplace_back(policy.name);
  return names;
}

std::optional<uint64_t> whole_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "1.3" in thousandths: at most three places, no sign and no exponent.
std::optional<int64_t> thousandths(std::string_view text) {
  const size_t point = text.find('.');
  const auto whole = whole_number(text.substr(0, point));
  if (!whole || *whole > 1'000'000) return std::nullopt;
  if (point == std::string_view::npos) return static_cast<int64_t>(*whole) * 1000;
  std::string places(text.substr(point + 1));
  if (places.size() > 3) return std::nullopt;
  places.append(3 - places.size(), '0');
  const auto rest = whole_number(places);
  if (!rest || point + 1 == text.size()) return std::nullopt;
  return static_cast<int64_t>(*whole * 1000 + *rest);
}

// --batch: a number of pods, or all; 0 without it. What is wrong is appended.
size_t window_of(const TraceFlags& flags, std::vector<std::string>& wrong) {
  if (!flags.batch) return 0;
  const auto window = whole_number(*flags.batch);
  if (*flags.batch != "all" && (!window || *window == 0 || *window > kWindowMax))
    wrong.push_back(fmt::format("--batch: '{}' is neither a number of pods from 1 to {} nor `all`",
                                printable(*flags.batch), kWindowMax));
  const std::vector<std::string> names = policy_names();
  if (std::find(names.begin(), names.end(), flags.policy) != names.end() && !scenario::plans_batches(flags.policy))
    wrong.push_back(
        fmt::format("--batch: batches are planned with Berth's own policies alone; leave out `--policy {}`, "
                    "or leave out --batch",
                    flags.policy));
  return *flags.batch == "all" ? scenario::kBatchAll : window.value_or(0);
}

// What the flags say; what is wrong with them is appended to `wrong`.
scenario::TraceOptions options_of(const TraceFlags& flags, const std::string& format, std::vector<std::string>& wrong) {
  const auto choose = [&](const char* flag, const std::string& value, const std::vector<std::string>& words) {
    if (const std::string problem = wrong_choice(value, words); !problem.empty())
      wrong.push_back(fmt::format("{}: {}; see `berth simulate --help`", flag, printable(problem)));
  };
  choose("--trace", flags.trace, {"openb"});
  choose("--output", format, {"table", "json"});
  choose("--policy", flags.policy, policy_names());
  if (flags.nodes.empty()) wrong.emplace_back("--nodes: --trace needs the nodes; name their CSV file");
  if (flags.pods.empty()) wrong.emplace_back("--pods: --trace needs a list of pods; name its CSV file");
  if (flags.nodes == "-" && flags.pods == "-") wrong.emplace_back("--pods: standard input was taken by --nodes");
  const auto seed = whole_number(flags.seed);
  if (!seed)
    wrong.push_back(
        fmt::format("--seed: '{}' is no whole number from 0 to 18446744073709551615", printable(flags.seed)));
  const auto inflate = thousandths(flags.inflate);
  if (!inflate || *inflate < scenario::kInflateMilliMin || *inflate > scenario::kInflateMilliMax)
    wrong.push_back(fmt::format("--inflate: '{}' is no number from 0.01 to {} with at most three places; write 1.3",
                                printable(flags.inflate), scenario::kInflateMilliMax / 1000));
  if (const std::string problem = flags.svg ? cannot_write(*flags.svg) : ""; !problem.empty())
    wrong.push_back("--svg: " + problem);
  std::error_code unknown;
  for (const std::string& input : {flags.nodes, flags.pods})
    if (flags.svg && std::filesystem::equivalent(*flags.svg, input, unknown))
      wrong.push_back(fmt::format("--svg: '{}' is what is to be read; name another file", printable(*flags.svg)));
  return {.policy = flags.policy,
          .seed = seed.value_or(0),
          .inflate_milli = inflate.value_or(0),
          .batch = window_of(flags, wrong)};
}

using Read = void(std::string_view, const std::string&, scenario::Trace&, api::Problems&);

void read_into(const std::string& path, Read* read, scenario::Trace& trace, api::Problems& problems) {
  if (path.empty()) return;  // told with the flags
  const std::string shown = path == "-" ? "stdin" : printable(path);
  const auto text = read_file(path);
  if (text) read(*text, shown, trace, problems);
  else problems.push_back({shown, 0, "", text.error().message});
}

}  // namespace

CLI::Option* add_trace_options(CLI::App& command, TraceFlags& flags) {
  CLI::Option* const trace = command.add_option(
      "--trace", flags.trace, "Fill a fleet from CSV files until it overflows, instead of scheduling manifests");
  trace->type_name("openb");
  std::string policies = "Policy that places the pods: ";
  for (const std::string& name : policy_names()) policies += name + ", ";
  policies.resize(policies.size() - 2);
  const auto add = [&](const char* name, auto& value, const std::string& help, const char* type) {
    command.add_option(name, value, help)->needs(trace)->type_name(type);
  };
  add("--nodes", flags.nodes, "With --trace: CSV file of nodes", "FILE");
  add("--pods", flags.pods, "With --trace: CSV file of pods", "FILE");
  add("--inflate", flags.inflate, "With --trace: pods arrive until they ask for so many times the GPUs there are [1.3]",
      "NUMBER");
  add("--seed", flags.seed, "With --trace: draws the order of the pods [0]", "NUMBER");
  add("--policy", flags.policy, "With --trace: " + policies + " [berth]", "NAME");
  command.get_option("--policy")->transform([](const std::string& name) { return CLI::detail::to_lower(name); });
  add("--batch", flags.batch,
      "With --trace: pods wait, and are planned together, so many at a time; `all`: once all have arrived",
      "WINDOW|all");
  add("--svg", flags.svg, "With --trace: draws the curves into this file", "FILE");
  return trace;
}

int run_trace(const TraceFlags& flags, const std::string& format) {
  const io::SystemClock& clock = io::SystemClock::instance();
  const Time start = clock.monotonic();
  std::vector<std::string> wrong;
  const scenario::TraceOptions options = options_of(flags, format, wrong);
  api::Problems problems;
  scenario::Trace trace;
  read_into(flags.nodes, &scenario::read_trace_nodes, trace, problems);
  read_into(flags.pods, &scenario::read_trace_pods, trace, problems);
  for (const api::Problem& problem : problems) std::cerr << "error: " << api::to_string(problem) << "\n";
  for (const std::string& problem : wrong) std::cerr << "error: " << problem << "\n";
  if (!problems.empty() || !wrong.empty()) return kExitUsage;
  for (const std::string& note : scenario::models_without_nodes(trace)) std::cerr << "note: " << note << "\n";

  ProgressLine progress(std::cerr, isatty(STDERR_FILENO) == 1, start);
  const auto result = scenario::run_trace(trace, options, [&](int64_t arrived, int64_t target) {
    progress.update(clock.monotonic(), [&] {
      if (arrived >= target && options.batch > 0) return std::string("all pods arrived; planning");
      constexpr int64_t kWidth = 40;
      return fmt::format("[{:<{}}] {}% of the pods arrived", std::string(arrived * kWidth / target, '#'), kWidth,
                         arrived * 100 / target);
    });
  });
  if (!result) {
    std::cerr << "error: " << result.error().message << "\n";
    return kExitUsage;
  }
  const double elapsed_s = static_cast<double>((clock.monotonic() - start).nanos) / 1e9;
  const Status drawn = flags.svg ? write_file(*flags.svg, scenario::trace_svg(*result)) : Status();
  if (!drawn) std::cerr << "error: --svg: " << drawn.error().message << "\n";
  std::cout << (format == "json" ? scenario::trace_json(*result, elapsed_s) : scenario::trace_table(*result, elapsed_s))
            << std::flush;
  if (!std::cout) std::cerr << "error: cannot write the result\n";
  return drawn && std::cout ? kExitOk : kExitFailure;
}

}  // namespace berth::apps
