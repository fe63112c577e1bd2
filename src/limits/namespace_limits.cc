#include "limits/namespace_limits.h"

#include <fmt/format.h>

#include <utility>

#include "base/int128.h"
#include "limits/amounts.h"

namespace berth::limits {
namespace {

using model::ResourceList;

// What the quota counts of these amounts and has to compare: those that are not 0.
ResourceList counted(const api::ResourceQuota& quota, const ResourceList& amounts) {
  ResourceList out;
  for (const auto& [resource, amount] : amounts)
    if (amount != 0 && quota.hard.contains(resource)) out.set(resource, amount);
  return out;
}

// What the quota has used where its namespace holds just these.
ResourceList sum_of(const api::ResourceQuota& quota, const std::vector<Usage>& present) {
  ResourceList used;
  for (const auto& [resource, amount] : quota.hard)
    if (counted_of_pods(resource) || counted_of_claims(resource) || resource.starts_with("count/"))
      used.set(resource, 0);
  for (const Usage& usage : present)
    if (counts(quota, usage)) used.add(counted(quota, usage.amounts));
  return used;
}

}  // namespace

void NamespaceLimits::put(api::LimitRange range) {
  relieved_.insert(range.metadata.namespace_name);
  ranges_.put(std::move(range));
}

void NamespaceLimits::put(api::ResourceQuota quota, const std::vector<Usage>& present) {
  ResourceList used = sum_of(quota, present);
  put_used(std::move(quota), std::move(used));
}

void NamespaceLimits::put_used(api::ResourceQuota quota, ResourceList used) {
  const std::string space = quota.metadata.namespace_name, name = quota.metadata.name;
  relieved_.insert(space);
  quotas_[space].insert_or_assign(name, Account{std::move(quota), std::move(used)});
}

void NamespaceLimits::charge(const std::string& namespace_name, const Usage& usage, int sign) {
  const auto at = quotas_.find(namespace_name);
  if (at == quotas_.end()) return;
  for (auto& [name, account] : at->second)
    if (counts(account.quota, usage))
      for (const auto& [resource, amount] : counted(account.quota, usage.amounts))
        account.used.add(resource, sign * amount);
  if (sign < 0) relieved_.insert(namespace_name);
}

// Source: CheckRequest of k8s.io/apiserver/pkg/admission/plugin/resourcequota.
std::string NamespaceLimits::refused_by_quota(const std::string& namespace_name, const Usage& usage,
                                              const api::PodSpec* pod) const {
  const auto at = quotas_.find(namespace_name);
  if (at == quotas_.end()) return "";
  for (const auto& [name, account] : at->second) {
    if (pod == nullptr || !counts(account.quota, usage)) continue;
    if (const std::string why = unspecified(account.quota, *pod); !why.empty())
      return fmt::format("failed quota: {}: {}", name, why);
  }
  for (const auto& [name, account] : at->second) {
    if (!counts(account.quota, usage)) continue;
    ResourceList requested, used, limited;
    for (const auto& [resource, amount] : counted(account.quota, usage.amounts)) {
      const Int128 after = static_cast<Int128>(account.used.get(resource)) + amount;
      if (after <= account.quota.hard.get(resource)) continue;
      requested.set(resource, amount);
      used.set(resource, account.used.get(resource));
      limited.set(resource, account.quota.hard.get(resource));
    }
    if (!requested.empty())
      return fmt::format("exceeded quota: {}, requested: {}, used: {}, limited: {}", name, amounts_text(requested),
                         amounts_text(used), amounts_text(limited));
  }
  return "";
}

std::optional<Refusal> NamespaceLimits::charge_unless_refused(const std::string& namespace_name, const Usage& usage,
                                                              const api::PodSpec* pod) {
  if (!has_quota(namespace_name)) return std::nullopt;
  if (std::string why = refused_by_quota(namespace_name, usage, pod); !why.empty())
    return Refusal{.invalid = false, .text = std::move(why)};
  count(namespace_name, usage);
  return std::nullopt;
}

std::optional<Refusal> NamespaceLimits::admit(api::Pod& pod) {
  const std::string& space = pod.metadata.namespace_name;
  if (!ranges_.any(space))
    return has_quota(space) ? charge_unless_refused(space, usage_of(pod), &pod.spec) : std::nullopt;
  api::Pod completed = pod;
  ranges_.complete(space, completed.spec);
  if (auto refused = ranges_.refusal(space, completed.spec)) return refused;
  auto refused = charge_unless_refused(space, usage_of(completed), &completed.spec);
  if (!refused) pod = std::move(completed);
  return refused;
}

std::optional<Refusal> NamespaceLimits::admit(const api::PersistentVolumeClaim& claim) {
  const std::string& space = claim.metadata.namespace_name;
  if (auto refused = ranges_.refusal(space, claim.spec)) return refused;
  return charge_unless_refused(space, usage_of(claim), nullptr);
}

std::optional<Refusal> NamespaceLimits::admit(const std::string& namespace_name, std::string_view resource) {
  return charge_unless_refused(namespace_name, usage_of_one(resource), nullptr);
}

std::vector<std::string> NamespaceLimits::miscounted(const std::string& namespace_name,
                                                     const std::vector<Usage>& present) const {
  std::vector<std::string> out;
  const auto at = quotas_.find(namespace_name);
  if (at == quotas_.end()) return out;
  for (const auto& [name, account] : at->second)
    if (const ResourceList sum = sum_of(account.quota, present); sum != account.used)
      out.push_back(fmt::format("quota {}/{} has used {}, and what is there comes to {}", namespace_name, name,
                                amounts_text(account.used), amounts_text(sum)));
  return out;
}

std::vector<QuotaUse> NamespaceLimits::uses() const {
  std::vector<QuotaUse> out;
  for (const auto& [space, accounts] : quotas_)
    for (const auto& [name, account] : accounts) {
      QuotaUse& use = out.emplace_back(QuotaUse{space, name, {}, account.used});
      for (const auto& [resource, used] : account.used) use.hard.set(resource, account.quota.hard.get(resource));
    }
  return out;
}

}  // namespace berth::limits
