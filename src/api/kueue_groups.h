// Reads the resource groups of ClusterQueues and Cohorts: flavors, with quota of each resource.
// Source: https://kueue.sigs.k8s.io/docs/reference/kueue.v1beta2/#kueue-x-k8s-io-v1beta2-ResourceGroup.
#pragma once

#include <vector>

#include "api/reader.h"
#include "model/queues.h"

namespace berth::api {

// Of `spec.resourceGroups`.
void read_groups(const Reader& reader, std::vector<model::ResourceGroup>& out);

// Of an object without a cohort above it, which `needed` would name: that it has no limits of borrowing and lending.
void check_no_limits(const Reader& object, const std::vector<model::ResourceGroup>& groups, std::string_view needed);

}  // namespace berth::api
