"""Recorder: gives a Case to a real kube-scheduler and notes what became of each pod.

One pod at a time, and nothing but that pod waits, so that an outcome is a function of the state alone:

- a pod that was refused is taken away once its message is noted, or every change would have it tried again;
- a pod that was bound is marked as running, with a start time of its own, as its kubelet would;
- victims keep their default grace period and have no kubelet to end them: they stay until the outcome is noted. Then the
  preemptor is taken away, the victims leave, and the preemptor is put on the node that it was nominated for. That spares
  the time of a second try, and its tie where a victim's leaving makes another node fit too;
- a claim that waits for its first consumer is bound here, in the volume controller's place.

No controller manager runs. Admission plugins that change nodes and claims behind a manifest's back are off.
"""

from __future__ import annotations

import time
from dataclasses import replace

import harness  # noqa: F401  puts tools/ into sys.path
from cluster import Cluster

from . import volumes, world
from .case import Case
from .scheduler_log import FLAGS, WAIT_S, SchedulerLog
from .state import Outcome, State

MERGE = "application/merge-patch+json"
# Nodes and pods are seen to arrive in kube-scheduler's log; other kinds are not logged, and are given this long.
UNSEEN_S = 0.1

_CORE = "/api/v1"
_PATHS = {
    "Node": f"{_CORE}/nodes",
    "Namespace": f"{_CORE}/namespaces",
    "Pod": _CORE + "/namespaces/{}/pods",
    "PersistentVolume": f"{_CORE}/persistentvolumes",
    "PersistentVolumeClaim": _CORE + "/namespaces/{}/persistentvolumeclaims",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "CSINode": "/apis/storage.k8s.io/v1/csinodes",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
}
_HAVE_STATUS = ("PersistentVolume", "PersistentVolumeClaim", "PodDisruptionBudget", "Pod")  # creation drops it; it is written after


def _path(one: dict, *, named: bool = True) -> str:
    collection = _PATHS[one["kind"]].format(one["metadata"].get("namespace"))
    return f"{collection}/{one['metadata']['name']}" if named else collection


def _key(pod: dict) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def cluster() -> Cluster:
    """The control plane that a Recorder needs; a context manager."""
    off = "--disable-admission-plugins=TaintNodesByCondition,StorageObjectInUseProtection,DefaultStorageClass"
    return Cluster(components=("etcd", "kube-apiserver", "kube-scheduler"),
                   extra_flags={"kube-scheduler": list(FLAGS), "kube-apiserver": [off]})  # fmt: skip


