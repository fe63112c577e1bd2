#!/usr/bin/env python3
"""What a Berth that takes over holds for work that is admitted, before anybody else has a turn, on a real kube-apiserver.

Ends with status 77 (skipped, for ctest) where the test servers or the program are not built.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.daemon import wait_until  # noqa: E402
from harness.kueue import make  # noqa: E402
from harness.objects import pod  # noqa: E402
from harness.suite import main  # noqa: E402
from queues_test import JOBS, QueueSuite, job  # noqa: E402


class Takeover(QueueSuite):
    def test_a_place_that_is_held_goes_to_nobody_else(self) -> None:
        self.node(1, gpus=8)
        self.queues(team=8)
        self.apply(job("gang", "team", 4, pods=2))
        first = self.runs("gang", 2)[0]
        self.create(pod("outsider", gpus=4))
        self.waiting("outsider")
        self.berth.kill()
        self.delete(first)  # the Job controller waits for a while before it makes another one
        self.berth.start()
        self.settle()
        time.sleep(1)
        self.assertNotIn("nodeName", self.get("outsider")["spec"])
        self.assertEqual(len(self.runs("gang", 2)), 2)
        self.assertNotIn("nodeName", self.get("outsider")["spec"])

    def test_what_loses_a_place_before_it_has_started_begins_anew(self) -> None:
        self.node(2, gpus=4)
        self.forbid_start("gang")
        self.queues(team=8)
        self.apply(job("gang", "team", 4, pods=2))
        self.is_now("gang", "Admitted")
        self.berth.kill()
        self.api.call("DELETE", "/api/v1/nodes/node-1")
        self.allow_start("gang")
        self.berth.start()
        self.is_now("gang", "QuotaReserved", "False", "WaitingForPlace")
        self.settle()
        self.assertEqual(self.pods_of("gang"), [])
        self.assertTrue(self.job("gang")["spec"]["suspend"])
        self.node(1, gpus=4, prefix="new-")
        self.runs("gang", 2)

    def test_what_loses_a_place_while_a_check_is_waited_for_does_not_start_by_half(self) -> None:
        self.node(2, gpus=4)
        self.apply(make("AdmissionCheck", "budget", {"controllerName": "example.com/budget"}))
        self.queues(checks=("budget",), team=8)
        self.activates("budget")
        self.apply(job("gang", "team", 4, pods=2))
        self.is_now("gang", "QuotaReserved")
        self.patch("/api/v1/nodes/node-1", {"spec": {"unschedulable": True}})
        wait_until("it is told", lambda: "1 of 2 pods" in self.condition("gang", "Admitted").get("message", ""))
        self.says("gang", "Ready")
        self.is_now("gang", "QuotaReserved", "False", "WaitingForPlace")
        self.assertEqual(self.has_been("gang", "Evicted")["reason"], "NodeFailures")
        self.settle()
        self.assertEqual(self.pods_of("gang"), [])
        self.patch("/api/v1/nodes/node-1", {"spec": {"unschedulable": None}})
        self.is_now("gang", "QuotaReserved")
        self.says("gang", "Ready")
        self.runs("gang", 2)

    def gang_loses_a_node(self, lose) -> None:
        """Of the two on which its pods are to stand, at the moment when they are made: all of them run, or none does."""
        self.node(2, gpus=8)
        self.queues(team=16)
        self.apply(job("gang", "team", 1, pods=16))
        wait_until("it is started", lambda: not self.job("gang")["spec"]["suspend"])
        lose()
        self.settle()

        def bound() -> int:
            return sum(1 for one in self.pods_of("gang") if one["spec"].get("nodeName"))

        wait_until("all run, or it waits", lambda: bound() == 16 or (
            self.condition("gang", "QuotaReserved").get("reason") == "WaitingForPlace" and bound() == 0))
        if bound() == 0:
            self.assertEqual(self.has_been("gang", "Evicted")["reason"], "NodeFailures")

    def test_a_gang_that_loses_a_node_as_it_starts_does_so_whole_or_not_at_all(self) -> None:
        self.gang_loses_a_node(lambda: self.patch("/api/v1/nodes/node-1", {"spec": {"unschedulable": True}}))
        self.patch("/api/v1/nodes/node-1", {"spec": {"unschedulable": None}})
        self.runs("gang", 16)

    def test_nor_does_one_whose_node_goes_while_nobody_looks(self) -> None:
        def lose() -> None:
            self.berth.kill()
            self.api.call("DELETE", "/api/v1/nodes/node-1")
            self.berth.start()

        self.gang_loses_a_node(lose)

    def test_the_quota_of_a_job_that_is_deleted_is_free_when_its_pods_are_gone(self) -> None:
        self.node(1, gpus=8)
        self.queues(team=4)
        holds = job("first", "team", 4)
        holds["spec"]["template"]["metadata"]["finalizers"] = ["example.com/hold"]  # as if it used its grace period
        self.apply(holds)
        name = self.runs("first")[0]
        self.apply(job("next", "team", 4))
        self.api.call("DELETE", f"{JOBS}/first", {"propagationPolicy": "Background"})
        wait_until("its pod is on its way out", lambda: self.get(name)["metadata"].get("deletionTimestamp"))
        self.settle()
        time.sleep(2)
        self.assertEqual(self.pods_of("next"), [])
        self.patch(f"/api/v1/namespaces/default/pods/{name}", {"metadata": {"finalizers": None}})
        self.runs("next")
        wait_until("its Workload has gone", lambda: not self.workload("first"))


if __name__ == "__main__":
    main()
