// How fast watch events and manifests are decoded: pods per second on one core.
//
//   decode_bench [SECONDS]
// The event is one as a busy API server sends it: managedFields, volumes, status, about 5 KB.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "api/decode.h"

namespace {

using Seconds = std::chrono::duration<double>;

std::string pod_json() {
  std::string managed;
  for (int i = 0; i < 20; ++i)
    managed += R"("f:field)" + std::to_string(i) +
               R"(":{".":{},"k:{\"name\":\"main\"}":{".":{},"f:image":{},"f:resources":{".":{},"f:limits":{}}}},)";
  return R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"train-7f6d9c-x2x4z","generateName":"train-7f6d9c-",)"
         R"("namespace":"research","uid":"6d8c1a52-0b0c-4a53-9a0a-9d3d0b1c2e3f","resourceVersion":"81234567","generation":1,)"
         R"("creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":"train","job-name":"train","pod-template-hash":"7f6d9c","team":"vision"},)"
         R"("annotations":{"berth.dev/placement":"pack","kubernetes.io/config.source":"api"},)"
         R"("ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"train","uid":"0c8a","controller":true,"blockOwnerDeletion":true}],)"
         R"("managedFields":[{"manager":"kubectl","operation":"Update","apiVersion":"v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{)" +
         managed +
         R"("f:last":{}}}]},)"
         R"("spec":{"volumes":[{"name":"kube-api-access","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}}],"defaultMode":420}},)"
         R"({"name":"data","persistentVolumeClaim":{"claimName":"dataset"}}],"containers":[{"name":"main","image":"registry.example.com/train:1.2.3","command":["python","train.py"],)"
         R"("env":[{"name":"NCCL_DEBUG","value":"INFO"},{"name":"OMP_NUM_THREADS","value":"8"}],"resources":{"limits":{"cpu":"16","memory":"128Gi","nvidia.com/gpu":"8"},)"
         R"("requests":{"cpu":"16","memory":"128Gi","nvidia.com/gpu":"8"}},"volumeMounts":[{"name":"data","mountPath":"/data"}],"terminationMessagePath":"/dev/termination-log",)"
         R"("terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],"restartPolicy":"Never","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst",)"
         R"("nodeSelector":{"gpu-type":"a100"},"serviceAccountName":"default","serviceAccount":"default","nodeName":"node-17","securityContext":{},)"
         R"("affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},)"
         R"("schedulerName":"berth","tolerations":[{"key":"nvidia.com/gpu","operator":"Exists","effect":"NoSchedule"},)"
         R"({"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"priority":0,"enableServiceLinks":true,)"
         R"("preemptionPolicy":"PreemptLowerPriority"},"status":{"phase":"Running","conditions":[)"
         R"({"type":"PodReadyToStartContainers","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-02T03:04:06Z"},)"
         R"({"type":"Initialized","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-02T03:04:05Z"},)"
         R"({"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-02T03:04:09Z"},)"
         R"({"type":"PodScheduled","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-02T03:04:05Z"}],"hostIP":"10.0.0.17","podIP":"10.1.2.3",)"
         R"("startTime":"2026-01-02T03:04:05Z","containerStatuses":[{"name":"main","state":{"running":{"startedAt":"2026-01-02T03:04:08Z"}},"ready":true,"restartCount":0,)"
         R"("image":"registry.example.com/train:1.2.3","imageID":"sha256:0123456789abcdef","containerID":"containerd://0123456789abcdef","started":true,)"
         R"("allocatedResources":{"cpu":"16","memory":"128Gi","nvidia.com/gpu":"8"},"resources":{"limits":{"cpu":"16","memory":"128Gi","nvidia.com/gpu":"8"},)"
         R"("requests":{"cpu":"16","memory":"128Gi","nvidia.com/gpu":"8"}}}],"qosClass":"Guaranteed"}})";
}

// Calls `work` for `budget_s` and returns calls per second.
template <typename Work>
double rate(double budget_s, const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  int64_t calls = 0;
  double elapsed = 0;
  while (elapsed < budget_s) {
    for (int i = 0; i < 100; ++i) work();
    calls += 100;
    elapsed = Seconds(std::chrono::steady_clock::now() - start).count();
  }
  return static_cast<double>(calls) / elapsed;
}

}  // namespace

int main(int argc, char** argv) {
  const double budget_s = argc > 1 ? std::atof(argv[1]) : 1.0;
  const std::string event = pod_json();
  size_t decoded = 0;
  const double events = rate(budget_s, [&] {
    const auto result = berth::api::decode_pod(event);
    decoded += result ? 1 : 0;
  });
  std::printf("pods from JSON %9.0f pods/s  (%zu bytes each, %zu decoded)\n", events, event.size(), decoded);

  const std::string manifest =
      "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  labels: {app: x}\nspec:\n  containers:\n  - name: c\n    "
      "resources:\n"
      "      limits:\n        cpu: 4\n        nvidia.com/gpu: 1\n  tolerations:\n  - key: gpu\n    operator: "
      "Exists\n---\n";
  std::string file;
  for (int i = 0; i < 100; ++i) file += manifest;
  size_t objects = 0;
  const double files = rate(budget_s, [&] {
    berth::api::Problems problems;
    for (const auto& document : berth::api::read_documents(file, "f.yaml", problems))
      objects += decode(document, problems) ? 1 : 0;
  });
  std::printf("YAML manifests %9.0f pods/s  (%zu bytes each, %zu decoded)\n", files * 100, manifest.size(), objects);
  return 0;
}
