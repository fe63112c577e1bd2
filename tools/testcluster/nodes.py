"""Simulated GPU nodes: Node objects that look as a kubelet would have reported them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from testcluster.rest import ApiClient

Labels = dict[str, str] | Callable[[int], dict[str, str]]


def node_object(name: str, resources: dict[str, str], labels: dict[str, str], taints: list[dict]) -> dict:
    """A ready Node that kwok takes care of where it runs. `resources` is both its capacity and its allocatable."""
    standard = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**standard, **labels},
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "spec": {"taints": taints},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated"}],
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": name}],
        },
    }


def create_nodes(
    api: ApiClient,
    count: int,
    *,
    gpus: int = 8,
    labels: Labels | None = None,
    taints: list[dict] | None = None,
    prefix: str = "node-",
    first: int = 0,
    cpu: str = "64",
    memory: str = "512Gi",
    pods: int = 110,
    ephemeral_storage: str = "1Ti",
    gpu_resource: str = "nvidia.com/gpu",
    resources: dict[str, str] | None = None,
) -> list[str]:
    """Creates nodes `<prefix><first>` and on, schedulable when this returns; their names. About 1 ms each.

    `labels` may be a function of the node's number, for racks and zones; `resources` adds to or overrides the rest.
    """
    have = {"cpu": cpu, "memory": memory, "pods": str(pods), "ephemeral-storage": ephemeral_storage}
    if gpus:
        have[gpu_resource] = str(gpus)
    have.update(resources or {})
    wanted_taints = taints or []

    def create(number: int) -> str:
        name = f"{prefix}{number}"
        own_labels = labels(number) if callable(labels) else labels or {}
        made = api.call("POST", "/api/v1/nodes", node_object(name, have, own_labels, wanted_taints))
        if len(made["spec"].get("taints", [])) != len(wanted_taints):  # admission adds not-ready to every new node
            patch = {"spec": {"taints": wanted_taints or None}}
            api.call("PATCH", f"/api/v1/nodes/{name}", patch, content_type="application/merge-patch+json")
        return name

    with ThreadPoolExecutor(max_workers=8) as pool:
        return list(pool.map(create, range(first, first + count)))
