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

// A few bytes of v1beta2 may stand for very many domains, so what they take in memory in v1beta1 is bounded: for one
// object, whose further assignments have no other form, and for all objects of a request, which then fails.
inline constexpr size_t kObjectUnpackedBytesMax = size_t{16} << 20;
inline constexpr size_t kRequestUnpackedBytesMax = size_t{64} << 20;
struct UnpackBudget {
  size_t object_bytes = kObjectUnpackedBytesMax;
  size_t request_bytes = kRequestUnpackedBytesMax;
  bool exceeded = false;  // the request's
};

// {levels, domains} as {levels, slices}: one slice, with what all its domains share written once. Nothing if malformed.
std::optional<nlohmann::json> pack_domains(const nlohmann::json& assignment);

// The opposite, whatever the slices, at the expense of the budget. Nothing if malformed or too large.
std::optional<nlohmann::json> unpack_domains(const nlohmann::json& assignment, UnpackBudget& budget);

// How many domains the slices of {levels, slices} have. Nothing if malformed.
std::optional<size_t> domain_count(const nlohmann::json& assignment);

}  // namespace berth::webhook
