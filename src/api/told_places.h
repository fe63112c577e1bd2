// ToldPlaces: where in one document something was told, so that checks can ask whether what they look at holds.
//
// Reader keeps one beside the problems of its document and asks it in sound(). A place is told at most so often as
// there are problems, of which a document has a bounded number; asking costs the logarithm of that, never their number,
// since a document of ten thousand members is asked about ten thousand times. Paths are those of Reader::path(), as
// they are.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace berth::api {

class ToldPlaces {
 public:
  bool empty() const { return places_.empty(); }
  void add(std::string path) { places_.insert(std::move(path)); }
  // The member `key` of the object at `object` is a field that nobody knows, and was told of.
  void add_unknown_field(const std::string& object, std::string_view key) { unknown_[object].emplace_back(key); }

  // True if something was told of this very place.
  bool at(std::string_view path) const { return places_.contains(path); }
  // The same, or of a place in it.
  bool within(const std::string& path) const;
  // True if an unknown field that was told of is a slip of the pen for this member of the object.
  bool misspelt(const std::string& object, std::string_view key) const;

 private:
  std::set<std::string, std::less<>> places_;
  std::map<std::string, std::vector<std::string>> unknown_;
};

}  // namespace berth::api
