// Usage: what an object counts for in the quotas of its namespace, and what of it their scopes look at.
//
// A pod that has not ended counts as one of "pods", with its requests as "cpu" and "requests.cpu", "memory" and so on,
// with its limits as "limits.cpu", …, and with the extended resources that it requests as "requests.nvidia.com/gpu". Of
// limits of extended resources nothing is counted. One that has ended counts for "count/pods" alone until it is
// deleted. Source: k8s.io/kubernetes/pkg/quota/v1/evaluator/core (1.35). Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "api/limits.h"
#include "api/pod.h"
#include "api/volumes.h"

namespace berth::limits {

struct Usage {
  model::ResourceList amounts;           // by the names of quotas
  bool pod = false;                      // the next four are told of pods only
  bool terminating = false;              // has an activeDeadlineSeconds, so that it ends by itself
  bool best_effort = false;              // asks for no cpu and no memory, whatever else
  bool looks_across_namespaces = false;  // in a term of pod affinity or anti-affinity
  std::string class_name;                // of a pod its PriorityClass, of a claim its VolumeAttributesClass
};

Usage usage_of(const api::Pod& pod);
Usage usage_of(const api::PersistentVolumeClaim& claim);
// Any other object, of which only the number counts: "jobs.batch".
Usage usage_of_one(std::string_view resource);

// Whether some kind of object that is counted here counts under this name of a quota.
bool counted_of_pods(std::string_view quota_resource);
bool counted_of_claims(std::string_view quota_resource);

// Whether the quota counts the object: it limits something that such objects have, and all its scopes hold.
bool counts(const api::ResourceQuota& quota, const Usage& usage);

// What containers do not say although the quota limits cpu or memory, as Kubernetes tells of it: "must specify
// limits.cpu for: main; memory for: init,main". Empty if they do, and for a pod that asks as a whole.
std::string unspecified(const api::ResourceQuota& quota, const api::PodSpec& spec);

}  // namespace berth::limits
