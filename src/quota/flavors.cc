#include "quota/flavors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "model/quantity.h"

namespace berth::quota {
namespace {

// Of a flavor for one resource: its mode, and how far it borrows.
struct Grade {
  FlavorMode mode = FlavorMode::kFit;
  int borrowing = 0;
};

// Over the resources of a group: the least preferred of them, by which flavors are compared; and what it comes to,
// which is the worst of each.
struct GroupGrade {
  Grade least;
  Grade in_all;
};

bool preferred(const Grade& a, const Grade& b, const model::FlavorFungibility& fungibility) {
  if (a.mode == FlavorMode::kNoFit || b.mode == FlavorMode::kNoFit) return a.mode > b.mode;
  if (fungibility.preemption_over_borrowing) return std::tuple(-a.borrowing, a.mode) > std::tuple(-b.borrowing, b.mode);
  return std::tuple(a.mode, -a.borrowing) > std::tuple(b.mode, -b.borrowing);
}

bool good_enough(const Grade& grade, const model::FlavorFungibility& fungibility) {
  if (grade.mode <= FlavorMode::kNoCandidates) return false;
  if (grade.borrowing > 0 && fungibility.try_next_before_borrowing) return false;
  return grade.mode == FlavorMode::kFit || !fungibility.try_next_before_preempting;
}

// Pods' selectors choose a flavor only by labels that some flavor of the group has; others are the nodes' affair.
class GroupSelector {
 public:
  GroupSelector(const model::ResourceGroup& group, const Flavors& flavors, const model::PodSet& pods) : pods_(pods) {
    for (const model::FlavorQuotas& quotas : group.flavors)
      if (const auto flavor = flavors.find(quotas.flavor); flavor != flavors.end())
        for (const auto& [key, value] : flavor->second.node_labels) keys_.insert(key);
    if (!pods.required_affinity) return;
    for (model::NodeSelectorTerm term : *pods.required_affinity) {
      std::erase_if(term.match_expressions, [&](const auto& wanted) { return !keys_.contains(wanted.key); });
      term.match_fields.clear();
      if (term.match_expressions.empty()) {  // says nothing about flavors, so all do
        terms_.clear();
        return;
      }
      terms_.push_back(std::move(term));
    }
  }

  bool matches(const model::ResourceFlavor& flavor) const {
    for (const auto& [key, value] : pods_.node_selector) {
      const std::string* have = flavor.node_labels.find(key);
      if (keys_.contains(key) && (have == nullptr || *have != value)) return false;
    }
    return terms_.empty() ||
           std::ranges::any_of(terms_, [&](const auto& term) { return term.matches(flavor.node_labels); });
  }

 private:
  const model::PodSet& pods_;
  std::set<std::string, std::less<>> keys_;
  std::vector<model::NodeSelectorTerm> terms_;
};

// Why pods of the set may not have the flavor; empty: they may.
std::string objection_to(const std::string& name, const Flavors& flavors, const GroupSelector& selector,
                         const model::PodSet& pods) {
  const auto found = flavors.find(name);
  if (found == flavors.end()) return fmt::format("flavor {} not found", name);
  const model::ResourceFlavor& flavor = found->second;
  std::vector<model::Toleration> tolerations = pods.tolerations;
  tolerations.insert(tolerations.end(), flavor.tolerations.begin(), flavor.tolerations.end());
  if (const size_t bad = first_untolerated(flavor.node_taints, tolerations); bad < flavor.node_taints.size()) {
    const model::Taint& taint = flavor.node_taints[bad];
    return fmt::format("untolerated taint {{{} {} {} <nil>}} in flavor {}", taint.key, taint.value,
                       to_string(taint.effect), name);
  }
  return selector.matches(flavor) ? "" : fmt::format("flavor {} doesn't match node affinity", name);
}

class Assigner {
 public:
  // `ledger` and `preemption`: null where nobody is made to go.
  Assigner(const QuotaTree& tree, Ledger* ledger, const Preemption* preemption, const Flavors& flavors,
           const FlavorRequest& request)
      : tree_(tree), ledger_(ledger), preemption_(preemption), flavors_(flavors), request_(request) {
    for (const model::ResourceGroup& group : request.queue->groups)
      for (const std::string& resource : group.resources) group_of_[resource] = &group;
  }

  Assignment run() {
    for (size_t i = 0; i < request_.workload->pod_sets.size(); ++i)
      if (!assign(i)) break;
    return std::move(out_);
  }

