// Where the pods of a set go, as the two versions write it: v1beta1 lists every domain with its values and pods;
// v1beta2 has slices of domains, in which what is equal stands once:
//
//   {"levels":["rack"],"slices":[{"domainCount":2,"podCounts":{"universal":1},
//     "valuesPerLevel":[{"individual":{"prefix":"rack-","roots":["1","2"]}}]}]}
//
// Source: TopologyAssignment in https://kueue.sigs.k8s.io/docs/reference/kueue.v1beta2/.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

namespace berth::webhook {

// A few bytes of v1beta2 may stand for any number of domains; an assignment that takes more than this has no other
// form.
inline constexpr size_t kUnpackedBytesMax = size_t{8} << 20;

// {levels, domains} as {levels, slices}: one slice, with what all its domains share written once. Nothing if malformed.
std::optional<nlohmann::json> pack_domains(const nlohmann::json& assignment);

// The opposite, whatever the slices. Nothing if malformed or too large.
std::optional<nlohmann::json> unpack_domains(const nlohmann::json& assignment);

}  // namespace berth::webhook
