"""WithWebhook: tests of what a real API server says of Jobs and pods while `berth webhook` is registered with it."""

from __future__ import annotations

import json
import subprocess
import tempfile
import unittest
from pathlib import Path

from cluster import ApiError

from .daemon import wait_until
from .kueue import GPU
from .suite import CORE, Cluster
from .webhook import Webhook, register

JOBS, PODS = "/apis/batch/v1/namespaces/default/jobs", "/api/v1/namespaces/default/pods"
QUEUE, GATE = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/admission"
USER = "berth.dev/user"


def pod(name: str, *, labels: dict | None = None, env: list | None = None, gpus: int = 0, **spec) -> dict:
    container = {"name": "main", "image": "none", "env": env or []}
    if gpus:
        container["resources"] = {"limits": {GPU: gpus}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or {}},
            "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec}}  # fmt: skip


def job(name: str, *, labels: dict | None = None, **pod_spec) -> dict:
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}], **pod_spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": labels or {}},
            "spec": {"template": {"spec": spec}}}  # fmt: skip


REACHING = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]


class WithWebhook(unittest.TestCase):
    ARGS: tuple[str, ...] = ("--node-max", f"{GPU}=8", "--shutdown-delay", "1")

    @classmethod
    def setUpClass(cls) -> None:
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.cluster = Cluster(components=CORE).__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)
        cls.api = cls.cluster.api
        cls.webhook = Webhook(Path(scratch.name), *cls.ARGS)
        cls.addClassCleanup(cls.webhook.kill)
        cls.webhook.start()
        cls.set_up_server()

    @classmethod
    def set_up_server(cls) -> None:
        register(cls.cluster, cls.webhook)
        probe = job("probe", labels={QUEUE: "q"})
        wait_until("the configurations are in effect", lambda: cls.api.call(
            "POST", JOBS + "?dryRun=All", probe)["spec"].get("suspend"))  # fmt: skip

    def create(self, path: str, one: dict) -> dict:
        made = self.api.call("POST", path, one)
        where = f"{path}/{one['metadata']['name']}"
        self.addCleanup(self.api.call, "DELETE", where, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
        return made

    def refused(self, path: str, one: dict, status: int = 422) -> str:
        with self.assertRaises(ApiError) as caught:
            self.api.call("POST", path + "?dryRun=All", one)
        self.assertEqual(caught.exception.status, status, str(caught.exception))
        return str(caught.exception)

    def kubectl(self, one: dict) -> subprocess.CompletedProcess:
        """kubectl create, with its warnings."""
        command = [str(self.cluster.binaries / "kubectl"), f"--kubeconfig={self.cluster.admin_kubeconfig}",
                   "create", "--dry-run=server", "-f", "-"]  # fmt: skip
        return subprocess.run(command, input=json.dumps(one), capture_output=True, text=True)
