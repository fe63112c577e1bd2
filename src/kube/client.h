// Client: the Kubernetes REST verbs on a Transport; bodies are JSON text, errors are the server's Status objects, in
// JSON or, where a request accepted it, in protobuf.
//
// Thread-safe; holds no state but its options, so several may share a Transport, which must outlive it. Callbacks run
// on the transport's thread. Nothing is retried here: whoever knows what a repetition means decides (see
// io::surely_not_applied). An Error carries http_status, retry_after_s (Retry-After or details.retryAfterSeconds) and a
// message "<verb> <path>: <reason>: <server's message>".
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/meta.h"
#include "base/result.h"
#include "base/time.h"
#include "io/transport.h"

namespace berth::kube {

// A kind of object as it stands in a URL.
struct Resource {
  std::string_view group{};  // empty: core
  std::string_view version{};
  std::string_view plural{};
  std::string_view kind;  // no default: lists are known by it

  // "/api/v1/namespaces/ns/pods"; all namespaces, or a cluster-wide kind, with an empty `name_space`.
  std::string collection(std::string_view name_space = {}) const;
  // ".../pods/name" and ".../pods/name/binding".
  std::string object(std::string_view name_space, std::string_view name, std::string_view subresource = {}) const;
};

inline constexpr Resource kPods{"", "v1", "pods", "Pod"};
inline constexpr Resource kNodes{"", "v1", "nodes", "Node"};
inline constexpr Resource kNamespaces{"", "v1", "namespaces", "Namespace"};
inline constexpr Resource kPersistentVolumeClaims{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"};
inline constexpr Resource kPersistentVolumes{"", "v1", "persistentvolumes", "PersistentVolume"};
inline constexpr Resource kStorageClasses{"storage.k8s.io", "v1", "storageclasses", "StorageClass"};
inline constexpr Resource kLeases{"coordination.k8s.io", "v1", "leases", "Lease"};
inline constexpr Resource kEvents{"events.k8s.io", "v1", "events", "Event"};
inline constexpr Resource kPodDisruptionBudgets{"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"};

enum class PatchType { kMerge, kStrategic, kJson, kApply };

// Options of one call.
struct CallOptions {
  Duration timeout = Duration::seconds(30);
  std::function<bool()> may_start{};  // see io::HttpRequest
};

// The Binding subresource of one pod.
struct PodBinding {
  std::string name_space{};
  std::string pod{};
  std::string uid{};  // the server refuses with 409 if the pod of this name is another by now
  std::string node{};
  model::Labels annotations{};  // merged into the pod's in the same write
};

// A condition for patch_pod_condition().
struct PodConditionPatch {
  api::Condition condition{};
  std::optional<Time> last_transition{};        // absent: the server keeps its own
  int64_t observed_generation = 0;              // metadata.generation that it speaks of; 0: left out
  std::optional<std::string> nominated_node{};  // written if given; empty: the pod is nominated for no node
};

// How long the server asks to be left alone (Retry-After): a minute at most, so that no answer stops Berth; 0 without
// one.
Duration retry_after(const Error& error);

class Client {
 public:
  using Done = std::function<void(Result<std::string> body)>;

  explicit Client(io::Transport& transport, std::string user_agent = default_user_agent());

  void get(const std::string& path, Done done, CallOptions options = {});
  void create(const std::string& path, std::string body, Done done, CallOptions options = {});
  void update(const std::string& path, std::string body, Done done, CallOptions options = {});
  void patch(const std::string& path, PatchType type, std::string body, Done done, CallOptions options = {});
  // `body`: DeleteOptions or empty.
  void remove(const std::string& path, std::string body, Done done, CallOptions options = {});

  // POSTs the Binding. kConflict: another pod of this name, or bound already; kTimeout: unknown; either way ask first.
  void bind(const PodBinding& binding, Done done, CallOptions options = {});
  // Sets one condition on the pod's status; strategic merge, so other conditions
  // stay. The UID is a precondition: kConflict if the pod is another by now.
  void patch_pod_condition(std::string_view name_space, std::string_view pod, std::string_view uid,
                           const PodConditionPatch& condition, Done done, CallOptions options = {});

  // Waits for one call: get_now("/version"). Never on the transport's thread.
  Result<std::string> get_now(const std::string& path, CallOptions options = {});

  // A request with the headers that every call carries; for reflectors.
  io::HttpRequest request(std::string method, std::string target, std::string_view accept = "application/json") const;
  io::Transport& transport() { return transport_; }

  static std::string default_user_agent();  // "berth/<version>"

 private:
  void start(io::HttpRequest request, Done done, CallOptions options);

  io::Transport& transport_;
  std::string user_agent_;
};

// The body of a 2xx response, or the Error that the response says. `what` is "GET /api/v1/pods".
Result<std::string> body_or_error(io::HttpResponse response, std::string_view what);
// The Error of a Status object; also for the ERROR events of a watch.
Error status_error(int http_status, std::string_view body, std::string_view what);
// The server's own message in that of such an Error.
std::string_view server_words(std::string_view message);

}  // namespace berth::kube
