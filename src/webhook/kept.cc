#include "webhook/kept.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace berth::webhook {
namespace {

using Json = nlohmann::json;

// Appends notes of how `is` differs from `was`, both objects at `path`.
void compare(const Json& is, const Json& was, Json& path, Json& notes);

// True if the two can be compared item by item, so that a note need not hold the whole list.
bool comparable(const Json& is, const Json& was) {
  if (!is.is_array() || !was.is_array() || is.size() != was.size()) return false;
  for (size_t i = 0; i < is.size(); ++i)
    if (is[i] != was[i] && !(is[i].is_object() && was[i].is_object())) return false;
  return true;
}

// Its parts say nothing alone; it is noted whole.
constexpr std::string_view kWhole = "topologyAssignment";

// One member that differs: goes deeper, or false where the member itself has to be noted.
bool descend(const Json& is, const Json& was, const std::string& key, Json& path, Json& notes) {
  if (key == kWhole) return false;
  path.push_back(key);
  const bool objects = is.is_object() && was.is_object();
  const bool lists = comparable(is, was);
  if (objects) compare(is, was, path, notes);
  for (size_t i = 0; lists && i < is.size(); ++i) {
    path.push_back(i);
    compare(is[i], was[i], path, notes);
    path.erase(path.size() - 1);
  }
  path.erase(path.size() - 1);
  return objects || lists;
}

void compare(const Json& is, const Json& was, Json& path, Json& notes) {
  if (is == was) return;
  Json before = Json::object(), after = Json::object();
  for (const auto& [key, value] : is.items()) {
    const auto other = was.find(key);
    if (other == was.end()) {
      before[key] = value;
    } else if (*other != value && !descend(value, *other, key, path, notes)) {
      before[key] = value;
      after[key] = *other;
    }
  }
  for (const auto& [key, value] : was.items())
    if (!is.contains(key)) after[key] = value;
  if (before.empty() && after.empty()) return;
  notes.push_back(Json{{"at", path}, {"is", std::move(before)}, {"was", std::move(after)}});
}

// The object at `path`; null where there is none.
Json* find(Json& root, const Json& path) {
  Json* here = &root;
  for (const Json& step : path) {
    if (step.is_string() && here->is_object()) {
      const auto member = here->find(step.get_ref<const std::string&>());
      if (member == here->end()) return nullptr;
      here = &*member;
    } else if (step.is_number_unsigned() && here->is_array() && step.get<size_t>() < here->size()) {
      here = &(*here)[step.get<size_t>()];
    } else {
      return nullptr;
    }
  }
  return here->is_object() ? here : nullptr;
}

// Every member that the note speaks of is as it says.
bool holds(const Json& object, const Json& note) {
  for (const auto& [key, value] : note["is"].items()) {
    const auto member = object.find(key);
    if (member == object.end() || *member != value) return false;
  }
  for (const auto& [key, value] : note["was"].items())
    if (!note["is"].contains(key) && object.contains(key)) return false;
  return true;
}

Json members_of(const Json& object) {
  Json out = object;
  for (const char* key : {"apiVersion", "kind", "metadata"}) out.erase(key);
  return out;
}

// Restores what one note says, if it holds.
void heed(Json& object, const Json& note) {
  Json* target = is_note(note) ? find(object, note["at"]) : nullptr;
  if (target == nullptr || !holds(*target, note)) return;
  for (const auto& [key, value] : note["is"].items())
    if (!note["was"].contains(key)) target->erase(key);
  for (const auto& [key, value] : note["was"].items()) (*target)[key] = value;
}

}  // namespace

bool is_note(const Json& note) {
  const auto has = [&](const char* key) { return note.contains(key) && note[key].is_object(); };
  return note.is_object() && note.contains("at") && note["at"].is_array() && !note["at"].empty() && has("is") &&
         has("was") && note["at"][0] != "metadata";
}

Json note_kept(const Json& is, const Json& was) {
  Json notes = Json::array(), path = Json::array();
  compare(members_of(is), members_of(was), path, notes);
  return notes;
}

void apply_kept(Json& object, const Json& notes, const std::function<bool(const Json&)>& allows) {
  if (!notes.is_array() || notes.size() > kNotesMax) return;
  Json restored = object;
  for (const Json& note : notes) heed(restored, note);
  if (allows(restored)) {
    object = std::move(restored);
    return;
  }
  for (const Json& note : notes) {
    restored = object;
    heed(restored, note);
    if (allows(restored)) object = std::move(restored);
  }
}

}  // namespace berth::webhook
