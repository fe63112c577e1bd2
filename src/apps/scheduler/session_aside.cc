// Session's part for objects that cannot be understood: each is set aside alone, and what it holds is not given away.
#include "apps/scheduler/log.h"
#include "apps/scheduler/session.h"

namespace berth::apps {
namespace {

std::string name_of(const kube::Malformed& object) {
  return object.name_space.empty() ? object.name : object.name_space + "/" + object.name;
}

}  // namespace

// `then`: what follows from it, with a comma before.
void Session::quarantine(const char* kind, const kube::Malformed& object, const std::string& then) {
  options_.metrics->quarantined(kind);
  log_error("an object was set aside: it cannot be understood",
            {{"kind", kind}, {"name", name_of(object)}, {"error", object.error.message + then}});
  set_aside_.add(kind, name_of(object), object.error.message + then);
  if (object.name.empty()) return;
  events_->record({.regarding = {.kind = kind, .name_space = object.name_space, .name = object.name, .uid = object.uid},
                   .type = "Warning",
                   .reason = "Quarantined",
                   .action = "Scheduling",
                   .note = "Berth leaves this object alone: " + object.error.message + then});
}

// What was known of a pod before it became malformed, with the node that it says it is on. Nothing: it was not known,
// is over, or waits and is left alone.
std::optional<model::Pod> Session::known_of(const kube::Malformed& object) const {
  const engine::PodSlot slot = engine_.state().find_pod(object.uid);
  if (!slot.valid() || object.deleted || object.terminal) return std::nullopt;
  const engine::PodState& state = engine_.state().pod(slot);
  if (object.node_name.empty() && !engine::holds_room(state.phase)) return std::nullopt;
  model::Pod pod = state.pod;
  pod.node_name = object.node_name;
  return pod;
}

// It goes on counting for what it was known to ask for. If it was not known, its node is closed.
void Session::handle_malformed_pod(const kube::Malformed& object) {
  const std::optional<model::Pod> known = known_of(object);
  const bool closes = !known && !object.deleted && !object.terminal && !object.node_name.empty();
  if (known) engine_.apply(engine::PodUpserted{*known});
  else forget_pod(object.uid);
  if (closes) close_node({object.name_space, object.name}, object.node_name);
  else open_node_of(object.name_space, object.name);
  if (object.deleted) return set_aside_.remove("Pod", object.name_space, object.name);
  quarantine("Pod", object, closes ? ", and node " + object.node_name + " takes no new work meanwhile" : "");
}

void Session::close_node(const ClosedNodes::PodName& pod, const std::string& node) {
  const engine::NodeSlot slot = engine_.state().find_node(node);
  const bool present = slot.valid() && engine_.state().node(slot).present;
  closed_.close(pod, node, present ? &engine_.state().node(slot).node : nullptr);
  engine_.apply(engine::NodeDeleted{node});
}

void Session::open_node_of(const std::string& name_space, const std::string& name) {
  if (closed_.empty()) return;
  if (std::optional<model::Node> node = closed_.release({name_space, name}))
    engine_.apply(engine::NodeUpserted{std::move(*node)});
}

}  // namespace berth::apps
