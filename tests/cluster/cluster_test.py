#!/usr/bin/env python3
"""Proves the test cluster itself: its servers are real, they can be killed and restarted, and nothing is left behind.

Ends with status 77 (skipped, for ctest) where the test servers are not built.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

from cluster import BinariesMissing, Cluster, ClusterError, find_binaries  # noqa: E402
from testcluster.components import scheduler_config  # noqa: E402

ALL = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
CORE = ("etcd", "kube-apiserver")
BERTH = "system:serviceaccount:berth-system:berth"


def wait_until(what: str, holds: Callable[[], bool], timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s} s: {what}")
        time.sleep(0.05)


def processes_naming(folder: Path) -> list[int]:
    """The pids of every process with `folder` in its command line, ours excepted."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            other = entry.name.isdigit() and int(entry.name) != os.getpid()
            if other and str(folder).encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            pass  # it ended meanwhile
    return found


def pod(name: str, *, gpus: int = 0, annotations: dict | None = None, **spec) -> dict:
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"containers": [{"name": "main", "image": "none", "resources": resources}], **spec},
    }


class WholeControlPlane(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.cluster = Cluster(components=ALL).__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)
        cls.cluster.nodes(2, gpus=8)

    def apply(self, *objects: dict) -> None:
        self.cluster.kubectl("apply", "-f", "-", input="\n---\n".join(json.dumps(one) for one in objects))

    def get(self, name: str) -> dict:
        return self.cluster.api.call("GET", f"/api/v1/namespaces/default/pods/{name}")

    def wait_for_phase(self, name: str, phase: str) -> dict:
        wait_until(f"pod {name} is {phase}", lambda: self.get(name)["status"].get("phase") == phase)
        return self.get(name)

    def test_a_pod_with_a_node_name_runs_on_a_node_that_kubectl_made(self) -> None:
        node = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "by-hand"}}
        node["metadata"]["annotations"] = {"kwok.x-k8s.io/node": "fake"}
        self.apply(node, pod("placed", nodeName="by-hand"))
        self.wait_for_phase("placed", "Running")
        self.assertIn("by-hand", self.cluster.kubectl("get", "pod", "placed", "-o", "wide"))

    def test_kube_scheduler_binds_a_gpu_pod_and_the_simulated_kubelet_runs_it(self) -> None:
        self.apply(pod("gpus", gpus=2))
        running = self.wait_for_phase("gpus", "Running")
        self.assertRegex(running["spec"]["nodeName"], "^node-[01]$")

    def test_kube_scheduler_says_why_a_pod_does_not_fit(self) -> None:
        self.apply(pod("too-large", gpus=9, nodeSelector={"kubernetes.io/hostname": "node-0"}))

        def refused() -> bool:
            conditions = self.get("too-large")["status"].get("conditions", [])
            return any("Insufficient nvidia.com/gpu" in one.get("message", "") for one in conditions)

        wait_until("the PodScheduled condition names the GPUs", refused)

    def test_a_job_completes_under_the_controller_manager_and_kwok(self) -> None:
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}}
        spec = {"completions": 2, "parallelism": 2, "template": template}
        self.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": spec})
        self.cluster.kubectl("wait", "--for=condition=Complete", "job/job", "--timeout=60s")

    def test_a_pod_succeeds_or_fails_when_its_annotation_says_so(self) -> None:
        kwok = "stage.kwok.x-k8s.io"
        failure = {f"pod-fail.{kwok}/delay": "200ms", f"pod-fail.{kwok}/exit-code": "42"}
        self.apply(
            pod("good", restartPolicy="Never", annotations={f"pod-complete.{kwok}/delay": "200ms"}),
            pod("bad", restartPolicy="Never", annotations=failure),
        )
        self.wait_for_phase("good", "Succeeded")
        state = self.wait_for_phase("bad", "Failed")["status"]["containerStatuses"][0]["state"]
        self.assertEqual(state["terminated"]["exitCode"], 42)

    def test_berth_may_do_what_it_needs_and_nothing_more(self) -> None:
        def may(verb: str, group: str, resource: str, namespace: str = "default", name: str = "") -> bool:
            resource, _, subresource = resource.partition("/")
            asked = {"verb": verb, "group": group, "resource": resource, "subresource": subresource}
            review = {"spec": {"user": BERTH, "resourceAttributes": {**asked, "namespace": namespace, "name": name}}}
            path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
            return self.cluster.api.call("POST", path, review)["status"]["allowed"]

        allowed = [("list", "", "nodes"), ("watch", "", "pods"), ("create", "", "pods/binding"),
                   ("patch", "", "pods/status"), ("create", "events.k8s.io", "events"),
                   ("patch", "events.k8s.io", "events"), ("patch", "", "persistentvolumeclaims"),
                   ("patch", "", "persistentvolumes"), ("list", "storage.k8s.io", "storageclasses"),
                   ("watch", "storage.k8s.io", "csinodes"), ("watch", "storage.k8s.io", "csidrivers"),
                   ("watch", "storage.k8s.io", "csistoragecapacities"),
                   ("watch", "policy", "poddisruptionbudgets"), ("delete", "", "pods"),
                   ("list", "scheduling.k8s.io", "priorityclasses"), ("watch", "kueue.x-k8s.io", "clusterqueues"),
                   ("patch", "kueue.x-k8s.io", "localqueues/status"), ("create", "kueue.x-k8s.io", "workloads"), ("patch", "kueue.x-k8s.io", "workloads/status"),
                   ("patch", "kueue.x-k8s.io", "workloads"), ("patch", "", "pods"),
                   ("patch", "batch", "jobs"), ("patch", "batch", "jobs/status")]  # fmt: skip
        denied = [("list", "", "secrets"), ("create", "", "pods"), ("update", "", "pods"),
                  ("deletecollection", "", "pods"), ("create", "", "pods/eviction"),
                  ("update", "", "nodes"), ("create", "", "serviceaccounts/token"), ("create", "", "pods/exec"),
                  ("get", "coordination.k8s.io", "leases"), ("create", "", "events"),
                  ("create", "scheduling.k8s.io", "priorityclasses"), ("patch", "kueue.x-k8s.io", "clusterqueues"),
                  ("delete", "kueue.x-k8s.io", "workloads"), ("create", "batch", "jobs"), ("delete", "batch", "jobs")]  # fmt: skip
        for what in allowed:
            self.assertTrue(may(*what), what)
        for what in denied:
            self.assertFalse(may(*what), what)
        lease = ("coordination.k8s.io", "leases", "berth-system")
        self.assertTrue(may("create", *lease))
        self.assertTrue(may("update", *lease, "berth"))
        self.assertFalse(may("update", *lease, "another"))

    def test_berths_token_is_accepted(self) -> None:
        who = self.cluster.kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}",
                                   kubeconfig=self.cluster.berth_kubeconfig)  # fmt: skip
        self.assertEqual(who, BERTH)

    def test_berth_can_bind_a_pod_with_its_own_token(self) -> None:
        self.apply(pod("for-berth", schedulerName="berth"))
        target = {"apiVersion": "v1", "kind": "Node", "name": "node-1"}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "for-berth"}, "target": target}
        self.cluster.kubectl("create", "--raw", "/api/v1/namespaces/default/pods/for-berth/binding", "-f", "-",
                             input=json.dumps(binding), kubeconfig=self.cluster.berth_kubeconfig)  # fmt: skip
        self.assertEqual(self.wait_for_phase("for-berth", "Running")["spec"]["nodeName"], "node-1")


