#include "api/requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "api/decode.h"

namespace berth::api {
namespace {

using model::ResourceList;

// cpu (milli) that a pod with this spec and status counts for.
struct RequestCase {
  const char* name;
  const char* spec;
  const char* status;
  ResourceList wanted;
};
void PrintTo(const RequestCase& one, std::ostream* out) { *out << one.name; }

class EffectiveRequests : public ::testing::TestWithParam<RequestCase> {};

TEST_P(EffectiveRequests, AreThoseOfKubeScheduler) {
  const std::string json =
      std::string(R"({"metadata":{"name":"p"},"spec":)") + GetParam().spec + R"(,"status":)" + GetParam().status + "}";
  const auto pod = decode_pod(json);
  ASSERT_TRUE(pod) << pod.error().message;
  ResourceList wanted = GetParam().wanted;
  wanted.set("pods", 1);
  EXPECT_EQ(effective_requests(*pod), wanted);
}

const RequestCase kCases[] = {
    {"nothing", R"({"containers":[{"name":"a"}]})", "{}", {}},
    {"containers_are_summed",
     R"({"containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}},{"name":"b","resources":{"requests":{"cpu":"500m","memory":"1"}}}]})",
     "{}",
     {{"cpu", 1500}, {"memory", 1}}},
    {"limits_default_requests",
     R"({"containers":[{"name":"a","resources":{"limits":{"cpu":"2","nvidia.com/gpu":"1"}}}]})",
     "{}",
     {{"cpu", 2000}, {"nvidia.com/gpu", 1}}},
    {"largest_init_container",
     R"({"containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}],"initContainers":[{"name":"i","resources":{"requests":{"cpu":"3"}}},{"name":"j","resources":{"requests":{"cpu":"2"}}}]})",
     "{}",
     {{"cpu", 3000}}},
    {"sidecar_adds_to_containers",
     R"({"containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}],"initContainers":[{"name":"s","restartPolicy":"Always","resources":{"requests":{"cpu":"2"}}}]})",
     "{}",
     {{"cpu", 3000}}},
    {"init_after_sidecar_runs_beside_it",
     R"({"containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}],"initContainers":[{"name":"s","restartPolicy":"Always","resources":{"requests":{"cpu":"2"}}},{"name":"i","resources":{"requests":{"cpu":"5"}}}]})",
     "{}",
     {{"cpu", 7000}}},
    {"init_before_sidecar_runs_alone",
     R"({"containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}],"initContainers":[{"name":"i","resources":{"requests":{"cpu":"5"}}},{"name":"s","restartPolicy":"Always","resources":{"requests":{"cpu":"2"}}}]})",
     "{}",
     {{"cpu", 5000}}},
    {"overhead_is_added",
     R"({"overhead":{"cpu":"250m"},"containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}]})",
     "{}",
     {{"cpu", 1250}}},
    {"pod_level_overrides",
     R"({"resources":{"requests":{"cpu":"4"}},"overhead":{"cpu":"1"},"containers":[{"name":"a","resources":{"requests":{"cpu":"1","memory":"5"},"limits":{"nvidia.com/gpu":"1"}}}]})",
     "{}",
     {{"cpu", 5000}, {"memory", 5}, {"nvidia.com/gpu", 1}}},
    {"pod_level_limit_defaults_request",
     R"({"resources":{"limits":{"memory":"9"}},"containers":[{"name":"a"}]})",
     "{}",
     {{"memory", 9}}},
    {"resize_counts_the_largest",
     R"({"containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}]})",
     R"({"containerStatuses":[{"name":"a","allocatedResources":{"cpu":"2"},"resources":{"requests":{"cpu":"3"}}}]})",
     {{"cpu", 3000}}},
    {"resize_desired_is_largest",
     R"({"containers":[{"name":"a","resources":{"requests":{"cpu":"9"}}}]})",
     R"({"containerStatuses":[{"name":"a","allocatedResources":{"cpu":"2"},"resources":{"requests":{"cpu":"3"}}}]})",
     {{"cpu", 9000}}},
    {"infeasible_resize_ignores_desired",
     R"({"containers":[{"name":"a","resources":{"requests":{"cpu":"9"}}}]})",
     R"({"conditions":[{"type":"PodResizePending","status":"True","reason":"Infeasible"}],"containerStatuses":[{"name":"a","allocatedResources":{"cpu":"2"},"resources":{"requests":{"cpu":"3"}}}]})",
     {{"cpu", 3000}}},
    {"deferred_resize_counts_desired",
     R"({"containers":[{"name":"a","resources":{"requests":{"cpu":"9"}}}]})",
     R"({"conditions":[{"type":"PodResizePending","status":"True","reason":"Deferred"}],"containerStatuses":[{"name":"a","allocatedResources":{"cpu":"2"},"resources":{"requests":{"cpu":"3"}}}]})",
     {{"cpu", 9000}}},
    {"status_without_resources_is_ignored",
     R"({"containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}]})",
     R"({"containerStatuses":[{"name":"a","allocatedResources":{"cpu":"7"}}]})",
     {{"cpu", 1000}}},
    {"resized_sidecar",
     R"({"containers":[{"name":"a"}],"initContainers":[{"name":"s","restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}}]})",
     R"({"initContainerStatuses":[{"name":"s","allocatedResources":{"cpu":"4"},"resources":{"requests":{"cpu":"1"}}}]})",
     {{"cpu", 4000}}},
    {"finished_init_container_is_not_resized",
     R"({"containers":[{"name":"a"}],"initContainers":[{"name":"i","resources":{"requests":{"cpu":"1"}}}]})",
     R"({"initContainerStatuses":[{"name":"i","allocatedResources":{"cpu":"4"},"resources":{"requests":{"cpu":"4"}}}]})",
     {{"cpu", 1000}}},
};

INSTANTIATE_TEST_SUITE_P(Table, EffectiveRequests, ::testing::ValuesIn(kCases),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

RC_GTEST_PROP(EffectiveRequestsProperty, AreNeverBelowAnyContainer,
              (const std::vector<uint16_t>& cpus, const std::vector<bool>& sidecar)) {
  Pod pod;
  for (size_t i = 0; i < cpus.size(); ++i) {
    Container container{"c" + std::to_string(i), "", {{{"cpu", cpus[i]}}, {}}, {}, i < sidecar.size() && sidecar[i]};
    (i % 2 == 0 ? pod.spec.containers : pod.spec.init_containers).push_back(container);
  }
  const int64_t total = effective_requests(pod).get("cpu");
  for (const uint16_t cpu : cpus) RC_ASSERT(total >= cpu);
}

TEST(HostPorts, AreThoseOfContainersAndSidecars) {
  const auto pod = decode_pod(
      R"({"spec":{"containers":[{"name":"a","ports":[{"containerPort":80},{"containerPort":81,"hostPort":8081,"protocol":"UDP","hostIP":"10.0.0.1"}]}],
    "initContainers":[{"name":"i","ports":[{"containerPort":1,"hostPort":1}]},{"name":"s","restartPolicy":"Always","ports":[{"containerPort":2,"hostPort":2}]}]}})");
  ASSERT_TRUE(pod);
  EXPECT_THAT(host_ports(pod->spec), ::testing::ElementsAre(model::HostPort{"0.0.0.0", model::Protocol::kTcp, 2},
                                                            model::HostPort{"10.0.0.1", model::Protocol::kUdp, 8081}));
}

}  // namespace
}  // namespace berth::api
