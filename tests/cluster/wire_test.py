#!/usr/bin/env python3
"""A real kube-apiserver says the same in JSON and in protobuf of pods and nodes that have all that Berth reads.

The lists and refusals go to wire_compare, which decodes both and compares them member by member, and insists that each
member is set in some object. `--record` also keeps them in tests/wire/recorded, where an ordinary test compares them
again. Ends with status 77 (skipped, for ctest) where the test servers or the programs are not built.
"""

from __future__ import annotations

import http.client
import shutil
import ssl
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.daemon import berth_binary, token_of  # noqa: E402
from harness.suite import CORE, Cluster, main  # noqa: E402

RECORDED = Path(__file__).resolve().parents[1] / "wire" / "recorded"
ACCEPT = {"json": "application/json", "protobuf": "application/vnd.kubernetes.protobuf, application/json"}
GATES = "--feature-gates=InPlacePodLevelResourcesVerticalScaling=true,NodeDeclaredFeatures=true"
PODS = "/api/v1/namespaces/default/pods"
ODD = 'quote " backslash \\ tab \t line \n bell \x07 ü € 😀 <&> \u2028'

SELECTOR = {"matchLabels": {"app": "train", "tier": ""},
            "matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a", "b"]},
                                 {"key": "gone", "operator": "DoesNotExist"}]}  # fmt: skip
PEERS = {"labelSelector": SELECTOR, "topologyKey": "zone", "namespaces": ["default", "team"], "namespaceSelector": {},
         "matchLabelKeys": ["tier"], "mismatchLabelKeys": ["app2"]}  # fmt: skip
NEAR = {"requiredDuringSchedulingIgnoredDuringExecution": [PEERS, {"labelSelector": {}, "topologyKey": "rack"},
                                                           {"topologyKey": "block"}],
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 7, "podAffinityTerm": PEERS}]}  # fmt: skip
TERM = {"matchExpressions": [{"key": "gpu", "operator": "Gt", "values": ["3"]},
                             {"key": "zone", "operator": "In", "values": ["a", "b"]}],
        "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["node-9"]}]}  # fmt: skip
AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM, {}]},
                             "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": TERM},
                                                                                 {"weight": 1, "preference": {}}]},
            "podAffinity": NEAR, "podAntiAffinity": NEAR}  # fmt: skip
SPREAD = [{"maxSkew": 3, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR,
           "minDomains": 2, "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor", "matchLabelKeys": ["tier"]},
          {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"}]  # fmt: skip
TOLERATIONS = [{"key": "a", "operator": "Equal", "value": "b", "effect": "PreferNoSchedule"},
               {"key": "c", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0},
               {"key": "d", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": -5},
               {"operator": "Exists"}]  # fmt: skip
CLAIM = {"accessModes": ["ReadWriteOnce", "ReadOnlyMany"], "selector": SELECTOR, "volumeMode": "Block",
         "resources": {"requests": {"storage": "10Gi"}, "limits": {"storage": "1Ti"}}, "volumeName": "disk",
         "storageClassName": "fast", "volumeAttributesClassName": "gold"}  # fmt: skip
PLAIN_CLAIM = {"accessModes": ["ReadWriteOncePod"], "resources": {"requests": {"storage": "1500M"}},
               "storageClassName": ""}  # fmt: skip
VOLUMES = [{"name": "data", "persistentVolumeClaim": {"claimName": "dataset", "readOnly": True}},
           {"name": "made", "ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": {"x": "y"}}, "spec": CLAIM}}},
           {"name": "plain", "ephemeral": {"volumeClaimTemplate": {"spec": PLAIN_CLAIM}}},
           {"name": "scratch", "emptyDir": {}}, {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
           {"name": "names", "configMap": {"name": "none", "optional": True}}]  # fmt: skip
AMOUNTS = {"limits": {"cpu": "1.5", "memory": "0.5Gi", "nvidia.com/gpu": "8", "hugepages-2Mi": "4Mi"},
           "requests": {"cpu": "100m", "memory": "1e3", "ephemeral-storage": "3G"}}  # fmt: skip
PROBE = {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 5}
MAIN = {"name": "main", "image": "example.com/train:1", "command": ["run"], "args": ["--all", ""], "resources": AMOUNTS,
        "env": [{"name": "A", "value": ODD}, {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "ports": [{"name": "http", "containerPort": 80},
                  {"containerPort": 53, "hostPort": 53, "hostIP": "127.0.0.1", "protocol": "UDP"}],
        "livenessProbe": PROBE, "securityContext": {"runAsUser": 0}}  # fmt: skip
SIDECAR = {"name": "proxy", "image": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}


def named(name: str, **spec) -> dict:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "main", "image": "none"}], **spec}}  # fmt: skip


