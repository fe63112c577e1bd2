// Objects for tests of this layer, from YAML as a user writes it.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "api/decode.h"

namespace berth::limits {

// The one object in `text`, which has to be sound.
template <typename T>
T read(const std::string& text) {
  api::Problems problems;
  for (const api::Document& document : api::read_documents(text, "a.yaml", problems))
    if (auto object = api::decode(document, problems)) return std::get<T>(*object);
  ADD_FAILURE() << (problems.empty() ? "no object" : api::to_string(problems.front()));
  return T{};
}

inline api::Pod pod_of(const std::string& spec) {
  return read<api::Pod>("{apiVersion: v1, kind: Pod, metadata: {name: train, namespace: ml}, spec: " + spec + "}");
}
// A pod of one container, "main".
inline api::Pod pod_with(const std::string& resources, const std::string& rest = "") {
  return pod_of("{containers: [{name: main, image: app, resources: " + resources + "}]" + rest + "}");
}
inline api::ResourceQuota quota_of(const std::string& spec, const std::string& name = "gpu-quota") {
  return read<api::ResourceQuota>("{apiVersion: v1, kind: ResourceQuota, metadata: {name: " + name +
                                  ", namespace: ml}, spec: " + spec + "}");
}
inline api::LimitRange range_of(const std::string& items, const std::string& name = "bounds") {
  return read<api::LimitRange>("{apiVersion: v1, kind: LimitRange, metadata: {name: " + name +
                               ", namespace: ml}, spec: {limits: [" + items + "]}}");
}

}  // namespace berth::limits
