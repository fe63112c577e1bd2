// What the desk (queueing/desk.h) keeps of each object that it sees; plain values that it alone changes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/time.h"
#include "queueing/lane.h"
#include "queueing/seen.h"
#include "queueing/write.h"
#include "quota/decision.h"

namespace berth::queueing {

struct WorkloadRecord {
  SeenWorkload seen;
  Lane lane;
  bool in_engine = false;
  bool ended = false;       // the engine knows that it has finished
  bool has_left = false;    // since it was last evicted: nothing runs for it any more
  bool released = false;    // and the engine knows so
  bool told_ready = false;  // the engine knows its pods as ready
  Time told_at{INT64_MIN};
  std::optional<quota::AdmissionDecision> evicted_by = {};  // in this term
  std::string evicted_for;                                  // in this term, for whom: "Job default/urgent"
  std::string inactive_since;  // the eviction for which it was made inactive: lastTransitionTime of Evicted
  CheckWords words = {};       // that are to stand in its status
  std::tuple<int64_t, int64_t, std::string> followed{-1, -1, ""};  // generations and names: it is as its owner
  bool recount = false;                                            // what pods are given has changed since it was told
  bool reshaped = false;   // its pod sets were written; the engine may have decided about those before
  bool withdrawn = false;  // that its quota is taken back has been written, and perhaps not stored yet
  std::string held;        // why it is not to be admitted for now, though its queue would
  Time held_until;
  std::string lacks;               // which pods of its group are not there, so that it is not to be admitted
  std::vector<std::string> apart;  // the marks of those that the engine tells apart
  // By pod set, how many pods need not come: as it was when it was first seen, or as many as have succeeded since.
  std::vector<int32_t> unneeded;
};

inline constexpr int kUnmadeMax = 3;  // so often in a row the server may refuse a Workload before people hear of it

struct JobRecord {
  SeenJob seen;
  Lane lane;
  std::string told;       // why it has no Workload
  int unmade = 0;         // so often in a row it could not be made
  bool starting = false;  // its start is on its way
  int refusals = 0;       // of its start by the server, one after the other
  int given_up = 0;       // so often it has had to wait since for trying again
};

struct PodRecord {
  SeenPod seen;
  Lane lane;
  std::string told;  // why it does not follow its group
};

// Pod sets, and of which templates (JSON) they are.
struct Owned {
  std::vector<api::WorkloadPodSet> sets;
  std::vector<std::string> templates;
};

using PodsBySet = std::vector<std::vector<const api::Pod*>>;

// What the labels of a Workload's owner name, with the priority that comes of it.
struct Named {
  std::string queue, priority_class;
  int32_t priority = 0;
};

// Pods of one group, or one by itself.
struct GroupRecord {
  std::map<std::string, PodRecord> pods;
  Lane lane;
  std::string told;  // why it has no Workload
  int unmade = 0;    // so often in a row it could not be made
};

}  // namespace berth::queueing
