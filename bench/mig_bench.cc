// mig_bench: how much of a fleet of MIG devices random slices keep allocated, by who chooses their places.
//
// 100 A100-40GB that may be cut freely; slices of a mix of profiles come at random times, in a share of the fleet's
// memory slices (the load), and stay for a random time. Prints JSON: for each stream, mix and load, the memory slices
// that were allocated on average, in per cent of all, by most_room(), by first_fit(), by first-fit that takes the last
// start instead of the first, and a bound that nobody can pass; for each of the seeds that all share. And what
// plan_geometry() serves of random fleets, beside what they serve uncut, and what it costs in CPU time.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <deque>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <queue>
#include <string>
#include <vector>

#include "base/rng.h"
#include "packing/mig_geometry.h"
#include "packing/mig_placement.h"

namespace berth {
namespace {

using model::MigLayout;
using model::MigModel;
using packing::MigDemand;
using packing::MigPlace;

constexpr int kDevices = 100;
constexpr int kArrivals = 20'000;
constexpr uint64_t kSeeds = 3;
constexpr size_t kProfiles = 7;

const MigModel& a100() { return *model::read_gpu_product("NVIDIA-A100-SXM4-40GB").model; }

// Shares of the model's profiles: 1g.5gb, 1g.5gb+me, 1g.10gb, 2g.10gb, 3g.20gb, 4g.20gb, 7g.40gb.
using Shares = std::array<double, kProfiles>;

struct Mix {
  const char* name;
  Shares shares;
};

constexpr Mix kMixes[] = {
    {"all alike", {1. / 6, 0, 1. / 6, 1. / 6, 1. / 6, 1. / 6, 1. / 6}},
    {"mostly small", {0.30, 0, 0.25, 0.20, 0.10, 0.10, 0.05}},
    {"mostly large", {0.05, 0, 0.10, 0.10, 0.20, 0.25, 0.30}},
    {"small and large", {0.30, 0, 0.15, 0.05, 0.05, 0.15, 0.30}},
    {"1g, 4g and 7g", {0.60, 0, 0, 0, 0, 0.20, 0.20}},
    {"1g, 2g and 4g", {0.20, 0, 0, 0.40, 0, 0.40, 0}},
    {"1g to 7g, no double memory", {0.40, 0, 0, 0.30, 0.15, 0.10, 0.05}},
};

enum class Rest { kDropped, kInOrder, kAny };  // what becomes of slices that find no place

struct Stream {
  const char* name;
  bool leave;  // whether slices ever leave
  Rest rest;
  double load;
};

constexpr Stream kStreams[] = {
    {"nobody leaves, the rest is dropped", false, Rest::kDropped, 2.0},
    {"they leave, the rest is dropped", true, Rest::kDropped, 0.85},
    {"they leave, the rest is dropped", true, Rest::kDropped, 1.0},
    {"they leave, the rest is dropped", true, Rest::kDropped, 1.3},
    {"they leave, the rest waits in order", true, Rest::kInOrder, 1.0},
    {"they leave, the rest waits in order", true, Rest::kInOrder, 1.3},
    {"they leave, of the rest whoever fits starts", true, Rest::kAny, 1.0},
    {"they leave, of the rest whoever fits starts", true, Rest::kAny, 1.3},
};

double mean(const Shares& shares, int model::MigProfile::*slices) {
  double sum = 0;
  for (size_t p = 0; p < kProfiles; ++p) sum += shares[p] * a100().profiles[p].*slices;
  return sum;
}

struct Slice {
  size_t profile = 0;
  double from = 0, length = 0;
};

// The same for all who choose places: mean length 1, so that the load is what comes in that time.
std::vector<Slice> arrivals(const Mix& mix, const Stream& stream, uint64_t seed) {
  Rng rng(seed);
  const auto uniform = [&rng] { return static_cast<double>(rng.next() >> 11) * 0x1.0p-53; };
  const double fleet = kDevices * a100().memory_slices;
  const double per_length = stream.load * fleet / mean(mix.shares, &model::MigProfile::memory_slices);
  std::vector<Slice> out;
  double now = 0;
  for (int i = 0; i < (stream.leave ? kArrivals : static_cast<int>(per_length)); ++i) {
    now -= std::log(1 - uniform()) / per_length;
    Slice slice{0, now, -std::log(1 - uniform())};
    for (double x = uniform(); slice.profile + 1 < kProfiles && x >= mix.shares[slice.profile]; ++slice.profile)
      x -= mix.shares[slice.profile];
    out.push_back(slice);
  }
  return out;
}

// At most so many memory slices can be allocated to these, since a device has eight of them and seven compute slices:
// a relaxation, in which instances are divisible and lie anywhere.
double most_slices(const Shares& counts) {
  std::array<size_t, kProfiles> order{};
  std::iota(order.begin(), order.end(), 0);
  const auto per_compute = [](size_t p) {
    return static_cast<double>(a100().profiles[p].memory_slices) / a100().profiles[p].compute_slices;
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return per_compute(a) > per_compute(b); });
  double compute = kDevices * a100().compute_slices;
  double memory = 0;
  for (const size_t p : order) {
    const double count = std::min(counts[p], compute / a100().profiles[p].compute_slices);
    compute -= count * a100().profiles[p].compute_slices;
    memory += count * a100().profiles[p].memory_slices;
  }
  return std::min<double>(memory, kDevices * a100().memory_slices);
}

// Adds up a level over time, from a quarter of the arrivals on.
struct Average {
  double level = 0, area = 0, since = 0, now = 0;
  bool counts = false;
  void advance(double to) {
    if (counts) area += level * (to - now);
    now = to;
  }
  void begin() {
    counts = true;
    since = now;
  }
  double value() const { return area / (now - since); }
};

using Choose = std::function<std::optional<MigPlace>(const std::vector<MigLayout>&, std::string_view)>;

class Simulation {
 public:
  Simulation(const Stream& stream, Choose choose)
      : stream_(stream), choose_(std::move(choose)), fleet_(kDevices, MigLayout(a100())) {}

