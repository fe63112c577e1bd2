#include "api/decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// The only object of a file without problems.
Object object_of(const std::string& text) {
  Problems problems;
  const auto documents = read_documents(text, "f.yaml", problems);
  std::optional<Object> object;
  if (documents.size() == 1) object = decode(documents[0], problems);
  for (const Problem& problem : problems) ADD_FAILURE() << to_string(problem);
  return object ? *object : Object(Unknown{});
}

TEST(DecodeStrict, ReadsEverythingOfAPodThatSchedulingNeeds) {
  const auto pod = std::get<Pod>(object_of(R"(
apiVersion: v1
kind: Pod
metadata: {name: train, namespace: research, labels: {app: x}, annotations: {berth.dev/placement: pack}}
spec:
  schedulerName: berth
  priorityClassName: high
  nodeSelector: {gpu-type: a100}
  hostNetwork: true
  activeDeadlineSeconds: 3600
  schedulingGates: [{name: example.com/wait}]
  preemptionPolicy: Never
  affinity:
    nodeAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 7
        preference: {matchExpressions: [{key: zone, operator: NotIn, values: [a]}]}
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: host}]
  tolerations: [{operator: Exists}, {key: k, value: v, effect: NoExecute, tolerationSeconds: 5}]
  initContainers: [{name: side, image: x, restartPolicy: Always}]
  containers:
  - name: main
    image: x
    livenessProbe: {whatever: 1}
    ports: [{containerPort: 80}]
    resources: {limits: {cpu: 1.5, memory: 1Gi, nvidia.com/gpu: 2}, requests: {cpu: 500m}}
  volumes: [{name: v, persistentVolumeClaim: {claimName: data}}, {name: w, emptyDir: {}}]
)"));
  EXPECT_EQ(pod.metadata.namespace_name, "research");
  EXPECT_EQ(*pod.metadata.annotation("berth.dev/placement"), "pack");
  EXPECT_EQ(pod.spec.scheduler_name, "berth");
  EXPECT_EQ(pod.spec.priority_class_name, "high");
  EXPECT_EQ(pod.spec.preemption_policy, "Never");
  EXPECT_EQ(pod.spec.active_deadline_s, 3600);
  EXPECT_THAT(pod.spec.scheduling_gates, ElementsAre("example.com/wait"));
  EXPECT_THAT(pod.spec.claim_volumes, ElementsAre(testing::Field(&ClaimVolume::claim_name, "data")));
  EXPECT_THAT(pod.spec.pod_anti_affinity.required, SizeIs(1));
  ASSERT_THAT(pod.spec.node_affinity.preferred, SizeIs(1));
  EXPECT_EQ(pod.spec.node_affinity.preferred[0].weight, 7);
  ASSERT_THAT(pod.spec.tolerations, SizeIs(2));
  EXPECT_TRUE(pod.spec.tolerations[0].any_effect);
  EXPECT_EQ(pod.spec.tolerations[1].effect, model::TaintEffect::kNoExecute);
  EXPECT_TRUE(pod.spec.init_containers[0].restart_always);
  const Container& main = pod.spec.containers[0];
  EXPECT_EQ(main.ports[0].host_port, 80) << "defaulted under hostNetwork";
  EXPECT_EQ(main.resources.requests, (model::ResourceList{{"cpu", 500}, {"memory", 1 << 30}, {"nvidia.com/gpu", 2}}));
  EXPECT_EQ(main.resources.limits.get("cpu"), 1500);
}

