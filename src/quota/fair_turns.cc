#include "quota/fair_turns.h"

#include <algorithm>

namespace berth::quota {

bool FairTurns::Earlier::operator()(const Child& a, const Child& b) const {
  if (a.share < b.share || b.share < a.share) return a.share < b.share;
  if (comes_earlier(*a.key, *b.key) || comes_earlier(*b.key, *a.key)) return comes_earlier(*a.key, *b.key);
  return a.node < b.node;
}

FairTurns::FairTurns(QuotaTree& tree, std::vector<Claim> claims)
    : tree_(tree), claims_(std::move(claims)), done_(claims_.size(), false), left_(claims_.size()) {
  for (size_t i = 0; i < claims_.size(); ++i) {
    if (claims_[i].round < kByShares) promised_.push_back(i);
    else lines_[claims_[i].queue.value].claims.push_back(i);
  }
  std::ranges::stable_sort(promised_, {}, [&](size_t i) { return claims_[i].round; });
  for (size_t i = 0; i < claims_.size(); ++i)
    if (claims_[i].round >= kByShares && lines_.at(claims_[i].queue.value).claims.front() == i)
      look_at(claims_[i].queue);
}

size_t FairTurns::first_below(QuotaNode node) const {
  if (const auto line = lines_.find(node.value); line != lines_.end())
    return line->second.done == line->second.claims.size() ? kNone : line->second.claims[line->second.done];
  const auto contest = contests_.find(node.value);
  return contest == contests_.end() || contest->second.empty() ? kNone : contest->second.begin()->claim;
}

// What is in use there, or its first claim, is another: so may those be that go on above it.
void FairTurns::look_at(QuotaNode queue) {
  for (QuotaNode node = queue; tree_.has_parent(node); node = tree_.parent(node)) {
    Contest& contest = contests_[tree_.parent(node).value];
    if (const auto known = in_contest_.find(node.value); known != in_contest_.end()) {
      contest.erase(known->second);
      in_contest_.erase(known);
    }
    const size_t first = first_below(node);
    if (first == kNone) continue;
    const Claim& claim = claims_[first];
    in_contest_[node.value] =
        contest.insert({tree_.share_with(node, claim.queue, *claim.usage), claim.key, first, node}).first;
  }
}

size_t FairTurns::next() {
  if (last_.valid()) look_at(last_);
  while (done_[first_]) ++first_;
  const bool is_promised = had_promised_ < promised_.size();
  const size_t out = is_promised ? promised_[had_promised_++] : first_below(tree_.root(claims_[first_].queue));
  last_ = claims_[out].queue;
  if (!is_promised) ++lines_.at(last_.value).done;
  done_[out] = true;
  --left_;
  return out;
}

}  // namespace berth::quota
