// Job, Deployment and the other kinds that make pods from a template. src/workloads expands them.
// Source: k8s.io/api/batch/v1 and apps/v1 (1.35).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/meta.h"
#include "api/pod.h"

namespace berth::api {

struct Job {
  ObjectMeta metadata;
  std::optional<int32_t> parallelism;  // absent: 1, unless both are absent
  std::optional<int32_t> completions;  // absent: any pod's success completes the job
  bool indexed = false;                // completionMode: Indexed
  bool suspend = false;
  std::optional<int64_t> active_deadline_s;
  std::optional<int32_t> backoff_limit;  // pods that may fail; absent: 6, or no limit with one for each index
  bool has_backoff_limit_per_index = false;
  PodTemplate pod_template;
  int32_t active = 0;
  int32_t ready = 0;  // of the active
  int32_t succeeded = 0;
  int32_t failed = 0;
};

struct CronJob {
  ObjectMeta metadata;
  std::string schedule;
  bool suspend = false;
  Job job_template;  // metadata and spec of the jobs that it makes
};

struct Deployment {
  ObjectMeta metadata;
  int32_t replicas = 1;
  PodTemplate pod_template;
};

struct ReplicaSet {
  ObjectMeta metadata;
  int32_t replicas = 1;
  PodTemplate pod_template;
};

struct StatefulSet {
  ObjectMeta metadata;
  int32_t replicas = 1;
  int32_t ordinals_start = 0;
  std::vector<PersistentVolumeClaim> claim_templates;  // volumeClaimTemplates
  PodTemplate pod_template;
};

struct DaemonSet {
  ObjectMeta metadata;
  PodTemplate pod_template;
};

}  // namespace berth::api
