"""The differences from kube-scheduler that Berth means to have. docs/differences.md explains each by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .replay import Step

Pairs = dict[str, tuple[object, object]]  # what differs -> (kube-scheduler's, Berth's)

_IN_TREE_DISKS = {"gcePersistentDisk", "awsElasticBlockStore", "rbd", "iscsi"}


def _names_a_disk(step: Step, _differing: Pairs) -> bool:
    return any(_IN_TREE_DISKS & set(volume) for volume in step.pod["spec"].get("volumes", []))


def _equal_victims(step: Step, differing: Pairs) -> bool:
    """Others of the same priorities, on the same node: pods that have no start time are in no order."""
    if set(differing) != {"evicted"}:
        return False
    priorities = {one["metadata"]["name"]: one["spec"].get("priorityClassName", "")
                  for one in step.manifests if one["kind"] == "Pod"}  # fmt: skip
    kube, berth = (sorted(priorities.get(name, name) for name in names) for names in differing["evicted"])
    return kube == berth


ACCEPTED: dict[str, Callable[[Step, Pairs], bool]] = {
    "in-tree disks": _names_a_disk,
    "equal victims": _equal_victims,
}


def name_of(step: Step, differing: Pairs) -> str | None:
    """The accepted difference that explains all that differs for the pod; None where there is none."""
    return next((name for name, explains in ACCEPTED.items() if explains(step, differing)), None)
