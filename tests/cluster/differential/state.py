"""Outcome: what became of one pod. State: all that is there when the next pod comes, as manifests."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace

from . import volumes, world
from .case import Case


@dataclass(frozen=True)
class Outcome:
    """kube-scheduler's verdict on one pod. Either `node` is set or `message` is."""

    node: str = ""  # where it is bound
    feasible: tuple[str, ...] = ()  # the nodes that it could have been bound to; none for a pod that was not bound
    message: str = ""  # of PodScheduled=False
    nominated: str = ""
    evicted: tuple[str, ...] = ()  # names of pods; no two of a case share one
    claims: dict[str, str] = field(default_factory=dict)  # claims that waited for it: name -> volume, "" for a new one

    def without_pick(self) -> Outcome:
        """What is no matter of chance: which of the feasible nodes it is, is one."""
        return replace(self, node="some" if self.node else "", claims={})


def started(order: int) -> dict:
    """The status of a pod that runs. Start times decide between victims, so each pod has one of its own."""
    return {"phase": "Running", "startTime": f"2026-01-01T{order // 60:02}:{order % 60:02}:00Z"}


class State:
    def __init__(self, case: Case):
        self._started = 0
        self.running: dict[str, dict] = {}
        self.others: dict[tuple[str, str], dict] = {}
        for one in case.objects:
            if one["kind"] == "Pod":
                self._runs(one, one["spec"]["nodeName"])
            else:
                self.others[one["kind"], one["metadata"]["name"]] = one

    def manifests(self) -> list[dict]:
        return [*world.objects(), *self.others.values(), *self.running.values()]

    def _runs(self, pod: dict, node: str) -> dict:
        pod = copy.deepcopy(pod)
        pod["spec"]["nodeName"] = node
        pod["status"] = started(self._started)
        self._started += 1
        self.running[pod["metadata"]["name"]] = pod
        return pod

    def take(self, pod: dict, outcome: Outcome) -> None:
        """What follows from an outcome: victims have left, and a nominated pod has the place that it was promised."""
        for name in outcome.evicted:
            del self.running[name]
        node = outcome.node or outcome.nominated
        if not node:
            return
        self._runs(pod, node)
        for name, chosen in outcome.claims.items():
            claim = self.others["PersistentVolumeClaim", name]
            volume = self.others["PersistentVolume", chosen] if chosen else None
            for one in volumes.bound_by_controller(claim, volume):
                self.others[one["kind"], one["metadata"]["name"]] = one
