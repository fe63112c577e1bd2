// VolumeBinder: has the claims of a placed pod bound before the pod is: kube-scheduler's PreBind of volumes.
//
// A claim for which a volume was chosen gets it by the volume's claimRef; one that is to be provisioned gets the
// annotation that names its node. The volume controller and the provisioner do the rest; what they have done is seen in
// the engine's state, which the watches keep. A pod whose claims are not bound in time, or cannot be, is given up: it
// backs off and is tried again. Pods wait here side by side and hold up no other.
//
// Owner thread only, but for answers to patches, which come by `post` from the transport's thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "kube/client.h"

namespace berth::apps {

// The answer to a patch, on its way to the owner thread.
struct ClaimPatched {
  std::string pod_uid;
  std::string claim;  // name
  uint64_t attempt = 0;
  bool applied = false;
  bool passing = false;  // the failure may pass: patch again
  std::string error;
  Duration wait = {};  // that the server asks for before the next try
};

class VolumeBinder {
 public:
  struct Hooks {
    std::function<void(ClaimPatched)> post;                                       // any thread; reaches handle()
    std::function<bool()> may_send;                                               // any thread
    std::function<void(const engine::Decision&)> bound;                           // its claims are: bind the pod
    std::function<void(const engine::Decision&, const std::string& why)> failed;  // give it up
  };

  // `engine`, `client` and its transport must outlive this object; `timeout` is for all claims of a pod, `call_timeout`
  // for one patch.
  VolumeBinder(const engine::Engine& engine, kube::Client& client, Duration timeout, Duration call_timeout,
               Hooks hooks);

  // `versions`: resourceVersions of volumes, so that no claim of others is overwritten.
  void begin(const engine::Decision& decision, const std::map<std::string, std::string>& versions, Time now);
  void handle(const ClaimPatched& answer, Time now);
  // Looks at all that wait; after anything has changed, and now and then.
  void tick(Time now);
  size_t waiting() const { return pods_.size(); }

 private:
  struct Claim {
    engine::VolumeBinding binding;
    std::string volume_version;
    bool asked = false;     // the patch is stored, or was not needed
    bool sent = false;      // and under way
    bool selected = false;  // the annotation has been seen
    Time again;
  };
  struct Pod {
    engine::Decision decision;
    std::vector<Claim> claims;
    Time deadline;
    uint64_t attempt = 0;
    std::string error;
  };

  void send(const Pod& pod, Claim& claim);
  // True when the claim is bound; `error` is set when it never will be.
  bool look_at(const Pod& pod, Claim& claim, std::string& error) const;

  const engine::Engine& engine_;
  kube::Client& client_;
  const Duration timeout_, call_timeout_;
  Hooks hooks_;
  std::map<std::string, Pod> pods_;  // by UID
  uint64_t attempts_ = 0;
};

}  // namespace berth::apps
