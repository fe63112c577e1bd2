// The annotations of manifests that mean something to Berth: which there are, what is wrong with their values, and
// which of those that mean nothing were meant for it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/pod.h"
#include "bridge/to_model.h"

namespace berth::scenario {

inline constexpr std::string_view kAnnotationPrefix = "berth.dev/";

bool is_of_queued_work(std::string_view key);  // has an effect on a Job that names a queue, not on its pods alone
bool is_known_annotation(std::string_view key);
// Of one that begins with kAnnotationPrefix and is not known: the one that was meant; empty: nobody can tell.
std::string_view near_annotation(std::string_view key);
// What is wrong with the value, and the way out; empty: nothing, or the annotation is none of these.
std::string wrong_annotation(std::string_view key, const std::string& value, const bridge::TopologyLevels& levels);

// Sentences about annotations of a pod, or of a template of pods, that Berth does not heed and that look as if it
// should: a share of a GPU that makes no sense, a slip in KAI's words for one, and devices that are named of a pod
// before it is bound. The API server takes them all, so that they are no problems of the manifest.
std::vector<std::string> unheeded_annotations(const api::ObjectMeta& metadata, const api::PodSpec& spec);

}  // namespace berth::scenario