  // Memory slices allocated on average, in per cent; in the end, if nobody leaves.
  double run(const std::vector<Slice>& slices) {
    for (size_t i = 0; i < slices.size(); ++i) {
      while (!running_.empty() && running_.top().end <= slices[i].from) finish();
      allocated_.advance(slices[i].from);
      if (i == slices.size() / 4) allocated_.begin();
      const Slice& slice = slices[i];
      if (stream_.rest != Rest::kDropped) {
        waiting_[slice.profile].push_back(i);
        start_waiting(slices);
      } else {
        start(slice);
      }
      slices_ = &slices;
    }
    const double all = kDevices * a100().memory_slices;
    return 100 * (stream_.leave ? allocated_.value() : allocated_.level) / all;
  }

 private:
  struct Running {
    double end;
    MigPlace place;
    bool operator<(const Running& other) const { return end > other.end; }
  };

  bool start(const Slice& slice) {
    const auto& profile = a100().profiles[slice.profile];
    const auto place = choose_(fleet_, profile.name);
    if (!place) return false;
    fleet_[place->device].place(place->instance);
    allocated_.level += profile.memory_slices;
    if (stream_.leave) running_.push({allocated_.now + slice.length, *place});
    return true;
  }

  void finish() {
    const Running done = running_.top();
    running_.pop();
    allocated_.advance(done.end);
    fleet_[done.place.device].remove(done.place.instance);
    allocated_.level -= a100().profiles[done.place.instance.profile].memory_slices;
    full_ = {};
    if (stream_.rest != Rest::kDropped) start_waiting(*slices_);
  }

  // The longest waiting first; in order, nobody passes one that does not fit.
  void start_waiting(const std::vector<Slice>& slices) {
    for (;;) {
      size_t first = kProfiles;
      for (size_t p = 0; p < kProfiles; ++p)
        if (!full_[p] && !waiting_[p].empty() && (first == kProfiles || waiting_[p].front() < waiting_[first].front()))
          first = p;
      if (first == kProfiles) return;
      if (start(slices[waiting_[first].front()])) {
        waiting_[first].pop_front();
      } else {
        full_[first] = true;
        if (stream_.rest == Rest::kInOrder) full_.fill(true);
      }
    }
  }