 private:
  // False if no flavor does for some resource: the pod sets after it do not matter.
  bool assign(size_t index) {
    const model::PodSet& pods = request_.workload->pod_sets[index];
    PodSetAssignment& set = out_.pod_sets.emplace_back();
    set.name = pods.name;
    set.count = pods.needed();
    if (!request_.counts.empty()) set.count = std::min(set.count, request_.counts[index]);
    std::vector<std::string> asked;
    for (const auto& [resource, amount] : pods.requests)
      if (group_of_.contains(resource) || (amount > 0 && set.count > 0 && resource != "pods"))
        asked.push_back(resource);
    for (const std::string& resource : asked) {
      if (set.flavors.contains(resource)) continue;
      const auto group = group_of_.find(resource);
      if (group == group_of_.end()) {
        set.reasons.push_back(fmt::format("resource {} unavailable in ClusterQueue", resource));
        return give_up(set);
      }
      if (!assign_group(index, *group->second, asked, set)) return give_up(set);
    }
    for (const std::string& resource : asked) {
      const std::string& flavor = set.flavors.at(resource).flavor;
      const int64_t amount = total(pods, set.count, resource, flavor);
      set.usage.set(resource, amount);
      const FlavorResource fr = tree_.find(flavor, resource);
      amount_of(fr) = saturating_add(amount_of(fr), amount);
    }
    return true;
  }

  int64_t total(const model::PodSet& pods, int32_t count, const std::string& resource,
                const std::string& flavor) const {
    int64_t out = 0;
    const bool beyond = __builtin_mul_overflow(asked_by_pod(pods, resource, flavors_, flavor), int64_t{count}, &out);
    return beyond ? std::numeric_limits<int64_t>::max() : out;
  }

  bool give_up(PodSetAssignment& set) {
    set.flavors.clear();
    out_.outcome = Outcome::kNoFit;
    return false;
  }

  int64_t& amount_of(FlavorResource fr) {
    for (auto& [known, amount] : out_.usage)
      if (known == fr) return amount;
    return out_.usage.emplace_back(fr, 0).second;
  }

  bool assign_group(size_t index, const model::ResourceGroup& group, const std::vector<std::string>& asked,
                    PodSetAssignment& set) {
    const size_t reasons_before = set.reasons.size();
    const model::PodSet& pods = request_.workload->pod_sets[index];
    const GroupSelector selector(group, flavors_, pods);
    const std::string& key = group.resources.front();
    const std::pair place(index, key);
    const auto is_passed = [&](size_t flavor) {
      const auto passed = request_.without == nullptr ? PassedFlavors::const_iterator() : request_.without->find(place);
      return request_.without != nullptr && passed != request_.without->end() && passed->second.contains(flavor);
    };
    const bool waited = std::exchange(out_.waits_for_quota, false), exceeded = std::exchange(out_.exceeds_quota, false);
    size_t at = 0;
    if (request_.resume != nullptr)
      if (const auto next = request_.resume->find(place); next != request_.resume->end()) at = next->second;
    GroupGrade best{{FlavorMode::kNoFit, std::numeric_limits<int>::max()}, {}};
    std::map<std::string, FlavorPick> picks, best_picks;
    bool all = at == 0;
    for (; at < group.flavors.size(); ++at) {
      const std::string& flavor = group.flavors[at].flavor;
      all &= !is_passed(at);
      if (is_passed(at)) continue;
      if (std::string why = objection_to(flavor, flavors_, selector, pods); !why.empty()) {
        set.reasons.push_back(std::move(why));
        continue;
      }
      picks.clear();
      const bool waits = out_.waits_for_quota, exceeds = std::exchange(out_.exceeds_quota, false);
      const GroupGrade grade = grade_of(flavor, group, pods, asked, set, picks);
      if (out_.exceeds_quota) out_.waits_for_quota = waits;  // whatever else becomes free of it
      out_.exceeds_quota |= exceeds;
      const bool enough = good_enough(grade.least, request_.queue->fungibility);
      if (!enough && !preferred(grade.least, best.least, request_.queue->fungibility)) continue;
      best = grade;
      best_picks = picks;
      out_.chosen[place] = at;
      if (enough) break;
    }
    const bool fits = best.least.mode != FlavorMode::kNoFit;
    // Whatever becomes free elsewhere is of no use where one group can never do.
    const bool never = !fits && all && out_.exceeds_quota && !out_.waits_for_quota;
    out_.waits_for_quota |= waited && !never;
    out_.exceeds_quota |= exceeded;
    if (!fits) return false;
    if (at + 1 < group.flavors.size()) out_.next_flavor[place] = at + 1;
    set.flavors.merge(best_picks);
    if (best.in_all.mode == FlavorMode::kFit) set.reasons.resize(reasons_before);
    else out_.outcome = std::min(out_.outcome, Outcome::kPreempt);
    out_.borrowing = std::max(out_.borrowing, best.in_all.borrowing);
    return true;
  }

