// Kept: what one version of an object cannot say, noted so that the way back restores it.
//
// A translation between versions is lossless if translating back gives what was there. Where it would not, the members
// that differ are noted as they would come back (`is`) and as they were (`was`), each with the object that they are in:
//
//   [{"at":["spec"],"is":{"admissionChecksStrategy":{…}},"was":{"admissionChecks":["dws"]}}]
//
// A note is heeded only while everything that it says in `is` still holds, and then as a whole: whoever has changed one
// of its members in the other version meant it. Notes travel in an annotation, which anyone may write who may write the
// object; so the caller passes on only those that may be heeded (webhook/kept_members.h), and says what they may do:
// never change what the other version shows. Pure functions; a note that is no note is none.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>

namespace berth::webhook {

// Whether it has the form of a note; where it points and what it says may still be anything.
bool is_note(const nlohmann::json& note);

// The notes by which apply_kept() turns `is` into `was`; an empty array if they are equal. Members of the root whose
// names are apiVersion, kind or metadata are not looked at.
nlohmann::json note_kept(const nlohmann::json& is, const nlohmann::json& was);

// Restores in `object` what `notes`, at most kNotesMax, say and what still holds: all of it if the caller `allows` the
// result, else note by note.
inline constexpr size_t kNotesMax = 16;
void apply_kept(nlohmann::json& object, const nlohmann::json& notes,
                const std::function<bool(const nlohmann::json&)>& allows);

}  // namespace berth::webhook