  const Stream& stream_;
  Choose choose_;
  std::vector<MigLayout> fleet_;
  std::array<std::deque<size_t>, kProfiles> waiting_;  // by profile, as indexes of slices
  std::array<bool, kProfiles> full_{};                 // nothing of the profile may start before someone leaves
  std::priority_queue<Running> running_;
  Average allocated_;
  const std::vector<Slice>* slices_ = nullptr;
};

// What could be allocated if every slice that is there counts, wherever it might lie: for streams that drop, of those
// that have come and would not have left yet at that moment; for streams in which the rest waits, of the mix at its
// load, in its proportions where nobody passes another.
double bound(const Mix& mix, const Stream& stream, const std::vector<Slice>& slices) {
  const double all = kDevices * a100().memory_slices;
  Shares counts{};
  if (stream.rest != Rest::kDropped) {
    const double memory = mean(mix.shares, &model::MigProfile::memory_slices);
    const double compute = mean(mix.shares, &model::MigProfile::compute_slices);
    if (stream.rest == Rest::kInOrder)
      return 100 * std::min({stream.load, 1.0, kDevices * a100().compute_slices * memory / compute / all});
    for (size_t p = 0; p < kProfiles; ++p) counts[p] = stream.load * all / memory * mix.shares[p];
    return 100 * most_slices(counts) / all;
  }
  using End = std::pair<double, size_t>;
  std::priority_queue<End, std::vector<End>, std::greater<>> there;
  Average most;
  for (size_t i = 0; i < slices.size(); ++i) {
    while (stream.leave && !there.empty() && there.top().first <= slices[i].from) {
      most.advance(there.top().first);
      counts[there.top().second] -= 1;
      most.level = most_slices(counts);
      there.pop();
    }
    most.advance(slices[i].from);
    if (i == slices.size() / 4) most.begin();
    counts[slices[i].profile] += 1;
    most.level = most_slices(counts);
    there.emplace(slices[i].from + slices[i].length, slices[i].profile);
  }
  return 100 * (stream.leave ? most.value() : most.level) / all;
}

std::optional<MigPlace> last_start(const std::vector<MigLayout>& fleet, std::string_view profile) {
  auto place = packing::first_fit(fleet, profile);
  if (place)
    place->instance.start =
        static_cast<uint8_t>(std::bit_width(fleet[place->device].starts_for(place->instance.profile)) - 1);
  return place;
}

nlohmann::json streams() {
  nlohmann::json out = nlohmann::json::array();
  for (const Stream& stream : kStreams) {
    for (const Mix& mix : kMixes) {
      nlohmann::json runs = nlohmann::json::array();
      for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
        const std::vector<Slice> slices = arrivals(mix, stream, seed);
        MigDemand demand;
        const auto berth = [&demand](const std::vector<MigLayout>& fleet, std::string_view profile) {
          demand.observe(profile);
          return packing::most_room(fleet, profile, demand);
        };
        runs.push_back({{"berth", Simulation(stream, berth).run(slices)},
                        {"first_fit", Simulation(stream, packing::first_fit).run(slices)},
                        {"last_start", Simulation(stream, last_start).run(slices)},
                        {"bound", bound(mix, stream, slices)}});
      }
      out.push_back({{"stream", stream.name}, {"mix", mix.name}, {"load", stream.load}, {"runs", std::move(runs)}});
    }
  }
  return out;
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Devices as time leaves them: cut at random, two instances of five in use.
std::vector<packing::MigDevice> random_devices(Rng& rng, int count) {
  std::vector<packing::MigDevice> out;
  for (int d = 0; d < count; ++d) {
    packing::MigDevice device{MigLayout(a100()), MigLayout(a100())};
    for (int tries = 0; tries < 12; ++tries) {
      const model::MigInstance one{static_cast<model::MigProfileIndex>(rng.below(kProfiles)),
                                   static_cast<uint8_t>(rng.below(7))};
      if (!device.layout.fits(one)) continue;
      device.layout.place(one);
      if (rng.chance(40)) device.used.place(one);
    }
    out.push_back(std::move(device));
  }
  return out;
}

// Slices of the first mix wait, as many as the fleet has memory slices that are not in use.
nlohmann::json plan_once(int devices, uint64_t seed) {
  Rng rng(seed);
  const std::vector<packing::MigDevice> fleet = random_devices(rng, devices);
  int64_t not_in_use = 0;
  std::map<std::string, int> idle;
  for (const packing::MigDevice& device : fleet) {
    not_in_use += a100().memory_slices - device.used.allocated_memory_slices();
    for (const model::MigInstance one : device.layout.instances())
      if (!device.used.contains(one)) ++idle[device.layout.profile(one).name];
  }
  packing::MigWaiting waiting;
  int64_t asked = 0;
  MigDemand demand;
  while (asked < not_in_use) {
    const auto& profile = a100().profiles[rng.below(kProfiles)];
    if (profile.media_extensions) continue;
    ++waiting[profile.name];
    demand.observe(profile.name);
    asked += profile.memory_slices;
  }
  int64_t uncut = 0;
  for (const auto& [name, count] : waiting)
    uncut += std::min(count, idle[name]) * a100().profiles[*a100().find(name)].memory_slices;
  const double start = cpu_seconds();
  const packing::GeometryPlan plan = packing::plan_geometry(fleet, waiting, demand);
  return {{"devices", devices},
          {"asked", asked},
          {"uncut", uncut},
          {"served", plan.served_memory_slices},
          {"changed", plan.changed.size()},
          {"cpu_s", cpu_seconds() - start}};
}

nlohmann::json plans() {
  nlohmann::json out = nlohmann::json::array();
  for (const int devices : {8, 100, 1000})
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) out.push_back(plan_once(devices, seed));
  return out;
}

}  // namespace
}  // namespace berth

int main() {
  const nlohmann::json out = {{"streams", berth::streams()}, {"plans", berth::plans()}};
  std::printf("%s\n", out.dump(1).c_str());
}
