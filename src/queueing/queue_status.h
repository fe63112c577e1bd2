// QueueStatuses: what the status of ClusterQueues and LocalQueues says: whether they admit, how many workloads wait and
// are admitted, and what these hold; and of ClusterQueues and Cohorts, by how much they borrow, where fair sharing is
// on; and of LocalQueues what they have used of late, where their ClusterQueue goes by that. Under Kueue's names, which
// kubectl's columns and dashboards read.
//
// Like the desk (queueing/desk.h): it is told what the server has, compares it with what admission says, and hands out
// the difference, one write of an object at a time and no more often than once in a while.
// Owner thread only; deterministic.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "queueing/desk.h"

namespace berth::queueing {

class QueueStatuses {
 public:
  void see(const SeenQueue& seen);
  // "ClusterQueue", "Cohort" or "LocalQueue"; nothing is known of others.
  void gone(const std::string& kind, const std::string& namespace_name, const std::string& name);
  std::vector<Write> look(const quota::Admission& admission, const quota::QueueOverview& overview, Time now, Time wall,
                          size_t room);
  void answered(const Answer& answer, Time now);

 private:
  using Key = std::tuple<std::string, std::string, std::string>;  // kind, namespace, name
  struct Record {
    std::string uid, resource_version;
    std::string cluster_queue;  // of a LocalQueue
    bool stopped = false;       // it is a LocalQueue's own word
    int64_t generation = 0;
    std::string status;                          // JSON, as it is stored
    std::string problem, remark;                 // as SeenQueue's
    std::optional<model::UsedOfLate> used = {};  // as a LocalQueue's status says
    bool busy = false;
    Time from{INT64_MIN};
  };
  // JSON; empty: nothing is to be written.
  static std::string wanted(const Key& key, const Record& record, const quota::Admission& admission,
                            const quota::QueueOverview& overview, Time now, Time wall);
  std::map<Key, Record> queues_;
};

}  // namespace berth::queueing
