// A pod as a busy API server sends it: managedFields, volumes, status, about 5 KB. Shared by the benches, so that they
// speak of the same object.
#pragma once

#include <string>

namespace berth::bench {

inline std::string busy_pod_json() {
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

}  // namespace berth::bench