  GroupGrade grade_of(const std::string& flavor, const model::ResourceGroup& group, const model::PodSet& pods,
                      const std::vector<std::string>& asked, PodSetAssignment& set,
                      std::map<std::string, FlavorPick>& picks) {
    GroupGrade out;
    for (const std::string& resource : asked) {
      if (std::ranges::find(group.resources, resource) == group.resources.end()) continue;
      const Grade grade = grade_resource(flavor, resource, total(pods, set.count, resource, flavor), set);
      if (preferred(out.least, grade, request_.queue->fungibility)) out.least = grade;
      if (out.least.mode == FlavorMode::kNoFit) return out;
      out.in_all = {std::min(out.in_all.mode, grade.mode), std::max(out.in_all.borrowing, grade.borrowing)};
      picks[resource] = {flavor, grade.mode};
    }
    return out;
  }

  Grade grade_resource(const std::string& flavor, const std::string& resource, int64_t asked, PodSetAssignment& set) {
    const QuotaNode queue = request_.claimant.queue;
    const FlavorResource fr = tree_.find(flavor, resource);
    const auto shown = [&](int64_t amount) { return model::format_quota(resource, amount); };
    const int64_t before = amount_of_or_zero(fr);
    const int64_t amount = saturating_add(before, asked);
    // An amount at the end of int64 stands for any above it.
    if (const int64_t most = tree_.potential(queue, fr);
        amount > most || amount == std::numeric_limits<int64_t>::max()) {
      out_.exceeds_quota = true;
      set.reasons.push_back(
          fmt::format("insufficient quota for {} in flavor {}, previously considered podsets requests "
                      "({}) + current podset request ({}) > maximum capacity ({})",
                      resource, flavor, shown(before), shown(asked), shown(most)));
      return {FlavorMode::kNoFit, 0};
    }
    const QuotaTree::Subtree subtree = tree_.lowest_subtree_that_fits(queue, fr, amount);
    const int64_t available = tree_.available(queue, fr);
    if (amount <= available) return {FlavorMode::kFit, subtree.height};
    out_.waits_for_quota = true;
    set.reasons.push_back(fmt::format("insufficient unused quota for {} in flavor {}, {} more needed", resource, flavor,
                                      shown(amount - available)));
    if (amount > tree_.quota(queue, fr).nominal && !subtree.has_parent && !may_preempt_while_borrowing())
      return {FlavorMode::kNoFit, subtree.height};
    return try_preemption(fr, amount);
  }

  int64_t amount_of_or_zero(FlavorResource fr) const {
    for (const auto& [known, amount] : out_.usage)
      if (known == fr) return amount;
    return 0;
  }

  bool may_preempt_while_borrowing() const {
    const model::QueuePreemption& policy = request_.queue->preemption;
    return policy.borrow_within_cohort || (preemption_ != nullptr && preemption_->is_fair() &&
                                           policy.reclaim_within_cohort != model::PreemptionPolicy::kNever);
  }

  // Whether room for this one resource could be made, and who would give it.
  Grade try_preemption(FlavorResource fr, int64_t amount) {
    const QuotaNode queue = request_.claimant.queue;
    if (preemption_ == nullptr)
      return {FlavorMode::kNoCandidates, tree_.lowest_subtree_that_fits(queue, fr, amount).height};
    const std::vector<Victim> victims =
        preemption_->victims({request_.claimant, request_.queue, {fr}, {{fr, amount}}, request_.spares_winners_of});
    const bool own =
        std::ranges::any_of(victims, [&](const Victim& v) { return ledger_->holder(v.id).queue == queue; });
    for (const Victim& victim : victims) ledger_->take_out(victim.id);
    const int borrowing = tree_.lowest_subtree_that_fits(queue, fr, amount).height;
    for (const Victim& victim : victims) ledger_->put_back(victim.id);
    if (victims.empty()) return {FlavorMode::kNoCandidates, borrowing};
    return {own ? FlavorMode::kPreempt : FlavorMode::kReclaim, borrowing};
  }

