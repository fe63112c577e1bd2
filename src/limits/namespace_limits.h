// NamespaceLimits: whether the API server would store an object, by the LimitRanges and ResourceQuotas of its
// namespace.
//
// It stands where the admissions LimitRanger and ResourceQuota stand in a server, and remembers what each quota has
// been charged. Objects that are stored already are counted whatever the quotas say, as a server does with those that
// were there before the quota. It is not thread-safe and does no I/O.
//
//   limits.put(quota, present);                      // a ResourceQuota that counts 4 GPUs, of which 2 are taken
//   if (auto refused = limits.admit(pod))            // asks for 4
//     refused->message("pods", "Pod", "train");      // pods "train" is forbidden: exceeded quota: gpu-quota, …
//
// Invariant: what a quota has used is the sum of what it counts of the objects that were admitted or counted, and not
// forgotten since; each is forgotten as it was when it was counted.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/limits.h"
#include "api/pod.h"
#include "api/volumes.h"
#include "limits/limit_ranges.h"
#include "limits/usage.h"

namespace berth::limits {

struct QuotaUse {
  std::string namespace_name, name;
  model::ResourceList hard, used;  // what is counted of it
};

class NamespaceLimits {
 public:
  void put(api::LimitRange range);
  // `present`: what the namespace holds now.
  void put(api::ResourceQuota quota, const std::vector<Usage>& present);

  // `used`: what its status says of it.
  void put_used(api::ResourceQuota quota, model::ResourceList used);

  // Does to a new object what the server does: a pod gets its defaults, and unless it is refused it is counted.
  std::optional<Refusal> admit(api::Pod& pod);
  std::optional<Refusal> admit(const api::PersistentVolumeClaim& claim);
  // Any other object of `resource`, such as "jobs.batch".
  std::optional<Refusal> admit(const std::string& namespace_name, std::string_view resource);

  const LimitRanges& ranges() const { return ranges_; }

  // An object that is stored, or is so no more.
  void count(const std::string& namespace_name, const Usage& usage) { charge(namespace_name, usage, 1); }
  void forget(const std::string& namespace_name, const Usage& usage) { charge(namespace_name, usage, -1); }

  bool has_quota(const std::string& namespace_name) const { return quotas_.contains(namespace_name); }
  // The namespaces where an object may be stored now that was refused before, since this was asked last.
  std::set<std::string> take_relieved() { return std::exchange(relieved_, {}); }
  // By namespace and name.
  std::vector<QuotaUse> uses() const;
  // What of `uses()` is not the sum of what the quota counts of `present`, all that its namespace holds: a sentence for
  // each, none while the invariant holds. For tests.
  std::vector<std::string> miscounted(const std::string& namespace_name, const std::vector<Usage>& present) const;

 private:
  struct Account {
    api::ResourceQuota quota;
    model::ResourceList used;
  };
  using Accounts = std::map<std::string, Account>;  // by the quota's name

  std::string refused_by_quota(const std::string& namespace_name, const Usage& usage, const api::PodSpec* pod) const;
  std::optional<Refusal> charge_unless_refused(const std::string& namespace_name, const Usage& usage,
                                               const api::PodSpec* pod);
  void charge(const std::string& namespace_name, const Usage& usage, int sign);

  LimitRanges ranges_;
  std::map<std::string, Accounts> quotas_;  // by namespace
  std::set<std::string> relieved_;
};

}  // namespace berth::limits
