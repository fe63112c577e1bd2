"""Suite: tests that share one cluster, each of which begins without nodes and pods and is judged at its end."""

from __future__ import annotations

import contextlib
import copy
import json
import sys
import tempfile
import time
import unittest
from pathlib import Path

from cluster import ApiError, BinariesMissing, Cluster, find_binaries

from .daemon import Berth, berth_binary, wait_until
from .history import History
from .objects import BERTH, pod, unschedulable

CORE = ("etcd", "kube-apiserver")
PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
OTHER = "berth-too"  # a second name that Berth serves here
MERGE = "application/merge-patch+json"


class Suite(unittest.TestCase):
    """One cluster for all classes of a program that want the same components."""

    COMPONENTS: tuple[str, ...] = CORE

    @classmethod
    def setUpClass(cls) -> None:
        cls.cluster = shared_cluster(cls.COMPONENTS)
        cls.api = cls.cluster.api
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.scratch = Path(scratch.name)

    def setUp(self) -> None:
        self.wipe()
        self.history = History(self.api).__enter__()
        self.nodes: dict[str, dict] = {}

    def tearDown(self) -> None:
        try:
            self.history.catch_up()
            self.assertEqual(self.history.faults(self.nodes), [])
        finally:
            self.history.__exit__()

    def wipe(self) -> None:
        for namespace in ("default", "team"):
            for group in ("/apis/apps/v1/namespaces/{}/replicasets", "/apis/batch/v1/namespaces/{}/jobs"):
                self.api.call("DELETE", group.format(namespace), {"propagationPolicy": "Background"})
            path = f"/api/v1/namespaces/{namespace}/pods"
            for one in self.api.call("GET", path)["items"]:
                if one["metadata"].get("finalizers"):
                    with contextlib.suppress(ApiError):  # it may have gone meanwhile
                        self.patch(f"{path}/{one['metadata']['name']}", {"metadata": {"finalizers": None}})
            self.api.call("DELETE", path, {"gracePeriodSeconds": 0})
            wait_until(f"no pod is left in {namespace}", lambda p=path: not self.api.call("GET", p)["items"])
        self.api.call("DELETE", "/api/v1/nodes")

    # -- short forms

    def node(self, count: int = 1, **how) -> list[str]:
        names = self.cluster.nodes(count, **how)
        for name in names:
            self.nodes[name] = self.api.call("GET", f"/api/v1/nodes/{name}")
        return names

    def create(self, *pods: dict, namespace: str = "default") -> list[str]:
        return [self.api.call("POST", f"/api/v1/namespaces/{namespace}/pods", one)["metadata"]["uid"] for one in pods]

    def kubectl_apply(self, *objects: dict) -> None:
        self.cluster.kubectl("apply", "-f", "-", input="\n---\n".join(json.dumps(one) for one in objects))

    def get(self, name: str, namespace: str = "default") -> dict:
        return self.api.call("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")

    def pods(self) -> list[dict]:
        return self.api.call("GET", PODS)["items"]

    def patch(self, path: str, body: dict, content_type: str = MERGE) -> dict:
        return self.api.call("PATCH", path, body, content_type=content_type)

    def delete(self, name: str) -> None:
        self.api.call("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})

    def bound(self, name: str, namespace: str = "default") -> str:
        """The node that a pod is bound to, once it is."""
        return wait_until(lambda: f"{name} is bound: {unschedulable(self.get(name, namespace)) or 'nothing said'}",
                          lambda: self.get(name, namespace)["spec"].get("nodeName"))  # fmt: skip

    def waiting(self, name: str) -> str:
        """What a pod is told about why it waits, once it is told."""
        return wait_until(f"{name} is told why it waits", lambda: unschedulable(self.get(name)))

    def message_of_nodes(self, name: str, part: str) -> None:
        wait_until(lambda: f"the text of {name} has '{part}': {unschedulable(self.get(name))}",
                   lambda: part in unschedulable(self.get(name)))  # fmt: skip

    def settle(self) -> None:
        """Returns when Berth knows all that was written before: one watch delivers pods in order."""
        name = f"settle-{time.monotonic_ns()}"
        self.create(pod(name, nodeSelector={"no": "such"}))
        self.waiting(name)
        self.delete(name)

    def events_of(self, name: str, reason: str) -> list[dict]:
        found = self.api.call("GET", EVENTS)["items"]
        return [one for one in found if one["regarding"].get("name") == name and one["reason"] == reason]


class WithBerth(Suite):
    """A daemon runs beside all tests of the class."""

    CONFIG: dict = {"schedulerNames": [BERTH, OTHER], "verdictInterval": "200ms"}
    EXPECTED_ERRORS: tuple[str, ...] = ()  # messages that its log may have

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.berth = Berth(cls.scratch, cls.cluster.berth_kubeconfig, config=copy.deepcopy(cls.CONFIG)).start()
        cls.addClassCleanup(cls.berth.kill)

    def tearDown(self) -> None:
        super().tearDown()
        self.assertTrue(self.berth.running())
        errors = [one for one in self.berth.entries() if one["level"] == "error"]
        self.assertEqual([one for one in errors if one["msg"] not in self.EXPECTED_ERRORS], [])


_clusters: dict[tuple[str, ...], Cluster] = {}


def shared_cluster(components: tuple[str, ...]) -> Cluster:
    """Started by the first class that needs it; ends with the module."""
    if components not in _clusters:
        cluster = Cluster(components=components).__enter__()
        unittest.addModuleCleanup(cluster.__exit__)
        cluster.api.call("POST", "/api/v1/namespaces", {"metadata": {"name": "team"}})
        _clusters[components] = cluster
    return _clusters[components]


def main() -> None:
    """Runs the tests of the program; ends with status 77 where the servers or Berth are not built."""
    try:
        find_binaries()
    except BinariesMissing as missing:
        print(f"SKIPPED: {missing}")
        sys.exit(77)
    if berth_binary() is None:
        print("SKIPPED: the berth program is not built: ./dev build, or set BERTH_BIN to the folder that holds it")
        sys.exit(77)
    unittest.main(verbosity=2)