class Faults(unittest.TestCase):
    def test_a_killed_api_server_comes_back_on_its_port_with_its_data(self) -> None:
        with Cluster(components=CORE) as cluster:
            cluster.nodes(1)
            server = cluster.server_url
            cluster.kill("kube-apiserver")
            self.assertFalse(cluster.alive("kube-apiserver"))
            with self.assertRaises(OSError):
                cluster.api.raw("GET", "/readyz")
            cluster.start("kube-apiserver")
            self.assertEqual(cluster.server_url, server)
            self.assertEqual(cluster.api.call("GET", "/api/v1/nodes/node-0")["metadata"]["name"], "node-0")
            cluster.restart("etcd", kill=True)
            wait_until("the API server finds etcd again", lambda: cluster.api.raw("GET", "/readyz")[0] == 200)

    def test_a_watch_from_before_a_compaction_and_a_restart_is_told_410(self) -> None:
        with Cluster(components=CORE) as cluster:
            old = cluster.api.call("GET", "/api/v1/nodes")["metadata"]["resourceVersion"]
            cluster.nodes(3)
            cluster.compact()
            cluster.restart("kube-apiserver", kill=True)
            _, text = cluster.api.raw("GET", f"/api/v1/nodes?watch=1&resourceVersion={old}&timeoutSeconds=2")
            event = json.loads(text.splitlines()[0])
            self.assertEqual((event["type"], event["object"]["code"]), ("ERROR", 410))

    def test_watches_end_after_the_minimum_request_timeout(self) -> None:
        with Cluster(components=CORE, min_request_timeout=1) as cluster:
            began = time.monotonic()
            cluster.api.raw("GET", "/api/v1/nodes?watch=1")
            self.assertLess(time.monotonic() - began, 10)

    def test_a_server_that_cannot_start_is_reported_with_its_log(self) -> None:
        cluster = Cluster(components=CORE, extra_flags={"kube-apiserver": ["--no-such-flag"]})
        with self.assertRaisesRegex(ClusterError, "(?s)kube-apiserver ended while starting.*no-such-flag"):
            cluster.up()
        self.assertEqual(processes_naming(cluster.folder), [])
        cluster.close()
        self.assertFalse(cluster.folder.exists())