def full_pod() -> dict:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "0c8a", "controller": True}
    one = named("", schedulerName="berth", restartPolicy="Never", containers=[MAIN, {"name": "idle", "image": "idle"}],
                initContainers=[{"name": "fetch", "image": "fetch"}, SIDECAR], nodeSelector={"gpu": "a100", "e": ""},
                affinity=AFFINITY, topologySpreadConstraints=SPREAD, tolerations=TOLERATIONS, volumes=VOLUMES,
                priorityClassName="patient", runtimeClassName="sandboxed", activeDeadlineSeconds=3600,
                terminationGracePeriodSeconds=0, schedulingGates=[{"name": "example.com/later"}],
                resourceClaims=[{"name": "gpu", "resourceClaimName": "gpus"}])  # fmt: skip
    other = {**owner, "name": "cohort", "uid": "0c8b", "controller": False}
    one["metadata"] = {"generateName": "train-", "labels": {"app": "train", "empty": ""},
                       "annotations": {"odd": ODD, "e": ""}, "ownerReferences": [other, owner],
                       "finalizers": ["example.com/kept"]}  # fmt: skip
    return one


def status_of_running() -> dict:
    resources = {"limits": {"cpu": "3"}, "requests": {"cpu": "2500m", "memory": "1Gi"}}
    container = {"name": "main", "image": "none", "imageID": "sha256:0", "ready": True, "restartCount": 3,
                 "started": True, "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}}, "resources": resources,
                 "allocatedResources": {"cpu": "2500m", "memory": "1Gi"}}  # fmt: skip
    conditions = [{"type": "Ready", "status": "False", "reason": "Slow", "message": ODD, "lastProbeTime": None,
                   "lastTransitionTime": "2026-01-02T03:04:05Z"}]  # fmt: skip
    return {"phase": "Running", "reason": "Because", "message": ODD, "startTime": "2026-01-02T03:04:05Z",
            "conditions": conditions, "containerStatuses": [container],
            "initContainerStatuses": [{**container, "name": "fetch"}],
            "allocatedResources": {"cpu": "2", "memory": "1Gi"}, "resources": resources}  # fmt: skip


