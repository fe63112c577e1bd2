"""Case: what a seed stands for. Objects that are there from the start, and pods that come one by one."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from . import nodes, pods, volumes, world
from .draw import Draw

# Each case is about one or two of these; the rest of a pod stays simple, so that the verdict it can get stands out.
EMPHASES = ("capacity", "preemption", "inter-pod", "taints", "spread", "volumes",
            "affinity", "preemption", "inter-pod", "ports", "spread", "volumes")  # fmt: skip
PAIRS = ("capacity", "affinity", "inter-pod", "spread", "preemption", "preemption")


@dataclass(frozen=True)
class Case:
    seed: int
    emphasis: frozenset[str]
    objects: list[dict]  # nodes, running pods, budgets, claims; what every case shares (world.py) is not among them
    pods: list[dict]  # in the order in which they come; named p0, p1, ...

    @property
    def nodes(self) -> list[str]:
        return [one["metadata"]["name"] for one in self.objects if one["kind"] == "Node"]

    def fingerprint(self) -> str:
        """Of all manifests: an outcome recorded for other manifests is not compared."""
        text = json.dumps([world.objects(), self.objects, self.pods], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def emphasis_of(seed: int, draw: Draw) -> frozenset[str]:
    """The seeds take turns, so that any thirty in a row are about everything."""
    first = EMPHASES[seed % len(EMPHASES)]
    return frozenset({first, draw.pick(PAIRS)} if draw.chance(0.5) else {first})


def case(seed: int) -> Case:
    draw = Draw(seed)
    emphasis = emphasis_of(seed, draw)
    objects = [nodes.node(draw, number, emphasis) for number in range(draw.pick((2, 3, 3, 4, 4, 5, 6, 8)))]
    names = [one["metadata"]["name"] for one in objects]
    if draw.chance(0.2):
        objects += [pods.running(draw, number, emphasis - {"volumes"}, names) for number in range(draw.pick((1, 2, 3)))]
    if "preemption" in emphasis and draw.chance(0.5):
        objects += [pods.disruption_budget(draw, number) for number in range(draw.pick((1, 1, 2)))]
    if "volumes" in emphasis:
        objects += volumes.objects(draw, names)
    count = draw.between(6, 14)
    coming = [pods.pod(draw, number, count, emphasis, names) for number in range(count)]
    if "volumes" in emphasis:
        for one in coming:
            volumes.add_to(draw, one)
    return Case(seed, emphasis, objects, coming)
