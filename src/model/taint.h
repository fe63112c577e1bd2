// Taints and tolerations: which pods a node turns away.
// Source: k8s.io/api/core/v1 (Taint, Toleration, ToleratesTaint).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth::model {

enum class TaintEffect : uint8_t { kNoSchedule, kPreferNoSchedule, kNoExecute };

struct Taint {
  std::string key;
  std::string value;
  TaintEffect effect = TaintEffect::kNoSchedule;
  friend bool operator==(const Taint&, const Taint&) = default;
};

enum class TolerationOperator : uint8_t { kEqual, kExists, kLt, kGt };

struct Toleration {
  std::string key;  // empty with kExists: every taint
  std::string value;
  TolerationOperator op = TolerationOperator::kEqual;
  bool any_effect = true;  // no effect named: all effects
  TaintEffect effect = TaintEffect::kNoSchedule;

  bool tolerates(const Taint& taint) const;
  friend bool operator==(const Toleration&, const Toleration&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const Toleration& t) {
    return H::combine(std::move(state), t.key, t.value, t.op, t.any_effect, t.effect);
  }
};

// True if any of `tolerations` tolerates `taint`.
bool tolerates(const std::vector<Toleration>& tolerations, const Taint& taint);
// The first of `taints` that keeps pods with these tolerations away (NoSchedule, NoExecute); its size when none does.
size_t first_untolerated(const std::vector<Taint>& taints, const std::vector<Toleration>& tolerations);

// "NoSchedule", "PreferNoSchedule", "NoExecute".
std::string_view to_string(TaintEffect effect);
// "key=value:NoSchedule", or "key:NoSchedule" without a value, as kubectl writes it.
std::string to_string(const Taint& taint);

}  // namespace berth::model
