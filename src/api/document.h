// Documents: manifests as text, YAML or JSON, become JSON values of which every part still knows its line.
//
// This is the first step for anything read from a file; api/decode.h is the second. All problems of a file are
// collected: a broken document yields one Problem and the documents after it are still read. YAML is read as
// sigs.k8s.io/yaml reads it (YAML 1.1 scalars, merge keys); what that reader lets pass and a user can only have meant
// otherwise, such as a key given twice, is a Problem.
//
// Bytes that no text may hold (control characters, what is not UTF-8) are told of once for each line and read as
// kBadByte. Whoever reads a Document that is `damaged` judges no key or value with one further, nor what depends on it.
//
// Bounds: 256 MiB of text, 64 levels, 1,000,000 values that come from aliases. Stateless, thread-safe, no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::api {

// One thing that is wrong in a file. `message` says what is wrong and the way out; no part holds control characters.
struct Problem {
  std::string file;
  int line = 0;      // from 1; 0 when it concerns the whole file
  std::string path;  // "spec.containers[0].resources.limits[nvidia.com/gpu]"; empty at the document's root
  std::string message;
  bool read_on = false;  // of the text: all the rest of it was read nevertheless
};
using Problems = std::vector<Problem>;

// "pods.yaml:12: spec.nodeselector: unknown field; did you mean 'nodeSelector'?"
std::string to_string(const Problem& problem);

// One object of a file.
struct Document {
  std::string api_version;
  std::string kind;
  std::string file;
  std::string json;             // the whole object
  std::vector<uint32_t> lines;  // the line of every value of `json` in the order of the text, the root first
  // How the file writes numbers and booleans that JSON may write otherwise (1e19, 0x10, yes), by place in `lines`.
  std::vector<std::pair<uint32_t, std::string>> sources;
  bool damaged = false;  // there may be a kBadByte in it, and a Problem tells of its line
};

// U+FFFD.
inline constexpr std::string_view kBadByte = "\xEF\xBF\xBD";

inline constexpr size_t kDocumentBytesMax = size_t{256} << 20;
inline constexpr int kDocumentDepthMax = 64;
inline constexpr size_t kAliasedValuesMax = 1'000'000;

// The objects in `text`, in order: documents split at "---", streams of JSON objects, and the items of lists (kind
// List, PodList, …). Documents without content are skipped. What is wrong is appended to `problems`; `file` only names
// it.
std::vector<Document> read_documents(std::string_view text, const std::string& file, Problems& problems);

// The same for files that hold something else than Kubernetes objects (scenarios, configuration): each non-empty
// document whole, without asking for apiVersion and kind (taken where they are strings) and without expanding lists.
std::vector<Document> read_plain_documents(std::string_view text, const std::string& file, Problems& problems);

}  // namespace berth::api
