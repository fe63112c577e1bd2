#!/usr/bin/env python3
"""Jobs and pods in queues that change on a real kube-apiserver: labels of those that wait, the parallelism of those that
run, and starts that the server refuses.

Ends with status 77 (skipped, for ctest) where the test servers or the program are not built.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.daemon import wait_until  # noqa: E402
from harness.kueue import GPU, make  # noqa: E402
from harness.objects import pod  # noqa: E402
from harness.suite import PODS, main  # noqa: E402
from queues_test import JOBS, QUEUE, WORKLOADS, QueueSuite, job, waiting_pod  # noqa: E402

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


class Groups(QueueSuite):
    """A group of pods that changes while it waits is let in whole, as it is then."""

    def group_behind(self, first: str, pods: list[str]) -> None:
        self.node(2, gpus=4)
        self.queues(red=3)
        self.apply(job(first, "red", 3))
        self.runs(first)
        for name in pods:
            self.create(waiting_pod(name, "red", 1, "g", len(pods)))
        self.is_now(pods[0], "QuotaReserved", "False", "WaitingForQuota")

    def test_one_that_has_lost_pods_waits_for_others(self) -> None:
        self.group_behind("first", ["g0", "g1", "g2"])
        for name in ("g1", "g2"):
            self.delete(name)
        self.is_now("g0", "WaitingForReplacementPods", "True")
        self.api.call("DELETE", f"{JOBS}/first", {"propagationPolicy": "Background"})
        self.is_now("g0", "QuotaReserved", "False", "WaitingForReplacementPods")
        self.apply(job("second", "red", 3))  # what nobody has is others'
        self.runs("second")
        self.assertTrue(self.get("g0")["spec"]["schedulingGates"])
        for name in ("g3", "g4"):
            self.create(waiting_pod(name, "red", 1, "g", 3))
        self.is_now("g0", "WaitingForReplacementPods", "False")
        self.api.call("DELETE", f"{JOBS}/second", {"propagationPolicy": "Background"})
        for name in ("g0", "g3", "g4"):
            self.is_running(name)

    def test_one_whose_pods_are_replaced_by_others_of_another_size_gives_its_quota_back(self) -> None:
        self.node(1, gpus=8)
        self.queues(red=8)
        for name in ("g0", "g1"):
            member = waiting_pod(name, "red", 1, "g", 2)
            member["metadata"]["finalizers"] = ["example.com/hold"]  # as if it used its grace period
            self.create(member)
        for name in ("g0", "g1"):
            self.is_running(name)
        for name in ("g0", "g1"):
            self.delete(name)
        for name in ("g2", "g3"):
            self.create(waiting_pod(name, "red", 2, "g", 2))
        self.settle()
        for name in ("g2", "g3"):
            self.assertTrue(self.get(name)["spec"]["schedulingGates"], "the others are not gone")
        for name in ("g0", "g1"):
            self.patch(f"{PODS}/{name}", {"metadata": {"finalizers": None}})
        for name in ("g2", "g3"):
            self.is_running(name)
        self.apply(job("rest", "red", 4))
        self.runs("rest")

    def test_another_pod_in_the_place_of_one_that_is_gone_counts_for_what_it_asks(self) -> None:
        self.group_behind("first", ["g0", "g1"])
        self.delete("g1")
        self.create(waiting_pod("g2", "red", 2, "g", 2))
        wait_until("the Workload follows", lambda: len(self.workload("g0")["spec"]["podSets"]) == 2)
        self.api.call("DELETE", f"{JOBS}/first", {"propagationPolicy": "Background"})
        for name in ("g0", "g2"):
            self.is_running(name)


class Step(QueueSuite):
    """What runs is what was admitted, and what cannot start holds nothing."""

    def count(self, name: str) -> tuple:
        workload = self.workload(name)
        given = workload.get("status", {}).get("admission", {}).get("podSetAssignments", [{}])[0].get("count")
        return workload["spec"]["podSets"][0]["count"], given

    def test_a_job_that_is_scaled_waits_anew_as_it_is(self) -> None:
        self.node(2, gpus=4)
        self.queues(red=6)
        self.apply(job("scales", "red", 1, pods=2, completions=20))
        self.runs("scales", 2)
        for pods in (4, 1):
            self.patch(f"{JOBS}/scales", {"spec": {"parallelism": pods}})
            wait_until(lambda n=pods: f"it is admitted with {n}: {self.count('scales')}",
                       lambda n=pods: self.count("scales") == (n, n))  # fmt: skip
            self.runs("scales", pods)
        self.assertIn("was admitted with 4", self.condition("scales", "Evicted")["message"])
        self.assertTrue(self.events_of("scales", "Stopped"))
        self.patch(f"{JOBS}/scales", {"spec": {"parallelism": 7}})
        self.is_now("scales", "QuotaReserved", "False")
        wait_until("nothing is held", lambda: self.status("clusterqueues", "red").get("reservingWorkloads") == 0)

    def test_a_job_that_is_scaled_while_it_is_admitted(self) -> None:
        self.node(1, gpus=8)
        self.queues(red=8)
        for i in range(3):
            self.apply(job(f"race-{i}", "red", 1, pods=1, completions=20))
            for pods in (3, 1, 2):
                self.patch(f"{JOBS}/race-{i}", {"spec": {"parallelism": pods}})
        for i in range(3):
            wait_until(lambda n=f"race-{i}": f"{n} is admitted: {self.count(n)}",
                       lambda n=f"race-{i}": self.count(n) == (2, 2))  # fmt: skip
            self.runs(f"race-{i}", 2)

    def test_a_pod_that_claims_the_workload_of_others_hears_why_it_waits(self) -> None:
        self.node(1, gpus=8)
        self.queues(red=4)
        self.apply(job("owner", "red", 4))
        self.runs("owner")
        name = self.workload("owner")["metadata"]["name"]
        self.create(pod("thief", gpus=1, annotations={"kueue.x-k8s.io/workload": name}))
        self.assertIn("which is not its own", self.waiting("thief"))

    def test_a_job_that_the_server_refuses_to_start_gives_way(self) -> None:
        self.node(1, gpus=4)
        self.forbid_start("bad")
        self.queues(red=4)
        self.apply(job("bad", "red", 4))
        wait_until("people hear why", lambda: self.events_of("bad", "FailedToStart"))
        self.apply(job("next", "red", 4))
        self.assertIn("bad must not run", self.is_now("bad", "Evicted", reason="FailedToStart")["message"])
        self.is_now("bad", "QuotaReserved", "False", "Misconfigured")
        self.runs("next")
        self.api.call("DELETE", f"{JOBS}/next", {"propagationPolicy": "Background"})
        self.allow_start("bad")
        self.patch(f"{JOBS}/bad", {"metadata": {"annotations": {"mended": "yes"}}})
        self.runs("bad")


class Leaving(QueueSuite):
    """Quota is had as long as pods are there, and no longer than the Job is."""

    def test_pods_on_their_way_out_keep_their_quota(self) -> None:
        self.node(2, gpus=8)
        self.queues({"reclaimWithinCohort": "Any"}, red=4, blue=4)
        borrower = job("borrower", "blue", 4, pods=2)
        borrower["spec"]["template"]["metadata"]["finalizers"] = ["example.com/hold"]  # as if it used its grace period
        self.apply(borrower)
        self.runs("borrower", 2)
        self.apply(job("owner", "red", 4))
        wait_until("both are on their way out", lambda: [
            one["metadata"].get("deletionTimestamp") is not None for one in self.pods_of("borrower")] == [True, True])
        wait_until("it is told", lambda: "the preemption of 1 workload(s)" in self.condition(
            "owner", "QuotaReserved").get("message", ""))
        self.settle()
        self.assertEqual(self.pods_of("owner"), [])
        for one in self.pods_of("borrower"):
            self.patch(f"{PODS}/{one['metadata']['name']}", {"metadata": {"finalizers": None}})
        self.runs("owner")

    def test_a_job_that_is_deleted_alone_leaves_no_quota_in_use(self) -> None:
        self.node(1, gpus=8)
        self.queues(red=4)
        self.apply(job("first", "red", 4))
        self.runs("first")
        self.apply(job("waits", "red", 4), job("next", "red", 4))
        self.is_now("waits", "QuotaReserved", "False")
        left = {}
        for name in ("waits", "first"):
            left[name] = f"{WORKLOADS}/{self.workload(name)['metadata']['name']}"
            self.patch(left[name], {"metadata": {"ownerReferences": None}})  # as the garbage collector does, when it can
            self.api.call("DELETE", f"{JOBS}/{name}", {"propagationPolicy": "Orphan"})
        self.runs("next")
        for name, path in left.items():
            wait_until(f"{name} is over", lambda at=path: [
                one["reason"] for one in self.api.call("GET", at)["status"]["conditions"]
                if one["type"] == "Finished"] == ["OwnerNotFound"])  # fmt: skip

    def test_a_workload_that_is_deleted_by_hand_leaves_its_job_as_it_was(self) -> None:
        self.node(1, gpus=8)
        self.queues(red=4)
        made = job("train", "red", 2, pods=3)
        made["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": "1"}
        made["spec"]["completions"] = 3
        made["spec"]["template"]["metadata"]["finalizers"] = ["example.com/hold"]
        self.apply(made)
        self.runs("train", 2)
        first = self.workload("train")["metadata"]
        self.apply(job("next", "red", 4))
        self.api.call("DELETE", f"{WORKLOADS}/{first['name']}")
        wait_until("its pods are on their way out", lambda: all(
            one["metadata"].get("deletionTimestamp") for one in self.pods_of("train")))
        self.settle()
        self.assertEqual(self.pods_of("next"), [], "its quota is not free before they are gone")
        for one in self.pods_of("train"):
            self.patch(f"{PODS}/{one['metadata']['name']}", {"metadata": {"finalizers": None}})
        self.runs("next")
        wait_until("it waits anew", lambda: self.workload("train")["metadata"]["uid"] != first["uid"])
        spec = self.api.call("GET", f"{JOBS}/train")["spec"]
        self.assertEqual((spec["suspend"], spec["parallelism"]), (True, 3))
        self.assertNotIn("kueue.x-k8s.io/workload", spec["template"]["metadata"].get("annotations", {}))

    def test_pods_go_with_their_workload_and_keep_its_quota_until_then(self) -> None:
        self.node(1, gpus=8)
        self.queues(red=4)
        for name in ("g0", "g1"):
            member = waiting_pod(name, "red", 2, "g", 2)
            member["metadata"]["finalizers"] = ["example.com/hold"]
            self.create(member)
        for name in ("g0", "g1"):
            self.is_running(name)
        self.apply(job("next", "red", 4))
        self.is_now("next", "QuotaReserved", "False")
        self.api.call("DELETE", f"{WORKLOADS}/{self.workload('g0')['metadata']['name']}")
        wait_until("its pods are on their way out", lambda: all(
            self.get(name)["metadata"].get("deletionTimestamp") for name in ("g0", "g1")))
        self.settle()
        self.assertEqual(self.pods_of("next"), [], "its quota is not free before they are gone")
        for name in ("g0", "g1"):
            self.patch(f"{PODS}/{name}", {"metadata": {"finalizers": None}})
        self.runs("next")

    def test_a_job_that_a_finalizer_keeps_makes_way(self) -> None:
        self.node(2, gpus=8)
        self.queues({"reclaimWithinCohort": "Any"}, red=4, blue=4)
        kept = job("borrower", "blue", 4, pods=2)
        kept["metadata"]["finalizers"] = ["example.com/hold"]
        self.apply(kept)
        self.runs("borrower", 2)
        self.api.call("DELETE", f"{JOBS}/borrower", {"propagationPolicy": "Background"})
        wait_until("it is being deleted", lambda: self.job("borrower")["metadata"].get("deletionTimestamp"))
        self.apply(job("owner", "red", 4))
        self.runs("owner")
        self.assertEqual(self.pods_of("borrower"), [])
        self.patch(f"{JOBS}/borrower", {"metadata": {"finalizers": None}})


class NotUnderstood(QueueSuite):
    def test_a_workload_that_cannot_be_understood_says_so(self) -> None:
        self.node(1, gpus=4)
        self.queues(red=4)

        def asks(gpus: str) -> dict:
            template = job("alone", "red", 1)["spec"]["template"]
            template["spec"]["containers"][0]["resources"] = {"requests": {GPU: gpus}}
            return {"queueName": "red", "podSets": [{"name": "main", "count": 1, "template": template}]}

        def told(kind: str) -> dict:
            conditions = self.api.call("GET", f"{WORKLOADS}/alone").get("status", {}).get("conditions", [])
            return next((one for one in conditions if one["type"] == kind), {})

        self.apply(make("Workload", "alone", asks("-1"), namespace="default"))
        waits = wait_until("it says why it waits", lambda: told("QuotaReserved"))
        self.assertEqual((waits["status"], waits["reason"]), ("False", "Misconfigured"))
        self.assertRegex(waits["message"], "cannot be understood: .*-1")
        self.patch(f"{WORKLOADS}/alone", {"spec": asks("1")})
        wait_until("it is let in", lambda: told("Admitted").get("status") == "True")


if __name__ == "__main__":
    main()
