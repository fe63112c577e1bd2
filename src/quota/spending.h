// Spending: what queues with a budget have spent in its window, and when that is all of it.
//
// Each admitted workload spends GPU-time and money at a rate, for its LocalQueue and its ClusterQueue. Accounts are
// exact: they change with rates and windows, whatever the moments at which they are asked. When a window ends its
// account begins anew.
//
// One thread; times are those of cycles and never go back.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/int128.h"
#include "base/time.h"
#include "model/budget.h"

namespace berth::quota {

class Spending {
 public:
  // Namespace and name; the namespace of a ClusterQueue is empty.
  using Queue = std::pair<std::string, std::string>;
  struct Rate {
    int64_t sevenths = 0;  // of millionths of GPUs
    int64_t price = 0;     // micro-dollars an hour, of all of them, times 7
  };

  // `wall_offset`: what to add to the time of cycles for the wall clock's; 0 in a simulation.
  explicit Spending(Duration wall_offset = {}) : wall_offset_(wall_offset) {}

  bool empty() const { return accounts_.empty(); }
  bool has(const Queue& queue) const { return accounts_.contains(queue); }
  // A queue has this budget from now on; `before` counts if nothing is known of it yet. One that does not exist ends
  // the account.
  void set(const Queue& queue, const model::Budget& budget, const std::optional<model::Spent>& before, Time now);
  void remove(const Queue& queue) { accounts_.erase(queue); }
  // A workload spends since `since`, or since then when the queue's account was first counted. Without an account:
  // nothing.
  void begin(const Queue& queue, Rate rate, Time since, Time now);
  void end(const Queue& queue, Rate rate, Time now);
  // All rates begin anew at 0.
  void stop_all(Time now);

  // Brings accounts up to this time. The queues whose budget is spent now, or is not any more.
  std::vector<Queue> advance(Time now);
  // When that is to be done: some budget is spent, or a window ends; none: no account changes.
  std::optional<Time> next_due() const;

  // As of advance().
  bool is_spent(const Queue& queue) const;
  bool drains(const Queue& queue) const;
  // Whether its budget will be spent at `then`, if nobody else begins and those end then that spend at these rates now;
  // what comes after the window is not known.
  bool is_spent_by(const Queue& queue, Time then, const std::vector<std::pair<Time, Rate>>& ends) const;
  std::optional<model::Spent> spent(const Queue& queue, Time now) const;
  // "ClusterQueue red has spent its 100 GPU-hours of this month; the next begins at 2026-12-01T00:00:00Z"; of a queue
  // whose budget is spent. A simulation tells times since it began.
  std::string message(const Queue& queue) const;

 private:
  struct Sum {
    Int128 gpu_time = 0;  // sevenths of millionths of GPUs × nanoseconds
    Int128 cost = 0;      // micro-dollars an hour × 7 × nanoseconds
  };
  struct Account {
    model::Budget budget;
    Time first;  // is not counted before
    Time at;
    Time since, until;  // the window; in the time of cycles
    Sum sum;
    Rate rate;
    bool spent = false;  // as of advance()
  };
  void bring_up(Account& account, Time now) const;
  void begin_window(Account& account, Time now) const;
  static std::optional<Time> due(const Account& account);
  static bool exceeded(const Account& account);
  Time wall(Time time) const { return time + wall_offset_; }
  Time unwall(Time time) const { return {time.nanos - wall_offset_.nanos}; }

  Duration wall_offset_;
  std::map<Queue, Account> accounts_;
};

}  // namespace berth::quota
