"""The nodes of a Case: small, mixed, often just too small."""

from __future__ import annotations

from .draw import Draw

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
RACK = "example.com/rack"
PRODUCT = "nvidia.com/gpu.product"
GENERATION = "example.com/generation"
GPU = "nvidia.com/gpu"
FPGA = "example.com/fpga"

ZONES = ("z1", "z2", "z3")
RACKS = ("r1", "r2", "r3")
PRODUCTS = ("A100", "H100", "T4")
GENERATIONS = ("1", "2", "7", "old")  # the last is no number: Gt and Lt never match it

TAINTS = (
    {"key": "dedicated", "value": "ml", "effect": "NoSchedule"},
    {"key": "dedicated", "value": "web", "effect": "NoExecute"},
    {"key": "maintenance", "effect": "NoExecute"},
    {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
    {"key": "flaky", "value": "yes", "effect": "PreferNoSchedule"},
)


def _labels(draw: Draw, name: str, gpus: int) -> dict[str, str]:
    labels = {"kubernetes.io/os": "linux"}
    if not draw.chance(0.04):
        labels[HOSTNAME] = name
    if not draw.chance(0.06):
        labels[ZONE] = draw.pick(ZONES)
    if draw.chance(0.7):
        labels[RACK] = draw.pick(RACKS)
    if gpus and draw.chance(0.9):
        labels[PRODUCT] = draw.pick(PRODUCTS)
    if draw.chance(0.5):
        labels[GENERATION] = draw.pick(GENERATIONS)
    return labels


def _allocatable(draw: Draw, gpus: int, tight: bool) -> dict[str, str]:
    have = {
        "cpu": draw.pick(("500m", "1", "2", "4") if tight else ("2", "4", "8", "16", "64")),
        "memory": draw.pick(("512Mi", "2Gi", "4Gi") if tight else ("2Gi", "8Gi", "32Gi")),
        "pods": draw.pick(("1", "2", "3", "110") if tight else ("110", "110", "110", "3")),
    }
    if gpus:
        have[GPU] = str(gpus)
    if draw.chance(0.2):
        have[FPGA] = draw.pick(("1", "2"))
    if draw.chance(0.3):
        have["ephemeral-storage"] = draw.pick(("1Gi", "100Gi"))
    return have


def node(draw: Draw, number: int, emphasis: frozenset[str]) -> dict:
    name = f"n{number}"
    gpus = draw.pick((0, 0, 1, 2, 4, 8))
    have = _allocatable(draw, gpus, tight=draw.chance(0.8 if emphasis & {"capacity", "preemption"} else 0.1))
    spec: dict = {}
    if draw.chance(0.6 if "taints" in emphasis else 0.1):
        spec["taints"] = draw.some(TAINTS, draw.pick((1, 1, 2)))
    if draw.chance(0.12 if "taints" in emphasis else 0.03):
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": _labels(draw, name, gpus)},
        "spec": spec,
        "status": {
            "capacity": have,
            "allocatable": have,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated"}],
        },
    }