class Wire(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.cluster = Cluster(components=CORE, extra_flags={"kube-apiserver": [GATES]}).__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)
        cls.api = cls.cluster.api
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = Path(scratch.name)
        cls.make_nodes()
        cls.make_pods()

    @classmethod
    def make_nodes(cls) -> None:
        cls.cluster.nodes(2, gpus=8, labels=lambda i: {"zone": f"zone-{i}", "empty": ""})
        cls.api.call("POST", "/api/v1/nodes", {"metadata": {"name": "bare"}})
        taints = [{"key": "a", "value": "b", "effect": "NoExecute"}, {"key": "c", "effect": "PreferNoSchedule"}]
        spec = {"spec": {"providerID": "cloud://1", "unschedulable": True, "taints": taints}}
        name = cls.api.call("GET", "/api/v1/nodes")["items"][1]["metadata"]["name"]
        merge = "application/merge-patch+json"
        cls.api.call("PATCH", f"/api/v1/nodes/{name}", spec, content_type=merge)
        images = [{"names": ["a:1", "a@sha256:0"], "sizeBytes": 5_000_000_000}, {"names": ["b"]}]
        conditions = [{"type": "Ready", "status": "Unknown", "reason": "Silent", "message": ODD,
                       "lastHeartbeatTime": "2026-01-02T03:04:05Z", "lastTransitionTime": None}]  # fmt: skip
        status = {"capacity": {"cpu": "64", "memory": "1Ti", "nvidia.com/gpu": "8"}, "images": images,
                  "allocatable": {"cpu": "63500m", "memory": "1000Gi", "nvidia.com/gpu": "7"},
                  "conditions": conditions}  # fmt: skip
        cls.api.call("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, content_type=merge)

    @classmethod
    def make_pods(cls) -> None:
        scheduling, node = "/apis/scheduling.k8s.io/v1/priorityclasses", "/apis/node.k8s.io/v1/runtimeclasses"
        cls.api.call("POST", scheduling, {"metadata": {"name": "patient"}, "value": -7, "preemptionPolicy": "Never"})
        cls.api.call("POST", node, {"metadata": {"name": "sandboxed"}, "handler": "none",
                                    "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}}})  # fmt: skip
        cls.create(full_pod())
        amounts = {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "4", "memory": "2Gi"}}
        host = {"name": "main", "image": "none", "ports": [{"containerPort": 8080}]}
        running = named("running", nodeName="bare", hostNetwork=True, containers=[host], resources=amounts,
                        initContainers=[{"name": "fetch", "image": "none"}])  # fmt: skip
        cls.create(running, status_of_running())
        cls.create(named("waits"), {"nominatedNodeName": "bare", "phase": "Pending"})
        cls.create(named("empty", affinity={"nodeAffinity": {}, "podAffinity": {}}, nodeSelector={}, volumes=[]))
        leaving = named("leaving")
        leaving["metadata"]["finalizers"] = ["example.com/kept"]
        cls.create(leaving, {"phase": "Failed", "reason": "Evicted"})
        cls.api.call("DELETE", f"{PODS}/leaving", {"gracePeriodSeconds": 30})

    @classmethod
    def create(cls, one: dict, status: dict | None = None) -> None:
        made = cls.api.call("POST", PODS, one)
        if status:
            path = f"{PODS}/{made['metadata']['name']}/status"
            cls.api.call("PATCH", path, {"status": status}, content_type="application/merge-patch+json")

    def get(self, path: str, form: str, token: str = "") -> tuple[int, bytes]:
        pki = self.cluster.layout.pki
        tls = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        if not token:
            tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        port = self.cluster.layout.ports["kube-apiserver"]
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=tls, timeout=60)
        self.addCleanup(connection.close)
        headers = {"Accept": ACCEPT[form], **({"Authorization": f"Bearer {token}"} if token else {})}
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        self.assertEqual(body.startswith(b"k8s\0"), form == "protobuf", (path, answer.status, body[:200]))
        return answer.status, body

    def keep(self, name: str, path: str, status: int, token: str = "") -> None:
        for form in ACCEPT:
            got, body = self.get(path, form, token)
            self.assertEqual(got, status, body)
            (self.folder / f"{name}.{form}").write_bytes(body)

    def keep_refusals(self) -> None:
        old = {form: self.api.call("GET", "/api/v1/pods?limit=1")["metadata"]["continue"] for form in ACCEPT}
        self.create(named("after"))
        self.cluster.compact()
        self.cluster.restart("kube-apiserver")  # which knew older states itself
        for form in ACCEPT:
            status, body = self.get(f"/api/v1/pods?limit=1&continue={old[form]}", form)
            self.assertEqual(status, 410, body)
            (self.folder / f"gone.status.{form}").write_bytes(body)
        self.keep("forbidden.status", "/api/v1/secrets", 403, token_of(self.cluster.berth_kubeconfig))
        self.keep("unauthorized.status", "/api/v1/pods", 401, "wrong")
        self.keep("absent.status", f"{PODS}/none", 404)
        self.keep("odd.status", "/api/v1/pods?fieldSelector=odd%3Dtrue", 400)
        self.keep("future.status", "/api/v1/pods?resourceVersion=999999999999&resourceVersionMatch=NotOlderThan", 504)

    def test_both_forms_mean_the_same_to_berth(self) -> None:
        self.keep("pods", "/api/v1/pods", 200)
        self.keep("nodes", "/api/v1/nodes", 200)
        self.keep_refusals()
        compare = berth_binary().parent / "wire_compare"
        result = subprocess.run([compare, self.folder], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        print(result.stdout, end="", flush=True)
        if RECORD:
            for one in self.folder.iterdir():
                shutil.copyfile(one, RECORDED / one.name)


RECORD = "--record" in sys.argv

if __name__ == "__main__":
    if RECORD:
        sys.argv.remove("--record")
    if berth_binary() is not None and not (berth_binary().parent / "wire_compare").exists():
        print("SKIPPED: wire_compare is not built: ./dev build")
        sys.exit(77)
    main()
