// The annotations of manifests that mean something to Berth, and the labels that it reads in the place of one: which
// there are, what is wrong with their values, and which of those that mean nothing were meant for it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/pod.h"
#include "bridge/to_model.h"

namespace berth::scenario {

inline constexpr std::string_view kAnnotationPrefix = "berth.dev/";

bool is_of_queued_work(std::string_view key);  // has an effect on a Job that names a queue, not on its pods alone

// What is to be said of one: what is wrong with it, and the way out, or a sentence that names it; mostly neither.
struct KeyFinding {
  std::string wrong, remark;
};
// `owner`: what makes pods and has the annotation itself, where these would need it; else empty.
KeyFinding find_in_annotation(std::string_view key, const std::string& value, const bridge::TopologyLevels& levels,
                              std::string_view owner);
// One that is of a Node, or of something else.
KeyFinding find_in_label(std::string_view key, const std::string& value, bool of_node);

// Sentences about annotations of a pod, or of a template of pods, that Berth does not heed and that look as if it
// should: a share of a GPU that makes no sense, a slip in KAI's words for one, and devices that are named of a pod
// before it is bound. The API server takes them all, so that they are no problems of the manifest.
std::vector<std::string> unheeded_annotations(const api::ObjectMeta& metadata, const api::PodSpec& spec);

}  // namespace berth::scenario
