#!/usr/bin/env python3
"""Volumes on a real kube-apiserver, with the real volume controller; a provisioner is played by the test.

What Berth says of claims and volumes is compared with what kube-scheduler says of the same pods. Ends with status 77
(skipped, for ctest) where the test servers or the program are not built.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.daemon import Berth, wait_until, write_kubeconfig  # noqa: E402
from harness.objects import pod, unschedulable  # noqa: E402
from harness.suite import MERGE, WithBerth, main  # noqa: E402

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
STORAGE = "/apis/storage.k8s.io/v1"
TAIL = " no new claims to deallocate, preemption:"
SELECTED = "volume.kubernetes.io/selected-node"


def using(name: str, *claims: str, **how) -> dict:
    volumes = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": claim}} for i, claim in enumerate(claims)]
    return pod(name, volumes=volumes, **how)


class Volumes(WithBerth):
    COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")

    def setUp(self) -> None:
        super().setUp()
        for path in (CLAIMS, VOLUMES):
            for one in self.api.call("GET", path)["items"]:
                self.api.call("DELETE", f"{path}/{one['metadata']['name']}")
                self.patch(f"{path}/{one['metadata']['name']}", {"metadata": {"finalizers": None}}, quiet=True)
            wait_until(f"nothing is left of {path}", lambda p=path: not self.api.call("GET", p)["items"])
        for kind in ("storageclasses", "csinodes", "csidrivers"):
            self.api.call("DELETE", f"{STORAGE}/{kind}")

    def patch(self, path: str, body: dict, content_type: str = MERGE, quiet: bool = False) -> dict:
        try:
            return super().patch(path, body, content_type)
        except Exception:
            if not quiet:
                raise
            return {}

    def storage_class(self, name: str, *, mode: str = "WaitForFirstConsumer", by: str = "p.example.com", **more):
        body = {"metadata": {"name": name}, "provisioner": by, "volumeBindingMode": mode, **more}
        self.api.call("POST", f"{STORAGE}/storageclasses", body)

    def claim(self, name: str, cls: str, *, size: str = "1Gi", mode: str = "ReadWriteOnce", **meta) -> dict:
        spec = {"accessModes": [mode], "resources": {"requests": {"storage": size}}, "storageClassName": cls}
        return self.api.call("POST", CLAIMS, {"metadata": {"name": name, **meta}, "spec": spec})

    def volume(self, name: str, cls: str, *, node: str | None = None, size: str = "1Gi", mode: str = "ReadWriteOnce",
               claim: dict | None = None, labels: dict | None = None, csi: str | None = None) -> dict:  # fmt: skip
        source = {"csi": {"driver": csi, "volumeHandle": name}} if csi else {"hostPath": {"path": "/x"}}
        spec = {"capacity": {"storage": size}, "accessModes": [mode], "storageClassName": cls, **source}
        if node:
            term = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}}
        if claim:
            about = claim["metadata"]
            spec["claimRef"] = {"namespace": "default", "name": about["name"], "uid": about["uid"],
                                "kind": "PersistentVolumeClaim", "apiVersion": "v1"}  # fmt: skip
        return self.api.call("POST", VOLUMES, {"metadata": {"name": name, "labels": labels or {}}, "spec": spec})

    def bound_pair(self, name: str, **how) -> None:
        """A claim and a volume of this name, bound to each other by the volume controller."""
        made = self.claim(name, "by-hand", mode=how.get("mode", "ReadWriteOnce"))
        self.volume(name, "by-hand", claim=made, **how)
        wait_until(f"{name} is bound", lambda: self.api.call("GET", f"{CLAIMS}/{name}")["status"]["phase"] == "Bound")

    def selected_node(self, claim: str) -> str | None:
        return self.api.call("GET", f"{CLAIMS}/{claim}")["metadata"].get("annotations", {}).get(SELECTED)

    # -- binding

    def test_a_provisioned_claim_is_bound_before_its_pod(self) -> None:
        self.node(2)
        self.storage_class("fast")
        made = self.claim("data", "fast")
        self.create(using("app", "data"), pod("other"))
        node = wait_until("the claim names a node", lambda: self.selected_node("data"))
        self.bound("other")  # a pod whose volumes are being made holds up nobody
        self.assertNotIn("nodeName", self.get("app")["spec"])
        self.volume("made", "fast", node=node, claim=made)
        self.assertEqual(self.bound("app"), node)

    def test_a_provisioner_that_gives_up_sends_its_pod_back(self) -> None:
        names = self.node(2)
        self.storage_class("fast")
        self.claim("data", "fast")
        self.create(using("app", "data"))
        node = wait_until("the claim names a node", lambda: self.selected_node("data"))
        self.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})
        self.patch(f"{CLAIMS}/data", {"metadata": {"annotations": {SELECTED: None}}})
        other = wait_until("the claim names the other node", lambda: self.selected_node("data"))
        self.assertEqual({node, other}, set(names))
        notes = [one["note"] for one in self.events_of("app", "FailedScheduling")]
        self.assertIn('running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC "data"', notes)

    def test_a_free_volume_goes_to_its_claim_with_the_pods_place(self) -> None:
        self.node(3)
        self.storage_class("local", by="kubernetes.io/no-provisioner")
        self.volume("large", "local", node="node-1", size="10Gi")
        self.volume("small", "local", node="node-2", size="2Gi")
        self.claim("one", "local")
        self.claim("two", "local")
        self.create(using("p1", "one"), using("p2", "two"))
        self.assertEqual({self.bound("p1"), self.bound("p2")}, {"node-1", "node-2"})
        for name in ("large", "small"):
            volume = self.api.call("GET", f"{VOLUMES}/{name}")
            self.assertEqual(volume["status"]["phase"], "Bound")
            self.assertEqual(volume["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"], "yes")

    def test_a_missing_claim_that_is_made_starts_its_pod(self) -> None:
        self.node(1)
        self.storage_class("local", by="kubernetes.io/no-provisioner")
        self.volume("disk", "local", node="node-0")
        self.create(using("app", "data"))
        self.assertIn('persistentvolumeclaim "data" not found', self.waiting("app"))
        self.claim("data", "local")
        self.bound("app")

    def test_a_read_write_once_pod_claim_goes_from_one_pod_to_the_next(self) -> None:
        self.node(2)
        self.bound_pair("mine", mode="ReadWriteOncePod")
        self.create(using("first", "mine"))
        self.bound("first")
        self.create(using("second", "mine"))
        self.assertIn("ReadWriteOncePod access mode already in-use", self.waiting("second"))
        self.delete("first")
        self.bound("second")

    def test_a_claim_that_nobody_provisions_gives_the_place_back_in_time(self) -> None:
        self.node(1)
        self.storage_class("slow")
        self.claim("data", "slow")
        impatient = Berth(self.scratch, self.cluster.berth_kubeconfig,
                          config={"schedulerNames": ["impatient"], "volumeBindTimeout": "1s"}).start()  # fmt: skip
        self.addCleanup(impatient.kill)
        self.create(using("app", "data", scheduler="impatient"))
        said = wait_until("it gives up", lambda: self.events_of("app", "FailedScheduling"))
        self.assertIn("binding volumes: context deadline exceeded", said[0]["note"])
        wait_until("it tries again", lambda: len(impatient.said("binding volumes")) > 1)

    def test_without_rights_to_storage_other_pods_are_still_placed(self) -> None:
        self.node(1)
        self.storage_class("fast")
        self.claim("data", "fast")
        limited = Berth(self.scratch, self.without_storage(), config={"schedulerNames": ["limited"]}).start()
        self.addCleanup(limited.kill)
        self.create(using("with", "data", scheduler="limited"), pod("without", scheduler="limited"))
        self.bound("without")
        self.assertIn('persistentvolumeclaim "data" not found', self.waiting("with"))
        refused = {one["resource"] for one in limited.said("storage cannot be read")}
        self.assertIn("persistentvolumeclaims", refused)

    def without_storage(self) -> Path:
        """A kubeconfig with Berth's rights, but for storage."""
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        storage = {"persistentvolumeclaims", "persistentvolumes", "storageclasses"}
        rules = self.api.call("GET", f"{rbac}/clusterroles/berth-scheduler")["rules"]
        kept = [rule for rule in rules if not storage & set(rule["resources"])]
        subject = {"kind": "ServiceAccount", "name": "limited", "namespace": "default"}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "limited"}
        about = {"metadata": {"name": "limited"}}
        for path, body in (("/api/v1/namespaces/default/serviceaccounts", about),
                           (f"{rbac}/clusterroles", {**about, "rules": kept}),
                           (f"{rbac}/clusterrolebindings", {**about, "roleRef": reference, "subjects": [subject]})):  # fmt: skip
            self.api.call("POST", path, body)
            self.addCleanup(self.api.call, "DELETE", f"{path}/limited")
        token = self.api.call("POST", "/api/v1/namespaces/default/serviceaccounts/limited/token", {"spec": {}})
        return write_kubeconfig(self.scratch / "limited.kubeconfig", self.cluster.server_url,
                                {"token": token["status"]["token"]}, self.cluster.layout.pki / "ca.crt")  # fmt: skip

    # -- words

    def test_what_is_said_of_volumes_is_what_kube_scheduler_says(self) -> None:
        self.node(3, labels=lambda i: {"topology.kubernetes.io/zone": f"z{i}"})
        for number in range(3):
            driver = {"name": "lim.example.com", "nodeID": "n", "allocatable": {"count": 1}}
            self.api.call("POST", f"{STORAGE}/csinodes",
                          {"metadata": {"name": f"node-{number}"}, "spec": {"drivers": [driver]}})  # fmt: skip
        self.storage_class("static", by="kubernetes.io/no-provisioner")
        self.storage_class("immediate", mode="Immediate")
        topologies = [{"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": ["z9"]}]}]
        self.storage_class("elsewhere", allowedTopologies=topologies)
        self.storage_class("capacity", by="cap.example.com")
        self.api.call("POST", f"{STORAGE}/csidrivers",
                      {"metadata": {"name": "cap.example.com"}, "spec": {"storageCapacity": True}})  # fmt: skip
        for name, cls in (("immediate", "immediate"), ("no-such-class", "nothing"), ("static", "static"),
                          ("elsewhere", "elsewhere"), ("capacity", "capacity")):  # fmt: skip
            self.claim(name, cls)
        self.claim("selected", "static", annotations={SELECTED: "node-7"})
        self.claim("deleted", "static", finalizers=["example.com/keep"])
        self.api.call("DELETE", f"{CLAIMS}/deleted")
        self.addCleanup(self.patch, f"{CLAIMS}/deleted", {"metadata": {"finalizers": None}}, quiet=True)
        self.bound_pair("far", node="node-9")
        self.bound_pair("zone", labels={"topology.kubernetes.io/zone": "z9"})
        self.bound_pair("lim-1", csi="lim.example.com")
        self.bound_pair("lim-2", csi="lim.example.com")
        cases = {name: (name,) for name in ("missing", "immediate", "no-such-class", "static", "elsewhere", "capacity",
                                            "selected", "deleted", "far", "zone")}  # fmt: skip
        cases.update({"limits": ("lim-1", "lim-2"), "first-speaks": ("immediate", "missing"), "two": ("far", "zone")})
        for name, claims in cases.items():
            self.create(using(f"{name}-b", *claims), using(f"{name}-k", *claims, scheduler="default-scheduler"))
        for name in cases:
            with self.subTest(name):
                theirs = self.waiting(f"{name}-k").split(TAIL)[0]
                wait_until(lambda n=name: f"{unschedulable(self.get(n + '-b'))} is {theirs}",
                           lambda n=name: unschedulable(self.get(f"{n}-b")).split(TAIL)[0] == theirs, 20)  # fmt: skip


if __name__ == "__main__":
    main()
