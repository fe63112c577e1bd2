// The report as a user reads it in a terminal: GPUs first, then why what waits is waiting, then the nodes and a
// summary.
#pragma once

#include <string>

#include "scenario/report.h"

namespace berth::scenario {

// `wide` adds submission times, requests and, for what waits, each node's own reason.
std::string table_text(const Report& report, bool wide);

// "8 nvidia.com/gpu, 16 cpu, 64Gi memory": what a pod asks for, GPUs first, without "pods".
std::string requests_text(const model::ResourceList& requests);
// A share of a GPU: "0.5", "10Gi"; "?" for one that nobody can serve.
std::string share_text(const model::GpuShare& share);
// "h100", or "a100, h100" where pod sets or resources got different ones; "-" without any.
std::string flavors_text(const WorkloadReport& workload);
// Of a workload that waits: its place in the queue, what the queue has of what it asks for, and who holds it.
std::string quota_text(const WorkloadReport& workload);
// How many of the pods that "Job nlp/train" has made stand how, and what those are told that should run and do not;
// empty: it has none.
std::string owned_pods_text(const std::string& owner, const Report& report);
// All that the pod asks for.
std::string asks_text(const PodReport& pod);

}  // namespace berth::scenario
