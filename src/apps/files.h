// Files: manifests from disk and standard input, named as the user named them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/document.h"
#include "base/result.h"
#include "scenario/manifests.h"

namespace berth::apps {

// The whole text of a file; "-" is standard input. At most api::kDocumentBytesMax.
Result<std::string> read_file(const std::string& path);

// Why write_file() would fail here, as far as that can be told beforehand; empty when nothing speaks against it.
std::string cannot_write(const std::string& path);
// Writes the whole file, or leaves what was there: first beside it, then in its place.
Status write_file(const std::string& path, std::string_view text);

// The files that `paths` name, in order: files as they are, of folders every *.yaml, *.yml and *.json directly inside,
// by name. What cannot be read, and a folder without such files, is a problem; the rest is read.
std::vector<scenario::ManifestFile> read_manifest_files(const std::vector<std::string>& paths, api::Problems& problems);

}  // namespace berth::apps