TEST(DecodeStrict, ReadsPodAffinityAndTopologySpread) {
  const auto pod = std::get<Pod>(object_of(R"(
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers: [{name: c, image: nginx}]
  affinity:
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: zone
        namespaces: [a, b]
        namespaceSelector: {}
        labelSelector: {matchLabels: {app: web}, matchExpressions: [{key: tier, operator: Exists}]}
        matchLabelKeys: [pod-template-hash]
        mismatchLabelKeys: [team]
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 100, podAffinityTerm: {topologyKey: kubernetes.io/hostname}}
  topologySpreadConstraints:
  - {maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {}, minDomains: 3,
     nodeAffinityPolicy: Ignore, nodeTaintsPolicy: Honor, matchLabelKeys: [app]}
  - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}
)"));
  ASSERT_THAT(pod.spec.pod_affinity.required, SizeIs(1));
  const PodAffinityTerm& term = pod.spec.pod_affinity.required[0];
  EXPECT_EQ(term.topology_key, "zone");
  EXPECT_THAT(term.namespaces, ElementsAre("a", "b"));
  ASSERT_TRUE(term.namespace_selector && term.label_selector);
  EXPECT_THAT(term.namespace_selector->requirements, SizeIs(0));
  EXPECT_THAT(term.label_selector->requirements, SizeIs(2));
  EXPECT_THAT(term.match_label_keys, ElementsAre("pod-template-hash"));
  EXPECT_THAT(term.mismatch_label_keys, ElementsAre("team"));
  ASSERT_THAT(pod.spec.pod_anti_affinity.preferred, SizeIs(1));
  EXPECT_EQ(pod.spec.pod_anti_affinity.preferred[0].weight, 100);
  EXPECT_FALSE(pod.spec.pod_anti_affinity.preferred[0].term.label_selector);
  ASSERT_THAT(pod.spec.topology_spread, SizeIs(2));
  const TopologySpreadConstraint& first = pod.spec.topology_spread[0];
  EXPECT_EQ(first.max_skew, 2);
  EXPECT_EQ(first.min_domains, 3);
  EXPECT_TRUE(first.label_selector && first.honors_taints);
  EXPECT_FALSE(first.honors_affinity || first.schedule_anyway);
  EXPECT_THAT(first.match_label_keys, ElementsAre("app"));
  EXPECT_TRUE(pod.spec.topology_spread[1].schedule_anyway);
  EXPECT_EQ(pod.spec.containers[0].image, "nginx");
}

// What `kubectl get pod -o yaml` gives: the server has merged matchLabelKeys into the selector.
TEST(DecodeStrict, TakesASelectorIntoWhichTheServerHasMergedMatchLabelKeys) {
  const auto pod = std::get<Pod>(object_of(R"(
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers: [{name: c, image: nginx}]
  topologySpreadConstraints:
  - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [rev],
     labelSelector: {matchExpressions: [{key: rev, operator: In, values: ["7"]}]}}
)"));
  EXPECT_THAT(pod.spec.topology_spread, SizeIs(1));
}

