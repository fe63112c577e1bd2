#!/usr/bin/env python3
"""Jobs and pods in queues that change on a real kube-apiserver: labels of those that wait.

Ends with status 77 (skipped, for ctest) where the test servers or the program are not built.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.daemon import wait_until  # noqa: E402
from harness.kueue import make  # noqa: E402
from harness.objects import pod  # noqa: E402
from harness.suite import PODS, main  # noqa: E402
from queues_test import JOBS, QUEUE, QueueSuite, job, waiting_pod  # noqa: E402

PRIORITY = "kueue.x-k8s.io/priority-class"


class Labels(QueueSuite):
    """Queue and priority class are followed while something waits."""

    def label(self, path: str, labels: dict) -> None:
        self.patch(path, {"metadata": {"labels": labels}})

    def test_who_names_another_queue_waits_there(self) -> None:
        self.node(2, gpus=4)
        self.queues(red=4, blue=4)
        self.apply(job("red", "red", 4), job("blue", "blue", 4))
        self.runs("red")
        self.runs("blue")
        self.apply(job("moves", "red", 2))
        for member in ("g0", "g1"):
            self.create(waiting_pod(member, "red", 1, "g", 2))
        self.is_now("moves", "QuotaReserved", "False", "WaitingForQuota")
        wait_until("the group waits", lambda: self.condition("g0", "QuotaReserved"))
        self.label(f"{JOBS}/moves", {QUEUE: "blue"})
        for member in ("g0", "g1"):
            self.label(f"{PODS}/{member}", {QUEUE: "blue"})
        for name in ("moves", "g0"):
            wait_until(f"{name} waits in blue", lambda n=name: self.workload(n)["spec"]["queueName"] == "blue")
        self.api.call("DELETE", f"{JOBS}/blue", {"propagationPolicy": "Background"})
        self.runs("moves")
        self.is_running("g0")
        self.assertEqual(self.workload("moves")["status"]["admission"]["clusterQueue"], "blue")

    def test_who_names_another_priority_class_takes_its_turn(self) -> None:
        self.node(1, gpus=4)
        self.queues(red=4)
        self.apply(make("WorkloadPriorityClass", "low", value=1), make("WorkloadPriorityClass", "high", value=9))
        self.apply(job("first", "red", 4))
        self.runs("first")
        for name in ("second", "third"):
            self.apply(job(name, "red", 4, priority="low"))
            self.is_now(name, "QuotaReserved", "False")
        self.label(f"{JOBS}/third", {PRIORITY: "high"})
        self.label(f"{JOBS}/first", {PRIORITY: "low"})  # it comes too late to have one
        wait_until("third has it", lambda: self.workload("third")["spec"]["priority"] == 9)
        self.assertEqual(self.workload("third")["spec"]["priorityClassRef"]["name"], "high")
        self.api.call("DELETE", f"{JOBS}/first", {"propagationPolicy": "Background"})
        self.runs("third")
        self.label(f"{JOBS}/third", {PRIORITY: "low"})  # one with quota, too
        wait_until("third has the other", lambda: self.workload("third")["spec"]["priority"] == 1)
        self.assertEqual(len(self.runs("third")), 1)


class Step(QueueSuite):
    """What runs is what was admitted, and what cannot start holds nothing."""

    def test_a_pod_that_claims_a_full_workload_hears_why_it_waits(self) -> None:
        self.node(1, gpus=8)
        self.queues(red=4)
        self.apply(job("owner", "red", 4))
        self.runs("owner")
        name = self.workload("owner")["metadata"]["name"]
        self.create(pod("thief", gpus=1, annotations={"kueue.x-k8s.io/workload": name}))
        self.assertIn("has all the pods that it was admitted with", self.waiting("thief"))


if __name__ == "__main__":
    main()
