// Reserve: the part of Engine that keeps nodes for pods which have waited long, so that a stream of smaller or later
// pods does not pass them for ever (design I9), and lets those use the room meanwhile who declare that they will have
// ended in time.
//
// A pod is due when it has waited for ReservationOptions::after and fits nowhere, nor can room be made for it. The
// first in the queue's order of each queue is nominated for a node as if others were leaving it: its room is charged
// there, so that whoever comes after it goes elsewhere, and what becomes free is kept until the pod fits. The node is
// the one on which enough is free the soonest, by what those declare who run there; of others, one where nobody has to
// leave who runs until he is deleted, and that lacks least, GPUs first, of those where the pod would fit if all others
// but daemons had gone. Only pods that come before it can take the nomination away; if it has a place elsewhere first,
// be it one that is kept for those after it, or can make one, it goes there. For one that
// fits on no node as its GPUs are cut, whoever has left, GPUs are kept to be cut anew (engine/kept_gpus.h).
//
// Where it is known when enough is free, a pod that fits nowhere may take the kept room if it will have ended by then
// (EASY backfill: Lifka, The ANL/IBM SP scheduling system, 1995). One that has not is the first to leave.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace berth::engine {

struct Engine::Reserve {
  Engine& engine;

  // Keeps nodes for those who are due; all that waits is blocked. False: out of work units, or somebody can go on.
  bool run(WorkBudget& work, CycleResult& result);
  // Whether it has waited so long that room may be kept for it.
  static bool has_waited(const Engine& engine, PodSlot pod);
  // Adds the pods of the class that have, of each queue no more than may have some kept.
  static void add_waited(const Engine& engine, const ClassQueue& cls, std::vector<PodSlot>& due);
  // When the class's first pod has waited so long that a node may be kept for it.
  static Time due_at(const Engine& engine, const ClassQueue& cls);
  // Whether a node may be kept in this cycle for one that comes before the pod: before that is known nobody is evicted
  // for the pod, who might have to leave for nothing.
  static bool comes_first(const Engine& engine, PodSlot pod);
  // GPUs that are kept for one who waits no more are given back.
  void tidy_gpus();
  // Gives what is kept for a pod, a workload, or of GPUs, to those who fit there as it is and come before. False: out
  // of work units, or of what a cycle may bind; or one of them is held, or gives a node back that was kept for it.
  bool pass_kept(const CycleLimits& limits, WorkBudget& work, CycleResult& result);
  bool pass(const std::vector<PodSlot>& kept, const CycleLimits& limits, WorkBudget& work, CycleResult& result);
  // What is said of a pod for which its node is kept; `free_by`: INT64_MAX where nobody knows.
  std::string kept_text(PodSlot pod, Time free_by) const;
  // The same of one for whom GPUs are kept; empty: none are.
  std::string gpus_text(const std::string& owner) const;
  // The verdict of a blocked class as it is for this pod of it, for which what is kept for it is free.
  std::shared_ptr<const std::string> verdict_for(PodSlot pod, const ClassQueue& cls) const;
  // Those for whom GPUs are kept, or are not any more, are to be told their verdict anew.
  void retell_owners();

  // Brings up to date when enough is free for whom nodes are kept, has those leave who are in the way past their time,
  // and gives kept room to who has ended by then. False: out of work units, or of what a cycle may bind.
  bool backfill(const CycleLimits& limits, WorkBudget& work, CycleResult& result);
  // When a pod of the class fits on the node, which may be kept for it: the latest end among those who have to end
  // first, at the soonest now; INT64_MAX: those that declare one are not enough.
  Time free_by(VictimSearch& search, PodSlot waiting, NodeSlot node) const;

 private:
  std::vector<PodSlot> later_than(PodSlot pod, const std::vector<PodSlot>& kept) const;
  bool starts_without(PodSlot pod, NodeSlot node, const std::vector<PodSlot>& later, WorkBudget& work, bool& starts);
  bool may_reserve(PodSlot pod) const;
  bool may_lose(PodSlot pod) const;
  bool let_go_behind(PodSlot pod);
  std::pair<NodeSlot, Time> node_to_keep(PodSlot pod, ClassQueue& cls, WorkBudget& work);
  void keep_node(PodSlot pod, NodeSlot node, Time free_by, CycleResult& result);
  bool keep_another(PodSlot pod, const std::function<bool(NodeSlot node, Time free_by)>& will_do, WorkBudget& work,
                    CycleResult& result);
  bool look_elsewhere(WorkBudget& work, CycleResult& result);
  bool choose_anew(const std::vector<PodSlot>& passed, WorkBudget& work, CycleResult& result);
  Time told_of(const PodState& pod) const;
  void tell(PodSlot pod, CycleResult& result);
  bool is_late(PodSlot pod) const;
  std::optional<Time> end_for_reservation(PodSlot pod) const;
  bool renew(PodSlot waiting, WorkBudget& work, CycleResult& result);
  void evict_late(PodSlot waiting, VictimSearch& search, CycleResult& result);
  std::vector<PodSlot> kept_on(NodeSlot node) const;
  bool lend(NodeSlot node, const CycleLimits& limits, WorkBudget& work, CycleResult& result);
  bool may_borrow(PodSlot pod, NodeSlot node, Time until) const;
};

}  // namespace berth::engine
