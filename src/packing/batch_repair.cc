#include "packing/batch_repair.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <tuple>

#include "base/rng.h"

namespace berth::packing {
namespace {

// The repair ends when so many rounds over the nodes that are not full brought nothing.
constexpr int kIdleRoundsMax = 8;

using Places = std::vector<std::optional<Placement>>;

// Equal requests.
struct RequestClass {
  Request request;
  std::vector<uint32_t> waiting;  // indices in the window, descending: the first in the queue at the back
};

// What the batch put on a node and may move.
struct Item {
  uint32_t index = 0;  // in the window
  DeviceMask devices = 0;
};

// Better is what uses more of the devices; then what serves more requests; then what takes more CPU, as what then waits
// asks for less.
struct Use {
  int64_t milli = 0;
  size_t requests = 0;
  int64_t cpu_milli = 0;
  friend auto operator<=>(const Use&, const Use&) = default;
};

class Repair {
 public:
  Repair(const Fleet& fleet, std::span<const WaitingRequest> waiting, const Places& places, const BatchOptions& options)
      : waiting_(waiting),
        nodes_(fleet.nodes()),
        items_(nodes_.size()),
        class_of_(waiting.size()),
        by_size_(kMilliPerDevice + 1),
        looks_left_(options.looks_max),
        rng_(options.seed) {
    absl::flat_hash_map<Request, uint32_t> known;
    for (size_t n = waiting.size(); n-- > 0;) {  // so that the first in the queue comes to the back of its class
      if (!is_movable(n)) continue;
      const Request& request = waiting[n].request;
      const auto [at, is_new] = known.try_emplace(request, static_cast<uint32_t>(classes_.size()));
      if (is_new) classes_.push_back({.request = request, .waiting = {}});
      class_of_[n] = at->second;
      const auto index = static_cast<uint32_t>(n);
      if (places[n]) items_[places[n]->node].push_back({.index = index, .devices = places[n]->devices});
      else classes_[at->second].waiting.push_back(index);
    }
    for (uint32_t c = 0; c < classes_.size(); ++c) by_size_[classes_[c].request.milli_each].push_back(c);
    for (int32_t milli = 1; milli <= kMilliPerDevice; ++milli) {
      if (by_size_[milli].empty()) continue;
      sizes_.push_back(milli);
      std::stable_sort(by_size_[milli].begin(), by_size_[milli].end(), [&](uint32_t a, uint32_t b) {
        return classes_[a].request.cpu_milli < classes_[b].request.cpu_milli;
      });
    }
  }

  void run() {
    std::vector<uint32_t> used;  // by the batch: elsewhere nothing fits, and nothing moves
    for (uint32_t n = 0; n < nodes_.size(); ++n)
      if (!items_[n].empty()) used.push_back(n);
    std::vector<uint32_t> open = used;
    for (int idle = 0; idle < kIdleRoundsMax && looks_left_ > 0; ++idle) {
      std::erase_if(open, [&](uint32_t n) { return nodes_[n].devices().free() == 0; });
      if (open.empty()) return;
      for (const uint32_t n : open) {
        if (looks_left_ <= 0) return;
        const uint32_t other = used[rng_.below(used.size())];
        const bool alone = refill(std::array{n});
        const bool together = other != n && refill(std::array{other, n});
        if (alone || together) idle = -1;
      }
    }
  }

  // Brings the fleet and the places to what was found.
  void write(Fleet& fleet, Places& places) const {
    Places after(places.size());
    for (uint32_t n = 0; n < nodes_.size(); ++n)
      for (const Item& item : items_[n]) after[item.index] = {.node = n, .devices = item.devices};
    std::vector<size_t> moved;
    for (size_t n = 0; n < places.size(); ++n)
      if (is_movable(n) && places[n] != after[n]) moved.push_back(n);
    for (const size_t n : moved)
      if (places[n]) fleet.give_back(waiting_[n].request, *places[n]);
    for (const size_t n : moved)
      if (after[n]) fleet.take(waiting_[n].request, *after[n]);
    for (const size_t n : moved) places[n] = after[n];
  }

 private:
  bool is_movable(size_t n) const {
    return waiting_[n].request.devices == 1 && waiting_[n].passed_over < kPassedOverMax;
  }

  // Where the request stands, or would stand, among those of its class that wait: near the end, if it came early.
  std::vector<uint32_t>::iterator turn_of(uint32_t index) {
    std::vector<uint32_t>& waiting = classes_[class_of_[index]].waiting;
    return std::lower_bound(waiting.begin(), waiting.end(), index, std::greater<>());
  }
  void waits_again(uint32_t index) { classes_[class_of_[index]].waiting.insert(turn_of(index), index); }
  void waits_no_more(uint32_t index) { classes_[class_of_[index]].waiting.erase(turn_of(index)); }

