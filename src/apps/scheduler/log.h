// Log: one line per happening on stderr, as text or JSON; the daemon's only way to talk besides metrics and events.
//
//   log_info("bound", {{"pod", "ml/train-0"}, {"node", "a100-3"}});
//   2026-01-02T03:04:05.678Z INFO bound pod=ml/train-0 node=a100-3
//   {"ts":"2026-01-02T03:04:05.678Z","level":"info","msg":"bound","pod":"ml/train-0","node":"a100-3"}
//
// Thread-safe. Values are quoted and messages made printable as needed, so that input cannot forge lines or send
// terminal escapes.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace berth::apps {

using LogFields = std::initializer_list<std::pair<std::string_view, std::string>>;

// `format`: text or json; `level`: debug, info, warn or error. Call once, before threads start.
void set_up_log(std::string_view format, std::string_view level);

void log_debug(std::string_view message, LogFields fields = {});
void log_info(std::string_view message, LogFields fields = {});
void log_warn(std::string_view message, LogFields fields = {});
void log_error(std::string_view message, LogFields fields = {});

}  // namespace berth::apps
