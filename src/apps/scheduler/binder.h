// Binder: carries Bind decisions to the API server and finds out what became of each, however the network behaves.
//
// A 409 means "ask", and so does every end that leaves open whether the server acted (a time-out, a lost connection):
// the pod is read until the server answers. A pod that is still unbound after an open end is bound again to the *same*
// node, so that a late first attempt and its repetition cannot name two nodes; its place is kept all the while.
//
// A 429 is no end: the bind keeps its place for up to a minute, and all binds wait for as long as the server asks
// (Lane).
//
// bind() may be called from any thread and never blocks; reports come on the transport's thread. No bind is sent, queue
// or not, unless `may_send` holds at that moment (design I6).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/pod.h"
#include "apps/scheduler/lane.h"
#include "base/time.h"
#include "engine/decision.h"
#include "kube/client.h"

namespace berth::apps {

enum class BindEnd : uint8_t {
  kBound,      // stored, by this attempt or an earlier one
  kUnknown,    // not an end: no answer yet, the server is being asked
  kFailed,     // certainly not stored
  kGone,       // the pod no longer exists
  kElsewhere,  // bound, but to another node, by someone else
};
std::string_view to_string(BindEnd end);

struct BindReport {
  std::string uid;
  BindEnd end = BindEnd::kFailed;
  std::optional<api::Pod> seen;  // kElsewhere: the pod as the server has it
  std::string error;             // kFailed, kUnknown: why
  Duration took;
  engine::Decision decision = {};
  engine::DeviceNames devices = {};  // that the decision gives the pod
  std::string refusal = {};          // kFailed: the server's own words, if it refused
};

struct BinderOptions {
  Duration timeout = Duration::seconds(5);  // of one call
  int connections = 32;                     // that the transport has
};

class Binder {
 public:
  using Sink = std::function<void(BindReport)>;

  // `client` and its transport must outlive the answers, which transport.stop() brings.
  Binder(kube::Client& client, io::Transport& transport, BinderOptions options, std::function<bool()> may_send,
         Sink sink);
  ~Binder() { shared_->lane->drop(); }
  Binder(const Binder&) = delete;
  Binder& operator=(const Binder&) = delete;

  // `devices`: that the decision gives the pod.
  void bind(const engine::Decision& decision, engine::DeviceNames devices = {});
  // Binds whose end has not been reported.
  size_t outstanding() const { return shared_->outstanding; }
  // Answers of 429 so far.
  uint64_t throttled() const { return shared_->lane->throttled_count(); }

 private:
  struct Shared {
    kube::Client& client;
    io::Transport& transport;
    Duration timeout;
    std::function<bool()> may_send;
    Sink sink;
    std::shared_ptr<Lane> lane;
    std::atomic<size_t> outstanding{0};
  };
  struct Attempt;
  static void send(const std::shared_ptr<Attempt>& attempt);
  static void post(const std::shared_ptr<Attempt>& attempt);
  static bool waits(const std::shared_ptr<Attempt>& attempt, const Result<std::string>& result);
  static void answered(const std::shared_ptr<Attempt>& attempt, const Result<std::string>& result);
  static void ask(const std::shared_ptr<Attempt>& attempt);
  static void told(const std::shared_ptr<Attempt>& attempt, const Result<std::string>& result);
  static void end(const std::shared_ptr<Attempt>& attempt, BindEnd how, std::optional<api::Pod> seen = std::nullopt);

  std::shared_ptr<Shared> shared_;
};

}  // namespace berth::apps
