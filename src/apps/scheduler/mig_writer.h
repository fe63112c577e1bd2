// MigWriter: writes to nodes how their GPUs are to be cut, and knows from the nodes what has become of it.
//
// The node itself is the record (bridge/mig_desired.h): the annotation berth.dev/mig-desired says what is wanted, for
// an agent that cuts, and for whoever leads next; where NVIDIA's MIG manager cuts, its label nvidia.com/mig.config
// names the configuration, and nvidia.com/mig.config.state tells how far it is. A change is begun by one patch that is
// refused unless the node is the very one that the decision saw (metadata.resourceVersion). When no answer says what
// became of it, the node does, as its watch shows it next: it carries the change, or it is another and does not.
//
// What is to stand on a node is compared with what stands there whenever either changes, and now and then, so that a
// lost answer, a conflict or a restart need nothing of their own. The MIG manager acts when the label changes: where
// the name stands there already, the first patch takes it away, and a second brings it back.
//
// Owner thread only, but for answers to patches, which come by `post` from the transport's thread. No patch is sent
// unless `may_send` holds at that moment.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bridge/mig_desired.h"
#include "kube/client.h"

namespace berth::apps {

// What a node says of how it is cut.
struct NodeMig {
  std::string resource_version;
  std::optional<bridge::MigDesired> desired;  // none: no annotation, or none that can be read
  std::string config, state;                  // the labels nvidia.com/mig.config and nvidia.com/mig.config.state
  std::string failed;                         // the annotation berth.dev/mig-failed
};

// The answer to a patch, on its way to the owner thread.
struct NodePatched {
  std::string node;
  uint64_t attempt = 0;
  bool applied = false;
  bool refused = false;  // for good
  std::string error;
  Duration wait = {};  // that the server asks for before the next try
};

struct MigOutcome {
  enum class Kind : uint8_t {
    kAdopted,    // a change is under way that this object has not begun
    kWithdrawn,  // the node was another by then: nothing is under way there
    kRefused,    // the server will not have it: nothing is under way there
    kFailed,     // whoever cuts says that it cannot; end() it
  };
  Kind kind = Kind::kAdopted;
  std::string node;
  std::string why;
  std::optional<bridge::MigDesired> desired = {};  // kAdopted
};

class MigWriter {
 public:
  struct Hooks {
    std::function<void(NodePatched)> post;  // any thread; reaches handle()
    std::function<bool()> may_send;         // any thread
  };

  // `client` and its transport must outlive this object; `timeout` is for one patch.
  MigWriter(kube::Client& client, Duration timeout, Hooks hooks)
      : client_(client), timeout_(timeout), hooks_(std::move(hooks)) {}

  // As the watch shows the node now.
  void seen(const std::string& node, NodeMig mig);
  void gone(const std::string& node);
  // Nodes that are known.
  std::vector<std::string> nodes() const;
  // Null: not known.
  const NodeMig* find(const std::string& node) const;

  // Has the node cut so, if it still is as it was seen last.
  void begin(const std::string& node, bridge::MigDesired desired);
  // A change that was begun or adopted is over: the node says so as soon as that can be written. Before the server has
  // taken its beginning, it is forgotten. `failures`: in a row, this one among them.
  void end(const std::string& node, bridge::MigDesired::State how, const std::string& reason, Time until_wall,
           int failures);
  // Of a node that has one which is not over.
  const bridge::MigDesired* change(const std::string& node) const;

  void handle(const NodePatched& answer, Time now);
  // Sends what is due, and says what has become of changes. After anything has changed, and by wakeup().
  std::vector<MigOutcome> tick(Time now);
  std::optional<Time> wakeup() const { return wakeup_; }
  // Nodes with a change that is not over.
  std::vector<std::string> changing() const;
  // There is a change, or its end is still to be written.
  bool busy(const std::string& node) const { return changes_.contains(node); }

 private:
  struct Change {
    bridge::MigDesired desired;
    std::string version;  // of the node that the decision saw
    bool stored = false;  // the server has it
    bool shown = false;   // and the watch has shown it
    bool over = false;    // it is to say so
    bool refused = false;
    std::string error;
    uint64_t attempt = 0;  // under way; 0: none
    Time again;            // no sooner than this
    Duration backoff;
  };

  std::optional<MigOutcome> look_at(const std::string& node, Change& change, Time now);
  std::optional<MigOutcome> look_at_cutting(const std::string& node, Change& change, Time now);
  bool look_at_end(const std::string& node, Change& change, Time now);
  void send(const std::string& node, Change& change, const std::string& body, Time now);

  kube::Client& client_;
  const Duration timeout_;
  Hooks hooks_;
  std::map<std::string, NodeMig> seen_;
  std::map<std::string, Change> changes_;
  std::set<std::string> fresh_;  // seen since the last tick
  std::optional<Time> wakeup_;
  uint64_t attempts_ = 0;
};

}  // namespace berth::apps
