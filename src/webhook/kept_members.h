// What a note of webhook/kept.h may restore: the members that one version of Kueue's API has and the other lacks.
//
// Notes are in an annotation, which does not pass through a schema. So each member that a note restores must be in the
// table of kept_members.cc, and have the form that the schema of its version gives it. Of a status nothing is
// restored, save the slices of a topology assignment that stand for the same domains: who may write annotations need
// not be one who may write a status.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace berth::webhook {

// Whether `note` may restore what it says, in an object of `kind` in `version`, "v1beta1" or "v1beta2". What is no
// note may not.
bool may_restore(std::string_view version, std::string_view kind, const nlohmann::json& note);

}  // namespace berth::webhook
