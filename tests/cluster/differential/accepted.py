"""The differences from kube-scheduler that Berth means to have. docs/differences.md explains each by its name."""

from __future__ import annotations

from collections.abc import Callable

Pairs = dict[str, tuple[object, object]]  # what differs -> (kube-scheduler's, Berth's)

_IN_TREE_DISKS = {"gcePersistentDisk", "awsElasticBlockStore", "rbd", "iscsi"}


def _names_a_disk(pod: dict, _differing: Pairs) -> bool:
    return any(_IN_TREE_DISKS & set(volume) for volume in pod["spec"].get("volumes", []))


ACCEPTED: dict[str, Callable[[dict, Pairs], bool]] = {
    "in-tree disks": _names_a_disk,
}


def name_of(pod: dict, differing: Pairs) -> str | None:
    """The accepted difference that explains all that differs for the pod; None where there is none."""
    return next((name for name, explains in ACCEPTED.items() if explains(pod, differing)), None)
