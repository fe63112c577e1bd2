// Readers of what Kueue's objects say of AdmissionChecks.
#pragma once

#include <vector>

#include "api/decoders.h"

namespace berth::api {

// status.conditions of any object.
std::vector<Condition> conditions_of(const Reader& object);
// spec.admissionChecks of a ClusterQueue (v1beta1): names.
void read_check_names(const Reader& reader, std::vector<model::AdmissionCheckRule>& out);
// spec.admissionChecksStrategy: names, each with the flavors that it is for.
void read_check_strategy(const Reader& reader, std::vector<model::AdmissionCheckRule>& out);

void read_admission_check(const Reader& reader, AdmissionCheck& out);

}  // namespace berth::api
