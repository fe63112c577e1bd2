"""Small manifests, and what a pod asks for."""

from __future__ import annotations

from decimal import Decimal

BERTH = "berth"
_SUFFIXES = {"m": Decimal("0.001"), "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
             "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}  # fmt: skip


def pod(name: str, *, gpus: int = 0, requests: dict | None = None, ports: list[int] = (), scheduler: str = BERTH,
        annotations: dict | None = None, finalizers: list[str] = (), labels: dict | None = None,
        **spec) -> dict:  # fmt: skip
    container = {"name": "main", "image": "none", "resources": {}}
    if requests:
        container["resources"]["requests"] = dict(requests)
    if gpus:
        container["resources"]["limits"] = {"nvidia.com/gpu": str(gpus)}
    if ports:
        container["ports"] = [{"containerPort": port, "hostPort": port} for port in ports]
    metadata = {"name": name, "annotations": annotations or {}, "finalizers": list(finalizers), "labels": labels or {}}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": {"schedulerName": scheduler, "terminationGracePeriodSeconds": 0, "containers": [container], **spec},
    }  # fmt: skip


def quantity(text: str) -> Decimal:
    for suffix, factor in _SUFFIXES.items():
        if text.endswith(suffix):
            return Decimal(text.removesuffix(suffix)) * factor
    return Decimal(text)


def asks_for(one: dict) -> dict[str, Decimal]:
    """What a pod of these suites takes of its node: the sum over its containers (none has init containers)."""
    total = {"pods": Decimal(1)}
    for container in one["spec"]["containers"]:
        for resource, amount in container.get("resources", {}).get("requests", {}).items():
            total[resource] = total.get(resource, Decimal(0)) + quantity(amount)
    return total


def unschedulable(one: dict) -> str:
    """The message of PodScheduled=False/Unschedulable; empty without that condition."""
    for condition in one["status"].get("conditions", []):
        what = (condition["type"], condition["status"], condition.get("reason"))
        if what == ("PodScheduled", "False", "Unschedulable"):
            return condition.get("message", "")
    return ""


def holds_room(one: dict) -> bool:
    return bool(one["spec"].get("nodeName")) and one["status"].get("phase") not in ("Succeeded", "Failed")
