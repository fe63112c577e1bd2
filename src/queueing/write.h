// What the desk (queueing/desk.h) has written to the API server, and what it tells people.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "queueing/seen.h"

namespace berth::queueing {

// An event about an object, as people see it.
struct Note {
  std::string kind;  // "Job", "Pod", "Workload"
  std::string namespace_name, name, uid;
  std::string reason, text;
  bool warning = false;
};

struct Write {
  enum class Kind : uint8_t {
    kCreateWorkload,  // POST
    kPatchStatus,     // merge patch of the status of a Workload, queue or Cohort
    kPatchJob,        // merge patch of a Job
    kPatchJobStatus,  // of its status
    kPatchWorkload,   // merge patch of a Workload's metadata
    kPatchPod,        // merge patch of a pod
    kPatchPodStatus,  // strategic merge patch of its status
    kDeletePod,       // DELETE with options
    // Of the objects by which nodes are asked for (queueing/provisioning.h).
    kCreateTemplate,
    kDeleteTemplate,
    kCreateRequest,
    kDeleteRequest,
  };
  // For whom it is, and who waits for its answer. A group is named as its Workload, and so is a provisioning.
  enum class Party : uint8_t {
    kWorkload,
    kJob,
    kGroup,
    kPod,
    kGate,  // of a pod, whose UID is the object
    kClusterQueue,
    kCohort,
    kLocalQueue,
    kAdmissionCheck,
    kProvisioning
  };
  Kind kind = Kind::kCreateWorkload;
  Party party = Party::kJob;
  std::string namespace_name, name;  // the party's
  std::string body;
  std::vector<Note> notes = {};  // to be told once it is stored
  bool only_tells = false;       // why a Workload waits, or what queues hold: nobody goes on by it
  std::string object = {};       // a provisioning has several
};

// What the controller of a check has to say of a workload.
struct CheckWord {
  std::string state, message;
  std::string pod_set_updates = {};  // JSON list; empty: none
  int64_t retry_after_s = 0;
  friend bool operator==(const CheckWord&, const CheckWord&) = default;
};
using CheckWords = std::map<std::string, CheckWord>;  // by check

// How a write ended.
struct Answer {
  Write write;
  bool stored = false;
  int http_status = 0;  // where it was not; 0: nobody knows
  std::string error = {};
  Duration wait = {};                         // that the server asks for
  std::optional<SeenWorkload> workload = {};  // as it is stored now
  std::optional<SeenJob> job = {};
  std::optional<SeenPod> pod = {};
  std::optional<SeenQueue> queue = {};
  std::optional<ProvisioningRequest> request = {};
};

}  // namespace berth::queueing
