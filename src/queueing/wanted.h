// What the status of a Workload is to be, while the desk (queueing/desk.h) makes it up; for its .cc files alone.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "queueing/seen.h"
#include "queueing/write_json.h"

namespace berth::queueing {

struct Wanted {
  std::vector<StoredCondition> conditions;
  std::optional<StoredAdmission> admission;
  Json more = Json::object();  // other members of the status that are to change
  bool text_only = true;       // nothing but the reason why it waits differs from what is stored
  bool only_tells = false;     // the conditions say no more than that it waits
  Time wall;
  int64_t generation = 0;

  const StoredCondition* condition(const std::string& type) const {
    const auto at = std::ranges::find(conditions, type, &StoredCondition::type);
    return at == conditions.end() ? nullptr : &*at;
  }
  void set(const std::string& type, bool is_true, std::string reason, std::string message, bool of_waiting = false) {
    auto at = std::ranges::find(conditions, type, &StoredCondition::type);
    if (at == conditions.end()) {
      at = conditions.emplace(at);
      at->type = type;
    }
    const std::string status = is_true ? "True" : "False";
    if (at->status == status && at->reason == reason && at->message == message) return;
    text_only &= of_waiting && at->status == status;
    if (at->status != status) at->since = format_rfc3339(wall);
    at->status = status;
    at->reason = std::move(reason);
    at->message = std::move(message);
    at->observed_generation = generation;
  }
  // A condition that was true is so no longer; where it never was, nothing is said.
  void unset(const std::string& type, const std::string& reason, const std::string& message) {
    const auto at = std::ranges::find(conditions, type, &StoredCondition::type);
    if (at != conditions.end() && at->status == "True") set(type, false, reason, message);
  }
  // It has no quota any more, whatever was said before of what it waits for with quota.
  void set_not_admitted() {
    const std::string text = "The workload has no reservation";
    if (condition("Admitted") != nullptr) set("Admitted", false, "NoReservation", text);
    unset(kRoomLent, "NoReservation", text);
  }
  void change(const std::string& member, Json value) {
    more[member] = std::move(value);
    text_only = false;
  }
};

}  // namespace berth::queueing
