// Names: what the API server accepts as names, labels and resource names, and its words when it does not.
//
// Each check returns an empty string for a good value, else the API server's sentence.
// Source: k8s.io/apimachinery/pkg/util/validation, k8s.io/kubernetes/pkg/apis/core/validation (1.35).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth::api {

std::string check_dns1123_label(std::string_view value);      // container, namespace
std::string check_dns1123_subdomain(std::string_view value);  // pod, node, most objects
std::string check_path_segment(std::string_view value);       // budget
std::string check_qualified_name(std::string_view value);     // label keys, taint keys, resource names: [prefix/]name
std::string check_label_value(std::string_view value);

// What the API server calls them: `Invalid value: "x": why`, `Required value: why`,
// `Unsupported value: "x": supported values: "A", "B"`, `Duplicate value: "x"`.
std::string invalid_value(std::string_view value, std::string_view why);
std::string required_value(std::string_view why = "");
std::string unsupported_value(std::string_view value, std::vector<std::string_view> supported);
std::string duplicate_value(std::string_view value);

// The candidate that `word` is most likely a slip of the pen for (case, or up to a third of it edited), or its
// beginning, which is at least half of it; empty if none.
std::string_view closest(std::string_view word, const std::vector<std::string_view>& candidates);

// "path.key", or "path[key]" where the key is not a plain word.
std::string append_key(std::string path, std::string_view key);

}  // namespace berth::api
