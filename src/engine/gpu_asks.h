// What the pods of workloads ask for of GPUs.
#pragma once

namespace berth::model {
struct PodSet;
struct Workload;
}  // namespace berth::model

namespace berth::engine {

bool asks_for_gpus(const model::PodSet& set);  // whole ones, instances, or a share
bool asks_for_gpus(const model::Workload& workload);
bool is_sliced(const model::Workload& workload);  // slices of its pods are to stand together

}  // namespace berth::engine
