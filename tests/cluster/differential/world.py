"""What every Case shares, and the recorder's cluster keeps from the first seed to the last.

These are never changed while cases come and go: admission and kube-scheduler learn of them through caches of their own,
whose delay would otherwise make an outcome depend on time.
"""

from __future__ import annotations

# No manifest gives the label kubernetes.io/metadata.name: the API server adds it, and selectors here ask for it.
NAMESPACES = {
    "alpha": {"team": "red", "stage": "prod"},
    "beta": {"team": "blue", "stage": "prod"},
    "gamma": {"team": "red"},
}

PRIORITIES = {"critical": 1_000_000, "high": 10_000, "normal": 100, "scavenger": -10}
POLITE = "polite"  # high enough to preempt nearly everything, and never does
POLITE_VALUE = 50_000

CSI_DRIVER = "disk.example.com"


def namespaces() -> list[dict]:
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
            for name, labels in NAMESPACES.items()]  # fmt: skip


def priority_classes() -> list[dict]:
    header = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    usual = [{**header, "metadata": {"name": name}, "value": value} for name, value in PRIORITIES.items()]
    return [*usual, {**header, "metadata": {"name": POLITE}, "value": POLITE_VALUE, "preemptionPolicy": "Never"}]


def storage_classes() -> list[dict]:
    def one(name: str, provisioner: str, mode: str, **more) -> dict:
        return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
                "provisioner": provisioner, "volumeBindingMode": mode, **more}  # fmt: skip

    zone = {"key": "topology.kubernetes.io/zone", "values": ["z1"]}
    return [
        one("at-once", "kubernetes.io/no-provisioner", "Immediate"),
        one("late", CSI_DRIVER, "WaitForFirstConsumer"),
        one("late-z1", CSI_DRIVER, "WaitForFirstConsumer", allowedTopologies=[{"matchLabelExpressions": [zone]}]),
        one("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
    ]


def objects() -> list[dict]:
    return [*namespaces(), *priority_classes(), *storage_classes()]