class Recorder:
    """Context manager on a cluster() that is up. One thread."""

    def __init__(self, cluster: Cluster):
        self._api = cluster.api
        self._log = SchedulerLog(cluster.layout.log("kube-scheduler"))

    def __enter__(self) -> Recorder:
        for one in world.objects():
            self._create(one)
        time.sleep(1)  # admission knows priority classes and namespaces from caches
        return self

    def __exit__(self, *_exception) -> None:
        self._log.close()

    def record(self, case: Case, *, guide: list[Outcome] | None = None, patience_s: float = UNSEEN_S) -> list[Outcome]:
        """What became of each pod of the case. The cluster is empty before and after.

        With a guide, an earlier recording, a pod that kube-scheduler put elsewhere among its feasible nodes is moved to
        where it was then, so that the next one meets the same state; this ends early where its volumes went with it.
        """
        state = State(case)
        self._fill(case, state, patience_s)
        outcomes = []
        for pod, earlier in zip(case.pods, guide or [None] * len(case.pods), strict=True):
            outcome = self._judge(pod, state)
            outcomes.append(outcome)
            if earlier and outcome != earlier:
                if outcome.without_pick() != earlier.without_pick() or outcome.claims or earlier.claims:
                    break
                outcome = self._move(pod, outcome, earlier.node)
            self._settle(pod, outcome, state)
        self._wipe(case)
        return outcomes

    # -- the API

    def _create(self, one: dict) -> None:
        self._api.call("POST", _path(one, named=False), one)
        if one["kind"] in _HAVE_STATUS and "status" in one:
            self._patch(_path(one) + "/status", {"status": one["status"]})

    def _patch(self, path: str, body: dict) -> dict:
        return self._api.call("PATCH", path, body, content_type=MERGE)

    def _remove(self, pod: dict) -> None:
        self._api.call("DELETE", _path(pod), {"gracePeriodSeconds": 0})

    # -- a case

    def _fill(self, case: Case, state: State, patience_s: float) -> None:
        unseen = [one for key, one in state.others.items() if key[0] != "Node"]
        for one in unseen:
            self._create(one)
        self._log.skip()
        for name in case.nodes:
            self._create(state.others["Node", name])
        self._log.wait_all("Add event for node", "node", set(case.nodes))
        for pod in state.running.values():
            self._run(pod)
        if unseen:
            time.sleep(patience_s)

    def _run(self, pod: dict) -> None:
        """Creates a pod that has its node and runs there."""
        self._log.skip()
        self._create(pod)
        self._log.wait("Update event for scheduled pod", pod=_key(pod))

    def _wipe(self, case: Case) -> None:
        self._log.skip()
        bound = set()
        for name in world.NAMESPACES:
            path = _PATHS["Pod"].format(name)
            pods = self._api.call("GET", path)["items"]
            bound |= {f"{name}/{one['metadata']['name']}" for one in pods if one["spec"].get("nodeName")}
            if pods:
                self._api.call("DELETE", path, {"gracePeriodSeconds": 0})
        self._log.wait_all("Delete event for scheduled pod", "pod", bound)
        self._log.skip()
        self._api.call("DELETE", _PATHS["Node"])
        self._log.wait_all("Delete event for node", "node", set(case.nodes))
        for kind in sorted({one["kind"] for one in case.objects} - {"Node", "Pod"}):
            namespaces = world.NAMESPACES if "{}" in _PATHS[kind] else [""]
            for name in namespaces:
                self._api.call("DELETE", _PATHS[kind].format(name))

    # -- a pod

    def _judge(self, pod: dict, state: State) -> Outcome:
        self._log.skip()
        self._create(pod)
        bound, refused, failed = ("Successfully bound pod to node", "Unable to schedule pod; no fit; waiting",
                                  "Error scheduling pod; retrying")  # fmt: skip
        claims: dict[str, str] = {}
        binding = "Trying to bind volumes for pod"
        said, fields, lines = self._log.wait(bound, refused, failed, binding, pod=_key(pod))
        if said == binding:
            claims = self._play_controller(self._waiting_claims(pod, state), state)
            said, fields, _ = self._log.wait(bound, refused, failed, pod=_key(pod))
        if said != bound:
            return self._refusal(pod)
        feasible = _feasible(lines, _key(pod)) or {fields["node"]}
        if len(feasible) != int(fields["feasibleNodes"]):
            raise AssertionError(f"{_key(pod)}: kube-scheduler counts {fields['feasibleNodes']}, and scores {feasible}")
        return Outcome(node=fields["node"], feasible=tuple(sorted(feasible)), claims=claims)

    def _refusal(self, pod: dict) -> Outcome:
        """The outcome of a pod that no node fits, with its victims where it preempted some."""
        deadline = time.monotonic() + WAIT_S
        while not (condition := _unscheduled(one := self._api.call("GET", _path(pod)))):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{_key(pod)} has no condition")
            time.sleep(0.002)
        message = condition["message"]
        if condition["reason"] != "Unschedulable":
            message = f"{condition['reason']}: {message}"
        nominated = one["status"].get("nominatedNodeName", "")
        if not nominated:
            return Outcome(message=message)
        _, fields, _ = self._log.wait("Async Preemption finished completely", preemptor=_key(pod))
        if fields["result"] != "success":
            raise AssertionError(f"{_key(pod)}: the preemption ended with {fields['result']}")
        leaving = []
        for name in world.NAMESPACES:
            pods = self._api.call("GET", _PATHS["Pod"].format(name))["items"]
            leaving += [one["metadata"]["name"] for one in pods if "deletionTimestamp" in one["metadata"]]
        return Outcome(message=message, nominated=nominated, evicted=tuple(sorted(leaving)))

    def _settle(self, pod: dict, outcome: Outcome, state: State) -> None:
        """Brings the cluster to what State says follows from the outcome."""
        victims = [state.running[name] for name in outcome.evicted]
        state.take(pod, outcome)
        if not outcome.node:
            self._remove(pod)
        for victim in victims:
            self._log.skip()
            self._remove(victim)
            self._log.wait("Delete event for scheduled pod", pod=_key(victim))
        name = pod["metadata"]["name"]
        if outcome.node:
            self._log.skip()
            self._patch(_path(pod) + "/status", {"status": state.running[name]["status"]})
            self._log.wait("Update event for scheduled pod", pod=_key(pod))
        elif outcome.nominated:
            self._run(state.running[name])

    def _move(self, pod: dict, outcome: Outcome, node: str) -> Outcome:
        self._log.skip()
        self._remove(pod)
        self._log.wait("Delete event for scheduled pod", pod=_key(pod))
        self._create({**pod, "spec": {**pod["spec"], "nodeName": node}})
        return replace(outcome, node=node)

    # -- claims that wait for their first consumer

    def _waiting_claims(self, pod: dict, state: State) -> list[dict]:
        """The pod's claims that are bound only when it has a node."""
        found = [state.others.get(("PersistentVolumeClaim", name)) for name in volumes.claims_of(pod)]
        return [one for one in found if one and not one["spec"].get("volumeName")]

    def _play_controller(self, waiting: list[dict], state: State) -> dict[str, str]:
        """Binds the claims as kube-scheduler has asked for: claim -> volume, "" for one that is made for it."""
        chosen = {}
        for claim in waiting:
            name = claim["metadata"]["name"]
            chosen[name] = self._choice(claim)
            volume = state.others["PersistentVolume", chosen[name]] if chosen[name] else None
            bound, holder = volumes.bound_by_controller(claim, volume)
            if volume is None:
                self._create(holder)
            written = {"metadata": {"annotations": bound["metadata"]["annotations"]},
                       "spec": {"volumeName": bound["spec"]["volumeName"]}}  # fmt: skip
            self._patch(_path(bound), written)
            self._patch(_path(bound) + "/status", {"status": bound["status"]})
        return chosen

    def _choice(self, claim: dict) -> str:
        """The volume that kube-scheduler took for the claim; "" where it asks for a new one."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            seen = self._api.call("GET", _path(claim))
            if volumes.SELECTED_NODE in seen["metadata"].get("annotations", {}):
                return ""
            for volume in self._api.call("GET", _PATHS["PersistentVolume"])["items"]:
                taker = volume["spec"].get("claimRef", {})
                if taker.get("uid") == seen["metadata"]["uid"]:
                    return volume["metadata"]["name"]
            time.sleep(0.002)
        raise TimeoutError(f"kube-scheduler did not choose a volume for {claim['metadata']['name']}")


def _feasible(lines: list[str], pod: str) -> set[str]:
    """The nodes that were scored: all that fit, or none where only one did."""
    found = set()
    for line in lines:
        if '"Calculated node\'s final score for pod"' in line and f'pod="{pod}"' in line:
            found.add(line.split('node="', 1)[1].split('"', 1)[0])
    return found


def _unscheduled(pod: dict) -> dict | None:
    conditions = pod["status"].get("conditions", [])
    return next((one for one in conditions if one["type"] == "PodScheduled" and one["status"] == "False"), None)
