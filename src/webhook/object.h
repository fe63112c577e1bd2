// Looks into objects as the API server sends them: everything may be missing, and what has the wrong type is as good
// as.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace berth::webhook {

// The object at a member of an object; null where there is none.
inline const nlohmann::json* part_of(const nlohmann::json* object, std::string_view key) {
  if (object == nullptr || !object->is_object()) return nullptr;
  const auto member = object->find(std::string(key));
  return member != object->end() && member->is_object() ? &*member : nullptr;
}
inline const nlohmann::json* part_of(const nlohmann::json& object, std::string_view key) {
  return part_of(&object, key);
}

// The list at a member; an empty one where there is none.
inline const nlohmann::json& list_of(const nlohmann::json* object, std::string_view key) {
  static const nlohmann::json empty = nlohmann::json::array();
  if (object == nullptr || !object->is_object()) return empty;
  const auto member = object->find(std::string(key));
  return member != object->end() && member->is_array() ? *member : empty;
}

// The text at a member; empty where there is none.
inline std::string text_of(const nlohmann::json* object, std::string_view key) {
  if (object == nullptr || !object->is_object()) return {};
  const auto member = object->find(std::string(key));
  return member != object->end() && member->is_string() ? member->get<std::string>() : std::string();
}
inline std::string text_of(const nlohmann::json& object, std::string_view key) { return text_of(&object, key); }

inline std::string label_of(const nlohmann::json& object, std::string_view key) {
  return text_of(part_of(part_of(object, "metadata"), "labels"), key);
}
inline std::string annotation_of(const nlohmann::json& object, std::string_view key) {
  return text_of(part_of(part_of(object, "metadata"), "annotations"), key);
}
inline bool has_annotation(const nlohmann::json& object, std::string_view key) {
  const nlohmann::json* annotations = part_of(part_of(object, "metadata"), "annotations");
  return annotations != nullptr && annotations->contains(std::string(key));
}

}  // namespace berth::webhook