  void find_fullest() {
    std::bitset<kMilliPerDevice + 1> reached(1);
    for (const int32_t size : sizes_) {
      const auto waits = [&](uint32_t c) { return !classes_[c].waiting.empty(); };
      if (std::none_of(by_size_[size].begin(), by_size_[size].end(), waits)) continue;
      for (int32_t copies = size; copies <= kMilliPerDevice; copies *= 2) reached |= reached << copies;
    }
    for (int32_t room = 1; room <= kMilliPerDevice; ++room) fullest_[room] = reached[room] ? room : fullest_[room - 1];
  }

  Use use_of(std::span<const uint32_t> nodes) const {
    Use use;
    for (const uint32_t n : nodes) {
      for (const Item& item : items_[n]) {
        use.milli += waiting_[item.index].request.milli_each;
        use.cpu_milli += waiting_[item.index].request.cpu_milli;
      }
      use.requests += items_[n].size();
    }
    return use;
  }

  // Tries another filling of the nodes, one after the other; whether it is better.
  bool refill(std::span<const uint32_t> nodes) {
    looks_left_ -= static_cast<int64_t>(sizes_.size());
    const Use use_before = use_of(nodes);
    std::vector<std::pair<std::vector<Item>, Node>> before;
    for (const uint32_t n : nodes) {
      before.emplace_back(items_[n], nodes_[n]);
      for (const Item& item : items_[n]) {
        nodes_[n].give_back(waiting_[item.index].request, item.devices);
        waits_again(item.index);
      }
      items_[n].clear();
    }
    find_fullest();
    for (const uint32_t n : nodes)
      for (int d = 0; d < nodes_[n].devices().count; ++d) fill(n, d);
    if (use_before < use_of(nodes)) return true;
    for (const uint32_t n : nodes)
      for (const Item& item : items_[n]) waits_again(item.index);
    for (size_t k = 0; k < nodes.size(); ++k) {
      for (const Item& item : before[k].first) waits_no_more(item.index);
      items_[nodes[k]] = std::move(before[k].first);
      nodes_[nodes[k]] = before[k].second;
    }
    return false;
  }

  void fill(uint32_t n, int device) {
    Node& node = nodes_[n];
    while (node.devices().free_milli[device] > 0) {
      const auto chosen = choose(node, node.devices().free_milli[device]);
      if (!chosen) return;
      std::vector<uint32_t>& waiting = classes_[*chosen].waiting;
      const Item item = {.index = waiting.back(), .devices = DeviceMask{1} << device};
      waiting.pop_back();
      node.take(waiting_[item.index].request, item.devices);
      items_[n].push_back(item);
    }
  }

  // A class for a device with so much room: of a size, drawn, that allows the device to become fullest.
  std::optional<uint32_t> choose(const Node& node, int32_t room) {
    std::optional<uint32_t> chosen;
    int32_t fullest = 0;
    uint64_t equals = 0;
    for (const int32_t size : sizes_) {
      if (size > room) break;
      const int32_t reach = size + fullest_[room - size];
      if (reach < fullest) continue;
      const auto found = choose_of(node, size);
      if (!found) continue;
      if (reach > fullest) equals = 0;
      fullest = reach;
      if (rng_.below(++equals) == 0) chosen = found;
    }
    return chosen;
  }

  // Of this size a class that leaves the rest of the node its part of the CPU, drawn among those that ask for most;
  // without one, that which asks for least.
  std::optional<uint32_t> choose_of(const Node& node, int32_t size) {
    const int64_t modest = node.cpu_milli() * size / node.devices().free();
    std::optional<uint32_t> chosen;
    for (const uint32_t c : by_size_[size]) {  // ascending by CPU
      --looks_left_;
      const Request& request = classes_[c].request;
      if (request.cpu_milli > node.cpu_milli() || (chosen && request.cpu_milli > modest)) break;
      if (classes_[c].waiting.empty() || request.memory_bytes > node.memory_bytes() ||
          (request.models >> node.model() & 1) == 0)
        continue;
      if (!chosen || rng_.chance(50)) chosen = c;
    }
    return chosen;
  }

  std::span<const WaitingRequest> waiting_;
  std::vector<Node> nodes_;
  std::vector<std::vector<Item>> items_;  // by node
  std::vector<RequestClass> classes_;
  std::vector<uint32_t> class_of_;                      // by index in waiting_
  std::vector<std::vector<uint32_t>> by_size_;          // of each, classes, ascending by CPU
  std::vector<int32_t> sizes_;                          // ascending
  std::array<int32_t, kMilliPerDevice + 1> fullest_{};  // the most of so much room that the sizes can fill
  int64_t looks_left_;
  Rng rng_;
};

}  // namespace

void repair_batch(Fleet& fleet, std::span<const WaitingRequest> waiting, std::vector<std::optional<Placement>>& places,
                  const BatchOptions& options) {
  Repair repair(fleet, waiting, places, options);
  repair.run();
  repair.write(fleet, places);
}

}  // namespace berth::packing
