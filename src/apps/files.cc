#include "apps/files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "base/printable.h"

namespace berth::apps {
namespace {

namespace fs = std::filesystem;

Result<std::string> read_stream(std::istream& stream) {
  std::string text;
  std::vector<char> buffer(size_t{1} << 16);
  while (stream.read(buffer.data(), static_cast<std::streamsize>(buffer.size())), stream.gcount() > 0) {
    text.append(buffer.data(), static_cast<size_t>(stream.gcount()));
    if (text.size() > api::kDocumentBytesMax)
      return fail(ErrorCode::kInvalidInput, "the file is larger than 256 MiB; split it");
  }
  if (stream.bad())
    return fail(ErrorCode::kInvalidInput, fmt::format("cannot read the file: {}", std::strerror(errno)));
  return text;
}

std::vector<std::string> files_in(const std::string& folder, api::Problems& problems) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string extension = at->path().extension();
    std::error_code ignored;
    if (extension != ".yaml" && extension != ".yml" && extension != ".json") continue;
    if (fs::is_regular_file(at->path(), ignored)) out.push_back(at->path().lexically_normal());
  }
  if (error) problems.push_back({folder, 0, "", "cannot list the folder: " + error.message()});
  else if (out.empty())
    problems.push_back({folder, 0, "", "no *.yaml, *.yml or *.json in this folder; name the files"});
  std::sort(out.begin(), out.end());
  return out;
}

// Beside the file that is written, until it is whole.
std::string part_of(const std::string& path) { return fmt::format("{}.part-{}", path, getpid()); }

}  // namespace

Result<std::string> read_file(const std::string& path) {
  if (path == "-") return read_stream(std::cin);
  std::error_code error;
  if (fs::is_directory(path, error)) return fail(ErrorCode::kInvalidInput, "this is a folder; name a file in it");
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    return fail(ErrorCode::kNotFound, fmt::format("cannot read the file: {}; check the name", std::strerror(errno)));
  return read_stream(stream);
}

std::string cannot_write(const std::string& path) {
  const std::string shown = printable(path);
  std::error_code error;
  if (path.empty() || path == "-") return fmt::format("'{}' is no file; name one", shown);
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) return fmt::format("'{}' is a folder; name a file in it", shown);
  if (fs::exists(status) && !fs::is_regular_file(status))
    return fmt::format("'{}' is no regular file; name one", shown);
  const fs::path folder = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : fs::path(".");
  if (!fs::is_directory(folder, error))
    return fmt::format("there is no folder '{}'; make it, or name another", printable(folder.string()));
  const std::string part = part_of(path);
  if (!std::ofstream(part, std::ios::binary))
    return fmt::format("cannot write '{}': {}; name a file elsewhere", shown, std::strerror(errno));
  fs::remove(part, error);
  return "";
}

Status write_file(const std::string& path, std::string_view text) {
  const std::string part = part_of(path);
  std::ofstream stream(part, std::ios::binary);
  stream << text << std::flush;
  stream.close();
  std::error_code error;
  if (stream) fs::rename(part, path, error);
  if (stream && !error) return {};
  const std::string why = error ? error.message() : std::strerror(errno);
  std::error_code ignored;
  fs::remove(part, ignored);
  return fail(ErrorCode::kUnavailable, fmt::format("cannot write '{}': {}", printable(path), why));
}

std::vector<scenario::ManifestFile> read_manifest_files(const std::vector<std::string>& paths,
                                                        api::Problems& problems) {
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    std::error_code error;
    if (path != "-" && fs::is_directory(path, error)) {
      const auto inside = files_in(path, problems);
      names.insert(names.end(), inside.begin(), inside.end());
    } else {
      names.push_back(path);
    }
  }
  std::vector<scenario::ManifestFile> files;
  for (const std::string& name : names) {
    auto text = read_file(name);
    const std::string shown = name == "-" ? "stdin" : printable(name);
    if (text) files.push_back({shown, std::move(*text)});
    else problems.push_back({shown, 0, "", text.error().message});
  }
  return files;
}

}  // namespace berth::apps
