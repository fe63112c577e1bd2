// wire_compare: what the API server says of the same objects in JSON and in protobuf is the same to Berth.
//
//   wire_compare DIRECTORY
// reads pods.json, pods.protobuf, nodes.json and nodes.protobuf, each a whole list as the server sent it, and any
// NAME.status.json beside NAME.status.protobuf, the body of a refusal. Ends with 1 and says where they differ, or which
// members of Berth's types no object has set, since comparing those has shown nothing.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "api/decode.h"
#include "api/protobuf.h"
#include "api/protobuf_tables.h"
#include "kube/client.h"
#include "kube/watch_frames.h"
#include "members.h"

namespace berth::wire {
namespace {

using Path = std::filesystem::path;

class Comparison {
 public:
  explicit Comparison(Path folder) : folder_(std::move(folder)) {}

  template <typename T>
  void lists(const std::string& plural, const api::ProtobufMessage& table) {
    std::string text = read(plural + ".json");
    std::vector<T> left, right;
    std::vector<std::string> sent;  // as JSON, of both
    const auto keep = [&](std::vector<T>& out, std::string_view json) {
      auto object = api::decode_json<T>(json);
      if (!object) return complain(fmt::format("{}: {}\n  of {}", plural, object.error().message, json));
      out.push_back(std::move(*object));
      sent.emplace_back(json);
    };
    const auto as_json = kube::read_list_page(text, [&](std::string_view json) { keep(left, json); });
    const auto as_protobuf =
        kube::read_protobuf_page(read(plural + ".protobuf"), table, [&](std::string_view json, const Status& whole) {
          if (!whole) complain(plural + ": " + whole.error().message);
          keep(right, json);
        });
    if (!as_json || !as_protobuf) return complain(plural + ": not a list");
    if (as_json->resource_version != as_protobuf->resource_version) complain(plural + ": not at the same moment");
    if (left.empty() || left.size() != right.size())
      return complain(fmt::format("{}: {} objects in JSON, {} in protobuf", plural, left.size(), right.size()));
    for (size_t i = 0; i < left.size(); ++i) {
      std::vector<std::string> where;
      differences(left[i], right[i], left[i].metadata.name, where);
      for (const std::string& path : where)
        complain(fmt::format("{} differs\n  JSON: {}\n  protobuf: {}", path, sent[i], sent[left.size() + i]));
      if (where.empty() && !(left[i] == right[i])) complain(left[i].metadata.name + " differs");
      coverage_.see(right[i]);
    }
    std::printf("%zu %s are the same\n", left.size(), plural.c_str());
  }

  void statuses() {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      const std::string name = entry.path().filename();
      constexpr std::string_view kEnd = ".status.json";
      if (!name.ends_with(kEnd)) continue;
      const std::string stem = name.substr(0, name.size() - kEnd.size());
      const std::string other = read(stem + ".status.protobuf");
      const Error left = kube::status_error(200, read(name), "x"), right = kube::status_error(200, other, "x");
      if (left.message != right.message || left.code != right.code || left.http_status != right.http_status ||
          left.retry_after_s != right.retry_after_s || !api::is_protobuf(other) || left.http_status == 200)
        complain(fmt::format("{}: '{}' ({}, after {} s) and '{}' ({}, after {} s)", stem, left.message,
                             left.http_status, left.retry_after_s, right.message, right.http_status,
                             right.retry_after_s));
      ++count;
    }
    std::printf("%zu refusals are the same\n", count);
    if (count == 0) complain("no refusals to compare");
  }

  int end() {
    for (const std::string& member : coverage_.unset()) complain("no object has set " + member);
    if (failures_ == 0) std::printf("all %zu members of pods and nodes are set in some object\n", coverage_.size());
    return failures_ == 0 ? 0 : 1;
  }

 private:
  std::string read(const std::string& name) {
    std::ifstream file(folder_ / name, std::ios::binary);
    if (!file) complain("cannot read " + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  void complain(const std::string& what) {
    std::fprintf(stderr, "%s\n", what.c_str());
    ++failures_;
  }

  Path folder_;
  Coverage coverage_;
  int failures_ = 0;
};

}  // namespace
}  // namespace berth::wire

int main(int argc, char** argv) {
  using namespace berth;
  if (argc != 2) return std::fprintf(stderr, "usage: wire_compare DIRECTORY\n"), 2;
  wire::Comparison comparison(argv[1]);
  comparison.lists<api::Pod>("pods", api::kPodProtobuf);
  comparison.lists<api::Node>("nodes", api::kNodeProtobuf);
  comparison.statuses();
  return comparison.end();
}