class SchedulerConfiguration(unittest.TestCase):
    YAML = "profiles:\n- schedulerName: to-compare\npercentageOfNodesToScore: 100\n"

    def test_kube_scheduler_runs_with_a_given_configuration(self) -> None:
        with Cluster(components=(*CORE, "kube-scheduler"), scheduler_config=self.YAML) as cluster:
            cluster.nodes(1)
            cluster.api.call("POST", "/api/v1/namespaces/default/pods", pod("one", schedulerName="to-compare"))
            path = "/api/v1/namespaces/default/pods/one"
            wait_until("it is bound", lambda: cluster.api.call("GET", path)["spec"].get("nodeName") == "node-0", 10)

    def test_a_configuration_may_be_json_and_may_not_set_the_connection(self) -> None:
        made = json.loads(scheduler_config('{"parallelism": 2}', Path("/k")))
        self.assertEqual((made["parallelism"], made["clientConnection"]["kubeconfig"]), (2, "/k"))
        with self.assertRaisesRegex(ValueError, "leave clientConnection out"):
            scheduler_config("clientConnection:\n  qps: 5\n", Path("/k"))


class NothingIsLeft(unittest.TestCase):
    def test_a_folder_of_something_else_is_refused(self) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            Path(scratch, "thesis.txt").touch()
            with self.assertRaisesRegex(ValueError, "something else"):
                Cluster(scratch)

    def test_two_clusters_live_side_by_side_and_end_apart(self) -> None:
        with Cluster(components=CORE) as one:
            with Cluster(components=CORE) as other:
                other.nodes(1)
                self.assertEqual(one.api.call("GET", "/api/v1/nodes")["items"], [])
                self.assertEqual(len(processes_naming(other.folder)), 2)
            self.assertEqual(processes_naming(other.folder), [])
            self.assertFalse(other.folder.exists())
            self.assertTrue(one.alive("kube-apiserver"))
        self.assertEqual(processes_naming(one.folder), [])

    def test_a_program_that_is_killed_leaves_no_server(self) -> None:
        for number, folder_stays in [(signal.SIGKILL, True), (signal.SIGTERM, False)]:
            with self.subTest(number), tempfile.TemporaryDirectory() as scratch:
                program = (
                    f"import sys, time; sys.path.insert(0, {str(TOOLS)!r})\nfrom cluster import Cluster\n"
                    f"with Cluster({scratch + '/c'!r}, components={CORE!r}): print('up', flush=True); time.sleep(600)"
                )
                child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
                self.assertEqual(child.stdout.readline(), "up\n")
                self.assertGreaterEqual(len(processes_naming(Path(scratch))), 3)
                child.send_signal(number)
                child.communicate()
                wait_until("its servers are gone", lambda: processes_naming(Path(scratch)) == [], 10)
                self.assertEqual(Path(scratch, "c").exists(), folder_stays)

    def test_the_command_line_starts_one_that_outlives_it_and_ends_it(self) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "cluster"

            def cli(*args: str) -> subprocess.CompletedProcess:
                command = [sys.executable, str(TOOLS / "cluster.py"), "--dir", str(folder), *args]
                return subprocess.run(command, capture_output=True, text=True)

            self.addCleanup(cli, "down")
            started = cli("up", "--without", "kube-controller-manager", "--nodes", "2")
            self.assertEqual(started.returncode, 0, started.stderr)
            self.assertIn(f"export KUBECONFIG={folder}/berth.kubeconfig", started.stdout)
            self.assertEqual(len(processes_naming(folder)), 3)
            self.assertEqual(cli("kill", "kube-apiserver").returncode, 0)
            self.assertRegex(cli("status").stdout, "kube-apiserver +not running")
            self.assertEqual(cli("up").returncode, 0)
            script = cli("env").stdout + "kubectl get nodes -o name"
            nodes = subprocess.run(["sh", "-c", script], capture_output=True, text=True)
            self.assertEqual(nodes.stdout, "node/node-0\nnode/node-1\n", nodes.stderr)
            self.assertEqual(cli("down").returncode, 0)
            self.assertEqual(processes_naming(folder), [])
            self.assertEqual(cli("status").returncode, 1)


if __name__ == "__main__":
    try:
        find_binaries()
    except BinariesMissing as missing:
        print(f"SKIPPED: {missing}")
        sys.exit(77)
    unittest.main(verbosity=2)
