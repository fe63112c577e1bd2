// How admission is to go; a cluster has one such choice.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace berth::quota {

// When the preemptor may take from another node of the tree: its share with the workload is at most the victim's
// without it; it is less than the victim's is now.
enum class FairRule : uint8_t { kLessThanOrEqualToFinalShare, kLessThanInitialShare };
using FairRules = std::vector<FairRule>;

struct AdmissionOptions {
  std::optional<FairRules> fair = {};  // none: without fair sharing
};

}  // namespace berth::quota
