// Prefers nodes that hold the pod's images already: GPU images are many gigabytes, and pulling one takes minutes.
//
// The sizes of the images that are there count, from 23 MiB up to 1000 MiB for each container. The most that a node can
// get is a fifth of kMaxScore: enough to choose between nodes that are much alike, too little for an empty node to beat
// one in use (policy/pack.cc), or for the replicas of a Deployment to crowd onto the node that pulled their image
// first. Source: kube-scheduler's ImageLocality, without its factor (nodes that have the image / all nodes): each pull
// anywhere would change the scores of all nodes.
#include <algorithm>

#include "base/int128.h"
#include "engine/policy.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

constexpr int64_t kMebibyte = int64_t{1} << 20;
constexpr int64_t kLeastBytes = 23 * kMebibyte;
constexpr int64_t kMostBytesPerContainer = 1000 * kMebibyte;
constexpr int64_t kMost = kMaxScore / 5;

// 0 when the node does not have the image. A name that is listed twice counts with its greater size.
int64_t bytes_on(const model::Node& node, const std::string& image) {
  const auto after = std::upper_bound(node.images.begin(), node.images.end(), image,
                                      [](const std::string& name, const auto& held) { return name < held.first; });
  return after != node.images.begin() && std::prev(after)->first == image ? std::prev(after)->second : 0;
}

int32_t image_locality(const PodClass& pod, const NodeView& node) {
  const std::vector<std::string>& images = pod.spec->images;
  if (images.empty() || node.node().images.empty()) return 0;
  const int64_t most = kMostBytesPerContainer * static_cast<int64_t>(images.size());
  Int128 held = 0;
  for (const std::string& image : images) held += std::max<int64_t>(bytes_on(node.node(), image), 0);
  const auto bytes = static_cast<int64_t>(std::clamp<Int128>(held, kLeastBytes, most));
  return static_cast<int32_t>(kMost * (bytes - kLeastBytes) / (most - kLeastBytes));
}

}  // namespace

extern const PolicyInfo kImageLocality =
    score_policy("image-locality", "prefers nodes that hold the pod's images already", 1, &image_locality);

}  // namespace berth::policy
