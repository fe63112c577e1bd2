// Misplaced fields: where a field belongs that its object does not know, because the file has it a level off.
//
// Users write `nodeSelector` under a Deployment's spec, or `labels` under its template. What makes pods has places, by
// kind, at which fields of the pod and of its metadata belong; no other kind has any.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::api {

struct Misplaced {
  std::string_view field;  // as it should be written
  std::string home;        // where: "spec.template.spec"
};

// `key` of the object at `path` (Reader::path) in a document of this kind, none of whose `known` fields it is. Nothing
// where it belongs nowhere else, or is more likely one of `known` that is misspelt.
std::optional<Misplaced> find_misplaced(std::string_view kind, std::string_view path, std::string_view key,
                                        const std::vector<std::string_view>& known);

}  // namespace berth::api
