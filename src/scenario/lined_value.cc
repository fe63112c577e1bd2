#include "scenario/lined_value.h"

#include <nlohmann/json.hpp>

#include "base/check.h"

namespace berth::scenario {
namespace {

using Json = nlohmann::ordered_json;
using Kind = LinedValue::Kind;

// `next` walks the lines of the document's values, which stand in the order of the text.
LinedValue convert(const Json& json, const std::vector<uint32_t>& lines, size_t& next) {
  LinedValue out;
  out.line = next < lines.size() ? static_cast<int>(lines[next]) : 0;
  ++next;
  if (json.is_structured()) {
    out.kind = json.is_array() ? Kind::kList : Kind::kMap;
    for (auto at = json.begin(); at != json.end(); ++at)
      out.members.push_back({json.is_array() ? "" : at.key(), convert(*at, lines, next)});
    return out;
  }
  out.kind = json.is_null()      ? Kind::kNull
             : json.is_boolean() ? Kind::kBool
             : json.is_string()  ? Kind::kString
                                 : Kind::kNumber;
  out.text = json.is_string() ? json.get<std::string>() : json.dump();
  return out;
}

Json revert(const LinedValue& value, std::vector<uint32_t>& lines) {
  lines.push_back(static_cast<uint32_t>(value.line));
  if (value.kind == Kind::kString) return value.text;
  if (value.is_scalar()) return Json::parse(value.kind == Kind::kNull ? "null" : value.text);
  Json out = value.kind == Kind::kList ? Json::array() : Json::object();
  for (const auto& [key, member] : value.members) {
    if (value.kind == Kind::kList) out.push_back(revert(member, lines));
    else out[key] = revert(member, lines);
  }
  return out;
}

}  // namespace

const LinedValue* LinedValue::find(std::string_view key) const {
  for (const auto& [name, value] : members)
    if (name == key) return &value;
  return nullptr;
}

std::string LinedValue::get(std::string_view key, std::string fallback) const {
  const LinedValue* value = find(key);
  if (value == nullptr) return fallback;
  return value->text;
}

LinedValue to_lined_value(const api::Document& document) {
  const Json json = Json::parse(document.json, nullptr, false);
  check(!json.is_discarded(), "a document holds valid JSON");
  size_t next = 0;
  return convert(json, document.lines, next);
}

api::Document to_document(const LinedValue& value, const std::string& file) {
  api::Document out;
  out.api_version = value.get("apiVersion");
  out.kind = value.get("kind");
  out.file = file;
  out.json = revert(value, out.lines).dump();
  return out;
}

}  // namespace berth::scenario