  const QuotaTree& tree_;
  Ledger* const ledger_;
  const Preemption* const preemption_;
  const Flavors& flavors_;
  const FlavorRequest& request_;
  std::map<std::string, const model::ResourceGroup*, std::less<>> group_of_;
  Assignment out_;
};

}  // namespace

std::string Assignment::message() const {
  std::vector<std::string> sentences;
  for (const PodSetAssignment& set : pod_sets) {
    if (set.reasons.empty()) continue;
    std::vector<std::string> reasons = set.reasons;
    std::ranges::sort(reasons);
    sentences.push_back(fmt::format("couldn't assign flavors to pod set {}: {}", set.name, fmt::join(reasons, ", ")));
  }
  return fmt::format("{}", fmt::join(sentences, "; "));
}

std::vector<FlavorResource> Assignment::scarce(const QuotaTree& tree) const {
  std::set<FlavorResource> found;
  for (const PodSetAssignment& set : pod_sets)
    for (const auto& [resource, pick] : set.flavors)
      if (pick.mode != FlavorMode::kFit) found.insert(tree.find(pick.flavor, resource));
  return {found.begin(), found.end()};
}

std::vector<FlavorResource> Assignment::taken() const {
  std::vector<FlavorResource> out;
  for (const auto& [fr, amount] : usage)
    if (amount > 0) out.push_back(fr);
  return out;
}

bool pass_over(const Assignment& assignment, const model::ClusterQueue& queue, PassedFlavors& passed) {
  bool left = false;
  for (const auto& [place, flavor] : assignment.chosen)
    for (const model::ResourceGroup& group : queue.groups) {
      if (group.resources.front() != place.second) continue;
      const auto known = passed.find(place);
      const size_t before = known == passed.end() ? 0 : known->second.size();
      if (before + 1 < group.flavors.size()) left |= passed[place].insert(flavor).second;
    }
  return left;
}

Assignment assign_flavors(Ledger& ledger, const Preemption& preemption, const Flavors& flavors,
                          const FlavorRequest& request) {
  return Assigner(ledger.tree(), &ledger, &preemption, flavors, request).run();
}

Assignment assign_free_flavors(const QuotaTree& tree, const Flavors& flavors, const FlavorRequest& request) {
  return Assigner(tree, nullptr, nullptr, flavors, request).run();
}

bool may_have_flavor(const Flavors& flavors, const model::ResourceGroup& group, const std::string& flavor,
                     const model::PodSet& pods) {
  return objection_to(flavor, flavors, GroupSelector(group, flavors, pods), pods).empty();
}

int64_t asked_by_pod(const model::PodSet& pods, const std::string& resource, const Flavors& flavors,
                     const std::string& flavor) {
  const int64_t asked = pods.requests.get(resource);
  const bool by_memory = pods.spec != nullptr && pods.spec->gpu_share.memory_bytes > 0;
  if (!by_memory || resource != model::kWholeGpuResource) return asked;
  const auto found = flavors.find(flavor);
  const int64_t memory = found == flavors.end() ? 0 : model::gpu_memory(found->second.node_labels);
  return memory > 0 ? model::part_of_memory(pods.spec->gpu_share, memory) : asked;
}

int32_t still_needed(const PodSetAssignment& given, const model::PodSet& pods) {
  return std::min(given.count, pods.needed());
}

void add_terms(const FlavorTerms& terms, model::SchedulingSpec& spec) {
  for (const auto& [key, value] : terms.node_labels) spec.node_selector.set(key, value);
  spec.tolerations.insert(spec.tolerations.end(), terms.tolerations.begin(), terms.tolerations.end());
}

std::set<std::string> flavor_names(const PodSetAssignment& given) {
  std::set<std::string> names;
  for (const auto& [resource, pick] : given.flavors) names.insert(pick.flavor);
  return names;
}

FlavorTerms terms_of(const PodSetAssignment& given, const Flavors& flavors) {
  FlavorTerms out;
  for (const std::string& name : flavor_names(given)) {
    const auto flavor = flavors.find(name);
    if (flavor == flavors.end()) continue;
    for (const auto& [key, value] : flavor->second.node_labels) out.node_labels.set(key, value);
    const std::vector<model::Toleration>& more = flavor->second.tolerations;
    out.tolerations.insert(out.tolerations.end(), more.begin(), more.end());
  }
  return out;
}

Amounts usage_of(const QuotaTree& tree, const std::vector<PodSetAssignment>& pod_sets,
                 const model::Workload& workload) {
  std::map<FlavorResource, int64_t> sums;
  for (size_t i = 0; i < pod_sets.size(); ++i) {
    const PodSetAssignment& set = pod_sets[i];
    const int64_t needed = still_needed(set, workload.pod_sets[i]);
    for (const auto& [resource, amount] : set.usage) {
      const FlavorResource fr = tree.find(set.flavors.at(resource).flavor, resource);
      if (fr.valid() && set.count > 0) sums[fr] = saturating_add(sums[fr], amount / set.count * needed);
    }
  }
  return {sums.begin(), sums.end()};
}

int tries_max(const model::ClusterQueue& queue, const model::Workload& workload) {
  size_t flavors = 0;
  for (const model::ResourceGroup& group : queue.groups) flavors += group.flavors.size();
  return static_cast<int>(flavors * workload.pod_sets.size());
}

}  // namespace berth::quota
