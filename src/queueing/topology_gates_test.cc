// TopologyGates: the gate goes once the pod is let in, and is asked for again where that failed.
#include "queueing/topology_gates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace berth::queueing {
namespace {

using Json = nlohmann::json;
constexpr const char *kGate = "kueue.x-k8s.io/topology", *kAdmission = "kueue.x-k8s.io/admission";

TEST(TopologyGates, TheGateGoesOnceThePodIsLetIn) {
  TopologyGates gates;
  Time now;
  const auto all = [](const std::string&) { return true; };
  const auto none = [](const std::string&) { return false; };
  gates.see({"default", "train-0", "uid-0", "7", {kGate, "else"}});
  gates.see({"default", "waits", "uid-1", "7", {kAdmission, kGate}});  // the desk takes off both
  gates.see({"default", "plain", "uid-2", "7", {"else"}});
  EXPECT_TRUE(gates.look(none, now, 10).empty());
  EXPECT_TRUE(gates.look(all, now, 0).empty());
  std::vector<Write> writes = gates.look(all, now, 10);
  ASSERT_EQ(writes.size(), 1U);
  EXPECT_EQ(writes[0].name, "train-0");
  EXPECT_EQ(Json::parse(writes[0].body), Json::parse(R"({"metadata": {"uid": "uid-0", "resourceVersion": "7"},
                                                        "spec": {"schedulingGates": [{"name": "else"}]}})"));
  EXPECT_TRUE(gates.look(all, now, 10).empty()) << "one write at a time";
  gates.answered({.write = writes[0], .http_status = 409}, now);
  EXPECT_TRUE(gates.look(all, now, 10).empty()) << "after a pause";
  gates.see({"default", "train-0", "uid-0", "8", {kGate}});
  now = now + Duration::seconds(5);
  writes = gates.look(all, now, 10);
  ASSERT_EQ(writes.size(), 1U);
  EXPECT_EQ(Json::parse(writes[0].body)["spec"]["schedulingGates"], Json::array());
  gates.answered({.write = writes[0], .stored = true}, now);
  EXPECT_TRUE(gates.look(all, now + Duration::seconds(60), 10).empty());
}

}  // namespace
}  // namespace berth::queueing
