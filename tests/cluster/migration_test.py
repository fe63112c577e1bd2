#!/usr/bin/env python3
"""Work that others queued or started before Berth had a say: Kueue's, which goes on as it was, and Jobs that nobody has
suspended.

Ends with status 77 (skipped, for ctest) where the test servers or the program are not built.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.daemon import wait_until  # noqa: E402
from harness.kueue import GPU, make  # noqa: E402
from harness.objects import pod  # noqa: E402
from harness.suite import PODS, main  # noqa: E402
from queues_test import JOBS, QUEUE, WORKLOADS, QueueSuite, job, waiting_pod  # noqa: E402


def owner_of(made: dict) -> dict:
    """How a Workload names its Job."""
    return {"apiVersion": "batch/v1", "kind": "Job", "name": made["metadata"]["name"], "uid": made["metadata"]["uid"],
            "controller": True, "blockOwnerDeletion": True}  # fmt: skip


class FromKueue(QueueSuite):
    """What Kueue had queued and started goes on: its Jobs name another scheduler."""

    def let_in(self, workload: str, queue: str, gpus: int) -> None:
        """As Kueue writes it of a Workload of one pod."""
        told = [{"type": kind, "status": "True", "reason": kind, "message": "by Kueue",
                 "lastTransitionTime": "2026-01-01T00:00:00Z"} for kind in ("QuotaReserved", "Admitted")]  # fmt: skip
        given = {"clusterQueue": queue, "podSetAssignments": [
            {"name": "main", "flavors": {GPU: "gpus"}, "resourceUsage": {GPU: str(gpus)}, "count": 1}]}  # fmt: skip
        self.patch(f"{WORKLOADS}/{workload}/status", {"status": {"conditions": told, "admission": given}})

    def test_nothing_is_evicted_and_what_waits_has_its_turn(self) -> None:
        self.node(1, gpus=8)
        self.berth.kill()
        self.queues(red=4)
        for name, suspend in (("runs", False), ("waits", True)):
            one = job(name, "red", 4, suspend=suspend)
            one["spec"]["template"]["spec"]["schedulerName"] = "default-scheduler"
            made = self.api.call("POST", JOBS, one)
            template = made["spec"]["template"]
            template["metadata"]["labels"] = {}  # Kueue leaves out those that the API server has given the Job
            workload = make("Workload", f"job-{name}-1a2b3", {
                "active": True, "queueName": "red", "priority": 0,
                "podSets": [{"name": "main", "count": 1, "template": template}]}, namespace="default")  # fmt: skip
            workload["metadata"] |= {"ownerReferences": [owner_of(made)], "finalizers": ["kueue.x-k8s.io/resource-in-use"]}
            self.apply(workload)
        self.let_in("job-runs-1a2b3", "red", 4)
        before = self.runs("runs")
        self.berth.start()
        self.settle()
        waits = self.is_now("waits", "QuotaReserved", "False", "WaitingForQuota")
        self.assertIn("insufficient unused quota", waits["message"])
        self.assertEqual(self.runs("runs"), before)
        self.assertEqual(self.condition("runs", "Admitted")["status"], "True")
        self.api.call("DELETE", f"{JOBS}/runs", {"propagationPolicy": "Background"})
        self.runs("waits")
        wait_until("its Workload is gone", lambda: not self.workload("runs"))
        self.patch(f"{self.of_kind('clusterqueues')}/red", {"spec": {"stopPolicy": "HoldAndDrain"}})
        self.is_now("waits", "Evicted", reason="ClusterQueueStopped")
        self.is_now("waits", "QuotaReserved", "False")
        self.assertTrue(self.api.call("GET", f"{JOBS}/waits")["spec"]["suspend"])
        self.is_now("waits", "Requeued", "False", "ClusterQueueStopped")
        self.patch(f"{self.of_kind('clusterqueues')}/red", {"spec": {"stopPolicy": "None"}})
        self.runs("waits")
        self.is_now("waits", "Requeued", reason="ClusterQueueRestarted")

    def leave_pods(self, name: str, pods: list[dict], gated: bool) -> None:
        """Pods with the Workload of that name, as Kueue made them."""
        owners, alone = [], len(pods) == 1
        for one in pods:
            one["spec"]["schedulerName"] = "default-scheduler"
            one["metadata"]["finalizers"] = ["kueue.x-k8s.io/managed"]
            gates = [{"name": "kueue.x-k8s.io/admission"}, {"name": "kueue.x-k8s.io/topology"}]
            one["spec"]["schedulingGates"] = gates if gated else []
            made = self.api.call("POST", PODS, one)["metadata"]
            owner = {"apiVersion": "v1", "kind": "Pod", "name": made["name"], "uid": made["uid"]}
            owners.append(owner | ({"controller": True, "blockOwnerDeletion": True} if alone else {}))
        spec = {key: pods[0]["spec"][key] for key in ("containers", "restartPolicy")}
        template = {"metadata": {"labels": pods[0]["metadata"]["labels"]}, "spec": spec}
        workload = make("Workload", name, {
            "active": True, "queueName": pods[0]["metadata"]["labels"][QUEUE], "priority": 0,
            "podSets": [{"name": "main", "count": len(pods), "template": template}]}, namespace="default")  # fmt: skip
        workload["metadata"] |= {"ownerReferences": owners, "finalizers": ["kueue.x-k8s.io/resource-in-use"]}
        if not alone:
            workload["metadata"]["annotations"] = {"kueue.x-k8s.io/is-group-workload": "true"}
        self.apply(workload)

    def test_pods_go_on_in_the_workloads_that_kueue_made_for_them(self) -> None:
        self.node(2, gpus=8)
        self.berth.kill()
        self.queues({"reclaimWithinCohort": "Any"}, red=4, blue=4)
        self.leave_pods("pod-runs-aaaaa", [waiting_pod("runs", "blue", 6)], gated=False)
        self.leave_pods("pod-waits-bbbbb", [waiting_pod("waits", "red", 2)], gated=True)
        self.leave_pods("pair", [waiting_pod(f"pair-{i}", "red", 1, "pair", 2) for i in range(2)], gated=True)
        self.let_in("pod-runs-aaaaa", "blue", 6)
        self.is_running("runs")
        self.berth.start()
        wait_until("the one that borrows is evicted", lambda: "deletionTimestamp" in self.get("runs")["metadata"])
        self.patch(f"{PODS}/runs/status", {"status": {"phase": "Failed"}})  # as kubelet says once its containers are gone
        wait_until("it is gone", lambda: "runs" not in [one["metadata"]["name"] for one in self.pods()])
        for name in ("waits", "pair-0", "pair-1"):
            self.is_running(name)

    def test_a_running_job_whose_pods_kueue_was_to_place_goes_on_making_pods(self) -> None:
        self.node(1, gpus=8)
        self.berth.kill()
        self.queues(red=4)
        one = job("train", "red", 2, suspend=False)
        one["spec"]["template"]["spec"] |= {"schedulerName": "default-scheduler",
                                            "schedulingGates": [{"name": "kueue.x-k8s.io/topology"}]}  # fmt: skip
        made = self.api.call("POST", JOBS, one)
        spec = {key: one["spec"]["template"]["spec"][key] for key in ("containers", "restartPolicy", "schedulerName")}
        workload = make("Workload", "job-train-1a2b3", {"active": True, "queueName": "red", "podSets": [
            {"name": "main", "count": 1, "template": {"spec": spec}}]}, namespace="default")  # fmt: skip
        workload["metadata"]["ownerReferences"] = [owner_of(made)]
        self.apply(workload)
        self.let_in("job-train-1a2b3", "red", 2)
        wait_until("its pod waits at the gate", lambda: len(self.pods_of("train")) == 1)
        self.berth.start()
        first = self.runs("train")
        self.delete(first[0])
        wait_until("another takes its place", lambda: self.runs("train") != first)


class WithoutAWebhook(QueueSuite):
    """Jobs that nobody has suspended: their pods are there before Berth can stop them."""

    def bound_gpus(self) -> int:
        return sum(int(one["spec"]["containers"][0]["resources"]["limits"][GPU]) for one in self.pods()
                   if one["spec"].get("nodeName"))  # fmt: skip

    def test_the_quota_holds_for_jobs_that_were_not_suspended(self) -> None:
        self.node(2, gpus=8)
        self.queues(red=4, none=0)
        plain = pod("plain", gpus=8, restartPolicy="Never")
        self.create(plain)
        self.is_running("plain")
        names = [f"red-{i}" for i in range(4)] + ["none"]

        def submit(run: str) -> None:
            for name in names:
                one = job(name + run, name.split("-")[0], 4, suspend=False)
                one["spec"]["template"]["metadata"]["finalizers"] = ["example.com/stays"]  # so that it lingers
                self.api.call("POST", JOBS, one)

        def holds(seconds: float) -> None:
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                self.assertLessEqual(self.bound_gpus(), 8 + 4)
                time.sleep(0.05)

        submit("-before")
        holds(3)
        wait_until("one of the queue's runs", lambda: self.bound_gpus() == 12)
        self.berth.kill()
        submit("-while")
        wait_until("pods are there", lambda: len([one for one in self.pods() if "-while" in one["metadata"]["name"]]) == 5)
        self.berth.start()
        self.settle()
        holds(3)
        self.assertEqual(self.get("plain")["status"]["phase"], "Running")
        self.assertEqual(self.events_of("plain", "Preempted"), [])

        def running() -> dict[str, list[str]]:  # with their conditions
            return {one["metadata"]["name"]: [it["type"] for it in one["status"].get("conditions", [])]
                    for one in self.api.call("GET", JOBS)["items"] if not one["spec"]["suspend"]}  # fmt: skip

        wait_until(lambda: f"all others are suspended: {running()} are not", lambda: len([
            one for one in self.api.call("GET", JOBS)["items"] if one["spec"]["suspend"]]) == 9)

    def test_all_jobs_that_were_not_suspended_run_in_the_end(self) -> None:
        self.node(2, gpus=8)
        self.queues(red=16)
        names = [f"train-{i}" for i in range(16)]
        for i, name in enumerate(names):
            self.api.call("POST", JOBS, job(name, "red", 1, pods=1 + i % 2, runs="1s", suspend=False))
            time.sleep(0.1)
        for name in names:
            self.ends(name)

    def test_one_that_somebody_resumed_by_hand_starts_again(self) -> None:
        self.node(1, gpus=8, labels={"pool": "gpus"})
        self.queues(flavors=(("gpus", {"nodeLabels": {"pool": "gpus"}}),), red=4)
        self.apply(job("first", "red", 4))
        self.runs("first")
        self.apply(job("second", "red", 4))
        self.is_now("second", "QuotaReserved", "False")
        self.berth.kill()
        self.api.call("DELETE", f"{JOBS}/first", {"propagationPolicy": "Background"})
        self.patch(f"{JOBS}/second", {"spec": {"suspend": False}})
        wait_until("it has begun", lambda: self.pods_of("second") and self.job("second")["status"].get("startTime"))
        wait_until("the first is gone", lambda: not self.pods_of("first"))
        self.berth.start()
        self.runs("second")
        self.is_now("second", "Admitted")

    def test_the_workload_of_a_job_whose_label_is_removed_waits(self) -> None:
        self.node(1, gpus=8)
        self.queues(red=4)
        self.apply(job("other", "red", 4))
        self.runs("other")
        self.apply(job("waits", "red", 4))
        self.is_now("waits", "QuotaReserved", "False")
        self.patch(f"{JOBS}/waits", {"metadata": {"labels": {QUEUE: None}}})
        self.is_now("waits", "QuotaReserved", "False", "Misconfigured")


if __name__ == "__main__":
    main()
