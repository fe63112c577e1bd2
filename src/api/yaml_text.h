// YAML text into a Tree, with yaml-cpp as the scanner and the scalar rules of sigs.k8s.io/yaml (go-yaml v2, YAML 1.1).
//
// Unquoted yes/no/on/off/y/n are booleans, 0x10, 0o17, 017 and 0b1 integers, as Kubernetes reads them. Keys become the
// strings that the JSON form has. Exceptions of yaml-cpp stop here.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "api/tree.h"

namespace berth::api {

struct YamlScalar {
  TreeKind kind = TreeKind::kString;
  std::string text;    // as JSON writes it (numbers), or the string itself
  bool finite = true;  // false for .inf and .nan, which JSON cannot hold
};

// What an unquoted scalar means.
YamlScalar resolve_yaml_scalar(std::string_view text);

// Reads every document in `text`, the first line of which is `first_line` of its file, calling `on_document` after
// each. False after a problem that ends the reading, which was reported.
bool read_yaml_text(std::string_view text, uint32_t first_line, TreeBuilder& builder,
                    const std::function<void(const TreeNode& root)>& on_document);

}  // namespace berth::api
