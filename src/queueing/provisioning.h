// Provisioning: asks the cluster's autoscaler for nodes, for workloads whose AdmissionChecks are of the controller
// kueue.x-k8s.io/provisioning-request.
//
// A workload that has quota and such a check gets a ProvisioningRequest, with a PodTemplate for each pod set; what the
// autoscaler says of it becomes the state of the check, which Desk (queueing/desk.h) writes. It is told what the server
// has, compares that with what is wanted, and hands out the difference. What has been tried stands on the server alone:
// a request is named after workload, check and attempt, and says by an annotation for which reservation of quota it was
// made. So a restart asks for nothing twice, and a request that failed is followed by the next attempt when its
// workload has quota again.
//
// Invariants: 1. nothing is asked for before the reservation is stored; 2. of a check there is one request at a time
// that the autoscaler may act on; 3. of one object at most one write is under way.
//
// Owner thread only; deterministic. Source: Kueue's provisioning controller,
// https://kueue.sigs.k8s.io/docs/concepts/admission_check/provisioning_request/.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "queueing/desk.h"
#include "queueing/lane.h"
#include "quota/flavors.h"

namespace berth::queueing {

// "<workload>-<check>-<attempt>", cut and with a hash where it would be too long.
std::string request_name(const std::string& workload, const std::string& check, int attempt);
// Which attempt a request of this name is; nothing where it is not of the workload and the check.
std::optional<int> attempt_of(const std::string& request, const std::string& workload, const std::string& check);

class Provisioning {
 public:
  using Name = std::pair<std::string, std::string>;  // namespace, name

  // What watches bring. Of other checks than those that Berth sees to nothing is kept.
  void see(const SeenQueue& check);
  void see(ProvisioningConfig config);
  void see(ProvisioningRequest request);
  void check_gone(const std::string& name);
  void config_gone(const std::string& name);
  void request_gone(const Name& name);

  // What is to be written now, at most `room` writes. `served`: the cluster has ProvisioningRequests, and they may be
  // read. What checks have to say of workloads the desk is told.
  std::vector<Write> look(Desk& desk, const quota::Flavors& flavors, bool served, Time now, Time wall, size_t room);
  void answered(const Answer& answer, Time now);

 private:
  struct Check {
    api::ObjectMeta metadata;
    std::optional<api::CheckParameters> parameters;
    std::string status;  // JSON, as it is stored
    Lane lane = {};
  };
  // One of the objects by which a workload asks for nodes, while it is made or taken away.
  struct Made {
    Lane lane = {};
    std::string sent = {}, body = {};  // being stored, and stored
    std::string error = {};            // why it is not
    bool in_the_way = false;           // one by its name is there, which is to go first
    bool gone = false;                 // deleted
  };
  struct Subject {
    std::map<std::string, Made> templates, requests;  // by name
  };
  // A check of a workload with quota.
  struct Asked {
    const Name& name;
    const SeenWorkload& workload;
    const StoredCheck& check;
    const ProvisioningConfig* config;                       // null: the check is not active
    std::vector<const ProvisioningRequest*> requests = {};  // of this check, by attempt
  };

  void look_at(const Name& name, Desk& desk, const quota::Flavors& flavors, std::vector<Write>& writes);
  void look_at(const std::string& name, Check& check, Time wall, std::vector<Write>& writes);
  bool is_active(const Check& check, std::string& reason, std::string& message) const;
  std::optional<CheckWord> word_of(const Asked& asked, const quota::Flavors& flavors, std::vector<Write>& writes);
  std::optional<CheckWord> ask(const Asked& asked, const std::vector<size_t>& pod_sets, int attempt,
                               const quota::Flavors& flavors, std::vector<Write>& writes);
  bool make(const Write& write, Made& made, std::vector<Write>& writes);
  void remove(const Name& workload, const ProvisioningRequest& request, std::vector<Write>& writes);
  void send(Made& made, Write write, std::vector<Write>& writes);
  void forget_made(const ProvisioningRequest& request);
  std::vector<const ProvisioningRequest*> requests_of(const SeenWorkload& workload) const;
  void look_at_all();

  std::map<std::string, Check> checks_;
  std::map<std::string, ProvisioningConfig> configs_;
  std::map<Name, ProvisioningRequest> requests_;
  std::map<std::string, std::set<Name>> by_owner_;  // requests, by the UID of their workload
  std::map<Name, Subject> subjects_;                // workloads with checks or requests
  std::set<Name> dirty_;
  std::set<std::string> dirty_checks_;
  bool served_ = false;
  bool again_ = false;  // who is looked at has to be looked at once more
  Time now_;
};

}  // namespace berth::queueing