TEST(DecodeStrict, TakesHostPortsThatDoNotClashInTheApi) {
  const auto pod = std::get<Pod>(object_of(R"(
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  initContainers: [{name: i, image: x, ports: [{containerPort: 80, hostPort: 80}]}]
  containers:
  - name: c
    image: x
    ports:
    - {containerPort: 80, hostPort: 80}
    - {containerPort: 80, hostPort: 80, protocol: UDP}
    - {containerPort: 80, hostPort: 80, hostIP: 10.0.0.1}
)"));
  EXPECT_THAT(pod.spec.containers[0].ports, SizeIs(3));
}

TEST(DecodeLenient, ReadsTolerationsThatNeedAFeatureGate) {
  const auto pod = decode_pod(R"({"spec":{"tolerations":[{"key":"a","operator":"Gt","value":"5"}]}})");
  ASSERT_TRUE(pod) << pod.error().message;
  EXPECT_EQ(pod->spec.tolerations[0].op, model::TolerationOperator::kGt);
}

TEST(DecodeStrict, ReadsNodesWithTaintsAndCapacity) {
  const auto node = std::get<Node>(object_of(R"(
apiVersion: v1
kind: Node
metadata: {name: gpu-1, labels: {zone: a}}
spec: {unschedulable: true, taints: [{key: gpu, effect: NoSchedule}]}
status: {capacity: {cpu: "96", nvidia.com/gpu: 8, pods: 110}, nodeInfo: {x: y},
  images: [{names: [nginx:1.27, nginx@sha256:01], sizeBytes: 70}]}
)"));
  EXPECT_TRUE(node.unschedulable);
  EXPECT_THAT(node.taints, ElementsAre(model::Taint{"gpu", "", model::TaintEffect::kNoSchedule}));
  EXPECT_EQ(node.allocatable, node.capacity);
  EXPECT_EQ(node.allocatable.get("cpu"), 96000);
  ASSERT_THAT(node.images, SizeIs(1));
  EXPECT_THAT(node.images[0].names, ElementsAre("nginx:1.27", "nginx@sha256:01"));
  EXPECT_EQ(node.images[0].size_bytes, 70);
}

TEST(DecodeStrict, ReadsControllers) {
  const auto job = std::get<Job>(
      object_of("apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: j-}\nspec: {parallelism: 2, "
                "completions: 5, completionMode: Indexed, "
                "suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}\n"));
  EXPECT_EQ(job.parallelism, 2);
  EXPECT_EQ(job.completions, 5);
  EXPECT_TRUE(job.indexed && job.suspend);
  const auto cron =
      std::get<CronJob>(object_of("apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: n1}\nspec: {schedule: "
                                  "'@daily', jobTemplate: {spec: {template: {spec: "
                                  "{restartPolicy: OnFailure, containers: [{name: c, image: x}]}}}}}\n"));
  EXPECT_EQ(cron.job_template.pod_template.spec.restart_policy, "OnFailure");
  const auto priority =
      std::get<PriorityClass>(object_of("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: "
                                        "high}\nvalue: -5\nglobalDefault: true\n"));
  EXPECT_EQ(priority.value, -5);
}

TEST(DecodeStrict, PassesKindsThatItDoesNotUse) {
  const Object service = object_of("apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {anything: true}\n");
  EXPECT_EQ(kind_of(service), "Service");
  EXPECT_EQ(metadata_of(service).name, "web");
  const Object custom =
      object_of("apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: x}\nspec: {odd: [1]}\n");
  EXPECT_TRUE(std::holds_alternative<Unknown>(custom));
}

TEST(DecodeStrict, PodLevelRequestsDefaultToThoseOfTheContainers) {
  const auto pod = std::get<Pod>(
      object_of("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  resources: {limits: {cpu: 8, memory: 8Gi}}\n"
                "  containers: [{name: c, image: x, resources: {requests: {cpu: 2}}}]\n"));
  EXPECT_EQ(pod.spec.resources->requests, (model::ResourceList{{"cpu", 2000}, {"memory", int64_t{8} << 30}}));
}

TEST(DecodeLenient, TakesLabelsInAnyOrder) {
  const auto pod =
      decode_json<Pod>(R"({"metadata": {"labels": {"b": "1", "d": "2", "a": "3", "e": "4", "c": null, "b": "5"}}})");
  ASSERT_TRUE(pod) << pod.error().message;
  const model::Labels wanted = {{"a", "3"}, {"b", "5"}, {"c", ""}, {"d", "2"}, {"e", "4"}};
  EXPECT_EQ(pod->metadata.labels, wanted);
}

TEST(DecodeLenient, IgnoresUnknownFieldsAndDoesNotValidateNames) {
  const auto pod = decode_pod(
      R"({"metadata":{"name":"P_1","future":{}},"spec":{"brandNew":[1],"containers":[]},"status":{"phase":"Running","x":1}})");
  ASSERT_TRUE(pod) << pod.error().message;
  EXPECT_EQ(pod->status.phase, "Running");
}

TEST(DecodeLenient, TakesAmountsThatTheServerTookForTheLargest) {
  const auto pod = decode_pod(R"({"spec":{"containers":[{"resources":{"limits":{"memory":"100E","nvidia.com/gpu":"8"},)"
                              R"("requests":{"memory":"1Gi"}}},{"resources":{"limits":{"cpu":"1e400"}}}]}})");
  ASSERT_TRUE(pod) << pod.error().message;
  EXPECT_EQ(pod->spec.containers[0].resources.requests,
            (model::ResourceList{{"memory", int64_t{1} << 30}, {"nvidia.com/gpu", 8}}));
  EXPECT_EQ(pod->spec.containers[1].resources.requests, (model::ResourceList{{"cpu", INT64_MAX}}));
}

TEST(DecodeLenient, RefusesWhatItCannotUnderstand) {
  EXPECT_THAT(decode_pod(R"({"spec":{"containers":[{"resources":{"requests":{"cpu":"many"}}}]}})").error().message,
              HasSubstr("spec.containers[0].resources.requests.cpu: 'many' is not a quantity"));
  EXPECT_THAT(decode_node(R"({"status":{"allocatable":{"cpu":"100E"}}})").error().message,
              HasSubstr("status.allocatable.cpu: '100E' is larger"));
  EXPECT_THAT(decode_pod(R"({"spec":{"tolerations":[{"operator":"Near"}]}})").error().message,
              HasSubstr("spec.tolerations[0].operator"));
  const auto term = [](const std::string& rest) {
    return R"({"spec":{"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{)" + rest +
           "}]}}}}";
  };
  EXPECT_THAT(decode_pod(term(R"("labelSelector":{"matchExpressions":[{"key":"a","operator":"Gt","values":["1"]}]})"))
                  .error()
                  .message,
              HasSubstr("operator: Invalid value: \"Gt\""));
  EXPECT_THAT(decode_pod(R"({"spec":{"topologySpreadConstraints":[{"whenUnsatisfiable":"Perhaps"}]}})").error().message,
              HasSubstr("spec.topologySpreadConstraints[0].whenUnsatisfiable"));
  EXPECT_THAT(decode_pod("{").error().message, HasSubstr("not valid JSON"));
  EXPECT_THAT(decode_pod("[]").error().message, HasSubstr("expected an object, found a list"));
}

}  // namespace
}  // namespace berth::api
