// LinedValue: a parsed document in which every value knows its line, for files that are Berth's own (scenarios).
//
// A part of it can be cut out as a Document again: that is how manifests stand inside a scenario and still report the
// scenario's lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/document.h"

namespace berth::scenario {

struct LinedMember;

struct LinedValue {
  enum class Kind : uint8_t { kNull, kBool, kNumber, kString, kList, kMap };
  Kind kind = Kind::kNull;
  int line = 0;
  std::string text;                  // scalars: as written in JSON, strings without quotes
  std::vector<LinedMember> members;  // kMap; kList with empty keys

  bool is_scalar() const { return kind != Kind::kList && kind != Kind::kMap; }
  // The member's value; null without it.
  const LinedValue* find(std::string_view key) const;
  // The member's text; `fallback` without it.
  std::string get(std::string_view key, std::string fallback = "") const;
};

struct LinedMember {
  std::string name;
  LinedValue value;
};

// `document` must come from api::read_plain_documents() or api::read_documents().
LinedValue to_lined_value(const api::Document& document);
// The value as a Document of its own.
api::Document to_document(const LinedValue& value, const std::string& file);

}  // namespace berth::scenario
