// What v1beta1 and v1beta2 of kueue.x-k8s.io call differently, as two translations of an object's members.
//
// | kind | v1beta1 | v1beta2 |
// |---|---|---|
// | ClusterQueue | spec.cohort | spec.cohortName |
// | | spec.admissionChecks | spec.admissionChecksStrategy |
// | | whenCanBorrow: Borrow, whenCanPreempt: Preempt | MayStopSearch |
// | | - | spec.flavorFungibility.preference, spec.concurrentAdmissionPolicy |
// | | status.pendingWorkloadsStatus | - |
// | Cohort | spec.parent, an earlier name | spec.parentName |
// | LocalQueue | status.flavorUsage, status.flavors | status.flavorsUsage, - |
// | ResourceFlavor | - | spec.resourceWeights |
// | Workload | spec.priorityClassName and -Source | spec.priorityClassRef |
// | | status.accumulatedPastExexcutionTimeSeconds | status.accumulatedPastExecutionTimeSeconds |
// | | topologyAssignment: domains | slices |
// | AdmissionCheck | spec.retryDelayMinutes | - |
//
// What is not in the table is the same in both. Alone the translations lose what the other version cannot say;
// webhook/convert.h keeps what webhook/kept_members.h lists. Malformed members are left as they are, save topology
// assignments, which are left out. Source:
// https://kueue.sigs.k8s.io/docs/reference/.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace berth::webhook {

struct UnpackBudget;

// Translates the spec and status of an object, by its kind; apiVersion and metadata stay. Topology assignments that
// grow (webhook/topology_assignment.h) do so at the expense of the budget.
void translate_up(nlohmann::json& object, UnpackBudget& budget);    // v1beta1 to v1beta2
void translate_down(nlohmann::json& object, UnpackBudget& budget);  // v1beta2 to v1beta1

}  // namespace berth::webhook
