"""The claims and volumes of a Case, in every state in which a pod can find them, and the pods' use of them.

Claims that are bound say so as the volume controller would have written it. A claim that waits for its first consumer
is bound by whoever plays that controller, once a pod has its node (bound_by_controller).

No claim here waits for a controller before it can be scheduled, neither one that is to be provisioned at once nor that of a
generic ephemeral volume: `berth simulate` has such controllers, the recorder's control plane has none.
"""

from __future__ import annotations

import copy

from .draw import Draw
from .nodes import HOSTNAME, ZONE, ZONES
from .world import CSI_DRIVER

COMPLETED = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
SELECTED_NODE = "volume.kubernetes.io/selected-node"
SIZE = {"storage": "1Gi"}


def _volume(name: str, *, labels: dict | None = None, terms: list[dict] | None = None, storage_class: str = "",
            claim: dict | None = None, driver: bool = True, modes: tuple[str, ...] = ("ReadWriteOnce",)) -> dict:  # fmt: skip
    spec: dict = {"capacity": SIZE, "accessModes": list(modes), "persistentVolumeReclaimPolicy": "Retain"}
    if driver:
        spec["csi"] = {"driver": CSI_DRIVER, "volumeHandle": name}
    else:
        spec["local"] = {"path": "/mnt/data"}
    if storage_class:
        spec["storageClassName"] = storage_class
    if terms is not None:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    if claim is not None:
        spec["claimRef"] = {"kind": "PersistentVolumeClaim", **claim["metadata"]}
        spec["claimRef"].pop("annotations", None)
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name, "labels": labels or {}},
            "spec": spec, "status": {"phase": "Bound" if claim else "Available"}}  # fmt: skip


def _claim(name: str, *, storage_class: str = "", volume: str = "", mode: str = "ReadWriteOnce") -> dict:
    metadata: dict = {"name": name, "namespace": "alpha"}
    spec: dict = {"accessModes": [mode], "resources": {"requests": SIZE}, "storageClassName": storage_class}
    if volume:
        metadata["annotations"] = dict(COMPLETED)
        spec["volumeName"] = volume
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec,
            "status": {"phase": "Bound" if volume else "Pending"}}  # fmt: skip


def _bound(name: str, mode: str = "ReadWriteOnce", **how) -> list[dict]:
    claim = _claim(name, volume=f"v-{name}", mode=mode)
    return [claim, _volume(f"v-{name}", claim=claim, modes=(mode,), **how)]


def _in(key: str, *values: str) -> list[dict]:
    return [{"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}]


def _one(draw: Draw, name: str, nodes: list[str]) -> list[dict]:
    """A claim called `name` in some state, with the volume that it needs; nothing where it is missing."""
    kind = draw.below(20)
    if kind < 2:
        return _bound(name)
    if kind < 4:
        return _bound(name, terms=_in(ZONE, *draw.some(ZONES, draw.pick((1, 2)))))
    if kind == 4:
        return _bound(name, terms=_in(HOSTNAME, draw.pick((*nodes, "no-such-node"))), driver=False)
    if kind < 7:
        return _bound(name, labels={ZONE: draw.pick(("z1", "z2", "z1__z2"))})
    if kind < 9:
        return _bound(name, mode="ReadWriteOncePod")
    if kind == 9:
        return []
    if kind == 10:
        return [_claim(name, volume="v-gone")]
    if kind == 11:
        return [_claim(name, storage_class="at-once")]
    if kind == 12:
        return [_claim(name, storage_class="local")]
    if kind == 13:
        volume = _volume(f"v-{name}", storage_class="local", driver=False, terms=_in(HOSTNAME, draw.pick(nodes)))
        return [_claim(name, storage_class="local"), volume]
    if kind == 14:
        return [_claim(name, storage_class=draw.pick(("late", "late-z1", "no-such-class")))]
    if kind == 15:
        lost = _claim(name, volume="v-lost")
        lost["status"]["phase"] = "Lost"
        return [lost]
    if kind == 17:
        return _bound(name, labels={ZONE: draw.pick(("z1", "z2"))})
    return _bound(name, mode="ReadWriteOncePod" if kind == 16 else "ReadWriteOnce",
                  terms=_in(ZONE, *draw.some(ZONES, draw.pick((1, 2)))))  # fmt: skip


def objects(draw: Draw, nodes: list[str]) -> list[dict]:
    """Claims c0 to c5, their volumes, and how many volumes each node can attach."""
    found = [one for number in range(6) for one in _one(draw, f"c{number}", nodes)]
    for name in nodes:
        if draw.chance(0.8):
            driver = {"name": CSI_DRIVER, "nodeID": name, "topologyKeys": [ZONE],
                      "allocatable": {"count": draw.pick((1, 1, 2, 8))}}  # fmt: skip
            found.append({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name},
                          "spec": {"drivers": [driver]}})  # fmt: skip
    return found


def add_to(draw: Draw, pod: dict) -> None:
    """Gives the pod volumes: claims, rarely two, or a disk that it names itself."""
    if draw.chance(0.3):
        return
    pod["metadata"]["namespace"] = "alpha"  # where the claims are
    claims = draw.some([f"c{number}" for number in range(6)], draw.pick((1, 1, 1, 2)))
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    if draw.chance(0.2):
        disk = {"pdName": draw.pick(("disk-a", "disk-a", "disk-b")), "fsType": "ext4"}
        volumes = [{"name": "disk", "gcePersistentDisk": {**disk, "readOnly": True} if draw.chance(0.3) else disk}]
    pod["spec"]["volumes"] = volumes


def claims_of(pod: dict) -> list[str]:
    volumes = pod["spec"].get("volumes", [])
    return [one["persistentVolumeClaim"]["claimName"] for one in volumes if "persistentVolumeClaim" in one]


def bound_by_controller(claim: dict, chosen: dict | None = None) -> list[dict]:
    """A waiting claim and its volume once a pod that uses it has its node: `chosen`, or a volume made for it."""
    claim = copy.deepcopy(claim)
    name = chosen["metadata"]["name"] if chosen else f"v-{claim['metadata']['name']}-made"
    claim["metadata"]["annotations"] = dict(COMPLETED)
    claim["spec"]["volumeName"] = name
    claim["status"] = {"phase": "Bound"}
    if chosen:
        volume = copy.deepcopy(chosen)
        volume["spec"]["claimRef"] = {"kind": "PersistentVolumeClaim", "name": claim["metadata"]["name"],
                                      "namespace": claim["metadata"]["namespace"]}  # fmt: skip
        volume["status"] = {"phase": "Bound"}
    else:
        volume = _volume(name, storage_class=claim["spec"]["storageClassName"], claim=claim)
    return [claim, volume]
