// Inter-pod terms for tests: builders, and a small set of specs for random streams.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/peers.h"

namespace berth::engine::testing {

inline constexpr const char* kHostname = "kubernetes.io/hostname";

// The pods of some namespaces, sorted, that have label app=`app`.
inline model::PeerSelector app(std::string app, std::vector<std::string> namespaces = {"default"}) {
  model::PeerSelector out;
  out.namespaces = std::move(namespaces);
  out.pods.requirements = {{"app", model::NodeSelectorOperator::kIn, {std::move(app)}}};
  return out;
}

inline model::TopologySpreadConstraint spread_over(std::string key, model::PeerSelector peers, int32_t max_skew = 1,
                                                   bool required = true) {
  model::TopologySpreadConstraint out;
  out.topology_key = std::move(key);
  out.peers = std::move(peers);
  out.peers.skips_terminating = true;
  out.max_skew = max_skew;
  out.required = required;
  return out;
}

// Varieties of terms over labels "zone" and the hostname, namespaces "ns0" to "ns2" and apps "web" and "db"; 0 to 16.
inline model::Peers peers_of(int which) {
  using Op = model::NodeSelectorOperator;
  const std::vector<std::string> all = {"ns0", "ns1", "ns2"};
  model::Peers out;
  const model::PeerSelector web = app("web", {"ns0", "ns1"}), db = app("db", all);
  model::PeerSelector red = web, none = web, any = web;
  red.namespaces.clear();
  red.namespace_selector = model::LabelSelector{false, {{"team", Op::kIn, {"red"}}}};
  none.pods = {true, {}};
  any.pods = {};
  switch (which) {
    case 0: out.anti_affinity = {{web, kHostname}}; break;
    case 1: out.affinity = {{web, "zone"}}; break;
    case 2: out.affinity = {{db, kHostname}, {app("db", {"ns1"}), "zone"}}; break;
    case 3: out.anti_affinity = {{red, "zone"}, {none, kHostname}}; break;
    case 4: out.preferred = {{50, {web, "zone"}}, {-80, {db, kHostname}}}; break;
    case 5: out.preferred = {{-10, {any, kHostname}}}; break;
    case 6: out.spread = {spread_over("zone", web)}; break;
    case 7: out.spread = {spread_over(kHostname, db, 1), spread_over("zone", db, 2)}; break;
    case 8: out.spread = {spread_over("zone", db, 1, false), spread_over(kHostname, web, 1, false)}; break;
    case 9:
      out.spread = {spread_over("zone", any)};
      out.spread[0].min_domains = 2;
      break;
    case 10:
      out.spread = {spread_over(kHostname, db)};
      out.spread[0].honors_taints = true;
      out.spread[0].honors_affinity = false;
      break;
    case 11: out.affinity = {{red, "zone"}}; break;
    case 12:
      out.anti_affinity = {{db, "level"}};
      out.affinity = {{db, kHostname}};
      break;
    case 13:
      out.spread = {spread_over("zone", web, 5, false)};
      out.spread[0].by_default = true;
      break;
    case 14: out.affinity = {{web, "zone", true}}; break;
    case 15: out.preferred = {{100, {db, "zone", true}}, {100, {db, kHostname, true}}}; break;
    default:
      out.spread = {spread_over("zone", web, 1), spread_over("level", web, 2, false)};
      out.anti_affinity = {{any, kHostname}};
      out.preferred = {{100, {db, "zone"}}};
  }
  return out;
}

}  // namespace berth::engine::testing
