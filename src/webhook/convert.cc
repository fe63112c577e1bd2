#include "webhook/convert.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/printable.h"
#include "webhook/kept.h"
#include "webhook/kept_members.h"
#include "webhook/object.h"
#include "webhook/versions.h"

namespace berth::webhook {
namespace {

using Json = nlohmann::json;

constexpr const char* kKeptOfOlder = "berth.dev/kept-v1beta1";
constexpr const char* kKeptOfStored = "berth.dev/kept-v1beta2";

using Translate = void (*)(Json& object, UnpackBudget& budget);
struct Direction {
  Translate there = nullptr, back = nullptr;
  const char* source = nullptr;  // versions
  const char* target = nullptr;
  const char* kept_of_source = nullptr;  // annotation of what it makes
  const char* kept_of_target = nullptr;  // annotation of what it is given
};
constexpr Direction kUp{&translate_up, &translate_down, "v1beta1", "v1beta2", kKeptOfOlder, kKeptOfStored};
constexpr Direction kDown{&translate_down, &translate_up, "v1beta2", "v1beta1", kKeptOfStored, kKeptOfOlder};

Json translated(Json object, Translate translate, UnpackBudget& budget) {
  translate(object, budget);
  return object;
}

// Those of the notes that may restore something in an object of this kind and version.
Json permitted(const Json& notes, std::string_view version, std::string_view kind) {
  Json out = Json::array();
  if (!notes.is_array() || notes.size() > kNotesMax) return out;
  for (const Json& note : notes)
    if (may_restore(version, kind, note)) out.push_back(note);
  return out;
}

// The notes in an annotation, which is taken away; null without or when they are none.
Json take_notes(Json& object, const char* annotation) {
  const auto metadata = object.find("metadata");
  if (metadata == object.end() || !metadata->is_object()) return nullptr;
  const auto annotations = metadata->find("annotations");
  if (annotations == metadata->end() || !annotations->is_object()) return nullptr;
  const auto found = annotations->find(annotation);
  if (found == annotations->end()) return nullptr;
  Json notes = found->is_string() && found->get_ref<const std::string&>().size() <= kKeptBytesMax
                   ? Json::parse(found->get_ref<const std::string&>(), nullptr, false)
                   : Json();
  annotations->erase(found);
  if (annotations->empty()) metadata->erase("annotations");
  return notes;
}

// A preference makes sense only with both policies at TryNextFlavor, and whoever changed these in v1beta1 did not see
// it.
void drop_idle_preference(Json& object) {
  const Json::json_pointer at("/spec/flavorFungibility");
  if (!object.contains(at) || !object[at].is_object()) return;
  Json& fungibility = object[at];
  for (const char* policy : {"whenCanBorrow", "whenCanPreempt"})
    if (!fungibility.contains(policy) || fungibility[policy] != "TryNextFlavor") fungibility.erase("preference");
}

// Those notes that fit into an annotation.
Result<Json> bounded(const Json& notes) {
  Json out = Json::array();
  size_t bytes = 2;
  for (const Json& note : notes) {
    const size_t more = note.dump(-1, ' ', false, Json::error_handler_t::replace).size() + 1;
    if (bytes + more <= kKeptBytesMax && out.size() < kNotesMax) {
      bytes += more;
      out.push_back(note);
    } else if (note["at"].empty() || note["at"][0] != "status") {
      return fail(ErrorCode::kUnsupported,
                  fmt::format("more than {} bytes of it can be said in one version only; use {}", kKeptBytesMax,
                              kStoredVersion));
    }
  }
  return out;
}

Result<Json> convert(Json object, const Direction& direction, UnpackBudget& budget) {
  const std::string kind = text_of(object, "kind");
  const Json kept = permitted(take_notes(object, direction.kept_of_target), direction.target, kind);
  (void)take_notes(object, direction.kept_of_source);  // copied from elsewhere: it says nothing of this object
  Json out = translated(object, direction.there, budget);
  const Json shown = translated(out, direction.back, budget);
  if (!kept.empty())
    apply_kept(out, kept, [&](const Json& restored) { return translated(restored, direction.back, budget) == shown; });
  if (budget.exceeded)
    return fail(ErrorCode::kUnsupported,
                fmt::format("the topology assignments of this request take more than {} MiB in v1beta1; list fewer "
                            "objects at once, or use {}",
                            kRequestUnpackedBytesMax >> 20, kStoredVersion));
  if (direction.there == &translate_up) drop_idle_preference(out);
  BERTH_TRY(notes, bounded(permitted(note_kept(shown, object), direction.source, kind)));
  if (!notes.empty())
    out["metadata"]["annotations"][direction.kept_of_source] =
        notes.dump(-1, ' ', false, Json::error_handler_t::replace);
  return out;
}

}  // namespace

Result<Json> convert_kueue(Json object, std::string_view version, UnpackBudget& budget) {
  const auto member = object.is_object() ? object.find("apiVersion") : object.end();
  if (!object.is_object() || member == object.end() || !member->is_string())
    return fail(ErrorCode::kInvalidInput, "this is no object with an apiVersion");
  const std::string from = member->get<std::string>();
  const auto known = [](std::string_view name) { return name == kOlderVersion || name == kStoredVersion; };
  if (!known(from) || !known(version))
    return fail(ErrorCode::kUnsupported,
                fmt::format("cannot convert '{}' to '{}': Berth converts between {} and {}", printable(from),
                            printable(version), kOlderVersion, kStoredVersion));
  if (from == version) return object;
  if (const std::string kind = text_of(object, "kind"); kind.ends_with("List") && object.contains("items"))
    return fail(ErrorCode::kUnsupported, "a list is not converted as one object; send its items");
  if (!object.contains("metadata") || !object["metadata"].is_object())
    return fail(ErrorCode::kInvalidInput, "an object without metadata cannot be converted");
  if (const auto found = object["metadata"].find("annotations");
      found != object["metadata"].end() && !found->is_object() && !found->is_null())
    return fail(ErrorCode::kInvalidInput, "metadata.annotations is no map");
  BERTH_TRY(out, convert(std::move(object), version == kStoredVersion ? kUp : kDown, budget));
  out["apiVersion"] = version;
  return std::move(out);
}

}  // namespace berth::webhook
