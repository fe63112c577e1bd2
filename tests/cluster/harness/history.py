"""History: every state of every pod, in the store's order, and the judge of what Berth did to them.

It watches as an admin of its own, never through Berth or its proxy, and knows nothing of Berth's code. A watch that
breaks goes on from the version seen last; should the server no longer know that version, what lies between is a gap and
is noted as one (then the list says what is bound where, as the audit log still says how often).
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

from testcluster.rest import ApiClient, ApiError

from .objects import asks_for, holds_room, quantity, unschedulable

PODS = "/api/v1/pods"


class History:
    """Context manager. Its thread ends with it."""

    def __init__(self, api: ApiClient):
        self._api = api
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._version = ""
        self.changes: list[tuple[str, dict]] = []  # (ADDED|MODIFIED|DELETED, pod), in the order of the store
        self.gaps = 0
        self._thread = threading.Thread(target=self._run, name="history", daemon=True)

    def __enter__(self) -> History:
        self._list()
        self._thread.start()
        return self

    def __exit__(self, *_exception) -> None:
        self._stop.set()
        self._thread.join(timeout=10)

    def _list(self) -> None:
        answer = self._api.call("GET", PODS)
        with self._lock:
            self.changes += [("LISTED", None), *(("ADDED", one) for one in answer["items"])]
            self._version = answer["metadata"]["resourceVersion"]

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                path = f"{PODS}?watch=1&allowWatchBookmarks=true&timeoutSeconds=2&resourceVersion={self._version}"
                status, text = self._api.raw("GET", path)
                if status == 200:
                    self._take(text)
                elif status == 410:
                    self._relist()
                else:
                    time.sleep(0.1)
            except (OSError, http.client.HTTPException, ApiError, ValueError):
                time.sleep(0.1)

    def _take(self, text: str) -> None:
        for line in text.splitlines():
            event = json.loads(line)
            if event["type"] == "ERROR":
                return self._relist()
            with self._lock:
                self._version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self.changes.append((event["type"], event["object"]))

    def _relist(self) -> None:
        self.gaps += 1
        self._list()

    def catch_up(self) -> None:
        """Returns when all that is stored now has been seen."""
        stored = int(self._api.call("GET", PODS + "?limit=1")["metadata"]["resourceVersion"])
        marker = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "history-marker", "namespace": "kube-public"},
                  "spec": {"schedulerName": "nobody", "containers": [{"name": "main", "image": "none"}]}}  # fmt: skip
        place = "/api/v1/namespaces/kube-public/pods"
        self._api.call("POST", place, marker)
        self._api.call("DELETE", f"{place}/history-marker", {"gracePeriodSeconds": 0})
        deadline = time.monotonic() + 60
        while int(self._version or 0) <= stored:
            if time.monotonic() > deadline:
                raise AssertionError(f"the history is stuck at version {self._version}; {stored} is stored")
            time.sleep(0.05)

    # -- judgement

    def faults(self, nodes: dict[str, dict]) -> list[str]:
        """What must never be: a pod that changes its node, a node that holds more than it has at any moment.

        `nodes`: name -> Node, those that were deleted meanwhile included.
        """
        with self._lock:
            changes = list(self.changes)
        room = {name: {r: quantity(v) for r, v in one["status"]["allocatable"].items()} for name, one in nodes.items()}
        used: dict[str, dict[str, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
        on: dict[str, dict] = {}
        first_node: dict[str, str] = {}
        found = []

        def count(one: dict, sign: int) -> None:
            for resource, amount in asks_for(one).items():
                used[one["spec"]["nodeName"]][resource] += sign * amount

        for kind, one in changes:
            if kind == "LISTED":
                on, used = {}, defaultdict(lambda: defaultdict(Decimal))
                continue
            uid, node = one["metadata"]["uid"], one["spec"].get("nodeName", "")
            if uid in on:
                count(on.pop(uid), -1)
            if node and first_node.setdefault(uid, node) != node:
                found.append(f"pod {one['metadata']['name']} went from {first_node[uid]} to {node}")
            if kind == "DELETED" or not holds_room(one):
                continue
            on[uid] = one
            count(one, +1)
            if node not in room:
                continue  # bound to a node that had been deleted: nobody's room
            over = [f"{amount} {r} of {room[node].get(r, 0)}" for r, amount in used[node].items()
                    if amount > room[node].get(r, 0)]  # fmt: skip
            if over:
                found.append(f"node {node} holds {', '.join(over)} with pod {one['metadata']['name']}")
        return found


def unexplained(pods: list[dict]) -> list[str]:
    """Names of pods that neither are bound, nor finished, nor gated, nor told why they wait."""
    return [one["metadata"]["name"] for one in pods
            if not one["spec"].get("nodeName") and not one["spec"].get("schedulingGates") and not unschedulable(one)
            and one["status"].get("phase") == "Pending"]  # fmt: skip


AUDIT_POLICY = """apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Request
  resources: [{group: "", resources: [pods/binding]}]
- level: None
"""


class BindingAudit:
    """The API server's own record of every Binding that it was sent."""

    def __init__(self, folder: Path):
        self.policy, self.log = folder / "audit-policy.yaml", folder / "audit.log"
        self.policy.write_text(AUDIT_POLICY)

    def flags(self) -> list[str]:
        return [f"--audit-policy-file={self.policy}", f"--audit-log-path={self.log}"]

    def entries(self) -> list[dict]:
        """One for each Binding: uid, node, code, user, received (RFC 3339)."""
        found = []
        for line in self.log.read_text().splitlines() if self.log.exists() else []:
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # a server that was killed may leave half a line
            asked = entry.get("requestObject") or {}
            found.append({
                "uid": asked.get("metadata", {}).get("uid"), "node": asked.get("target", {}).get("name"),
                "pod": entry["objectRef"].get("name"), "code": entry.get("responseStatus", {}).get("code"),
                "user": entry["user"]["username"], "received": entry["requestReceivedTimestamp"],
            })  # fmt: skip
        return found

    def bound_twice(self) -> list[str]:
        """UIDs with more than one accepted Binding."""
        seen: dict[str, int] = defaultdict(int)
        for entry in self.entries():
            seen[entry["uid"]] += entry["code"] == 201
        return [uid for uid, times in seen.items() if times > 1]
