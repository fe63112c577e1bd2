// Rehearsal: a second engine that goes on from where the first stands, with those who run ending as they declare
// (engine/forecast.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/forecast.h"
#include "quota/admission.h"

namespace berth::engine {

struct Engine::Rehearsal {
  // `thousandths`: of what is declared, so long all run.
  Rehearsal(const Engine& engine, int64_t thousandths, const ForecastLimits& within);

  void play();  // until nothing more is decided, or the limits are reached
  // Of the workload's queue and those that it shares quota with, one has started that declares no runtime; or of any
  // queue, where a place is what it lacks in the end.
  bool starts_behind_endless(const std::string& uid) const;

  // Something that it may need is kept for one that waits for GPUs to be cut.
  bool waits_behind_cuts(const std::string& uid) const;

  const Engine& real;
  const ForecastLimits& limits;
  const int64_t ratio;  // of what is declared, in thousandths
  Time now;
  Engine second;
  std::map<std::string, Time> started = {};  // pods and workloads, by UID
  std::set<std::string> endless = {};        // those of these workloads that declare no runtime, by UID
  bool cut_short = false;
  bool leaves_to_cuts = false;  // nodes that may be cut for somebody who waits

 private:
  enum class Kind : uint8_t { kPod, kWorkload };

  static EngineOptions options_of(const Engine& engine) {
    EngineOptions out = engine.options_;
    out.list_feasible = 0;
    return out;
  }
  void take_over_cluster();
  void take_over_workloads();
  void take_over_pods();
  void take_over_kept_gpus();
  void await_end(const std::optional<Time>& end, Kind kind, const std::string& uid);
  void remove(const std::string& uid);
  void take_off_list(NodeSlot node, const std::string& pod);
  bool carry_out(const CycleResult& result);
  std::vector<std::pair<ClassId, QueueRank>> wait_for_cuts(bool held) const;
  std::set<NodeSlot> to_look_at(const std::vector<std::pair<ClassId, QueueRank>>& classes) const;
  std::set<NodeSlot> to_be_kept(int64_t& work);
  bool leave_to_cuts(bool held, int64_t& work);
  void end_due();
  void end_workload(const std::string& uid, bool finished);
  void undo_start(const std::string& uid);

  std::set<std::tuple<Time, Kind, std::string>> ends_ = {};
  std::set<std::string> leaving_ = {};  // workloads that are on their way out, by "namespace/name"
  std::set<uint64_t> looked_for_ = {};  // classes, by serial, for which all nodes that may be cut have been looked at
  uint64_t looked_until_ = 0;           // of the change log
  std::set<uint64_t> kept_for_ = {};    // classes, by serial, for which to_be_kept() has told the nodes
};

}  // namespace berth::engine
