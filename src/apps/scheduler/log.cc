#include "apps/scheduler/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "io/system_clock.h"

namespace berth::apps {
namespace {

constexpr size_t kMessageBytesMax = 4000;

bool g_json = false;  // written once by set_up_log()

spdlog::logger& logger() {
  static const auto instance = [] {
    auto created = std::make_shared<spdlog::logger>("berth", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    created->set_pattern("%v");
    created->flush_on(spdlog::level::trace);
    return created;
  }();
  return *instance;
}

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

bool is_plain(const std::string& text) {
  const auto plain = [](unsigned char c) { return c > ' ' && c < 0x7F && c != '"' && c != '='; };
  return !text.empty() && std::all_of(text.begin(), text.end(), plain);
}

void write(spdlog::level::level_enum level, std::string_view name, std::string_view message, LogFields fields) {
  if (!logger().should_log(level)) return;
  const std::string time = format_rfc3339_micro(io::SystemClock::instance().wall());
  std::string line;
  if (g_json) {
    line = R"({"ts":")" + time + R"(","level":")" + std::string(name) + R"(","msg":)" + quoted(std::string(message));
    for (const auto& [key, value] : fields) line += ",\"" + std::string(key) + "\":" + quoted(value);
    line += "}";
  } else {
    std::string upper(name);
    for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    line = time + " " + upper + " " + printable(message, kMessageBytesMax);
    for (const auto& [key, value] : fields)
      line += " " + std::string(key) + "=" + (is_plain(value) ? value : quoted(value));
  }
  logger().log(level, line);
}

}  // namespace

void set_up_log(std::string_view format, std::string_view level) {
  g_json = format == "json";
  logger().set_level(spdlog::level::from_str(std::string(level)));
}

void log_debug(std::string_view message, LogFields fields) { write(spdlog::level::debug, "debug", message, fields); }
void log_info(std::string_view message, LogFields fields) { write(spdlog::level::info, "info", message, fields); }
void log_warn(std::string_view message, LogFields fields) { write(spdlog::level::warn, "warn", message, fields); }
void log_error(std::string_view message, LogFields fields) { write(spdlog::level::err, "error", message, fields); }

}  // namespace berth::apps
