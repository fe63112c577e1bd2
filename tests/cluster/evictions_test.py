#!/usr/bin/env python3
"""How work leaves its queue on a real kube-apiserver, with the real Job controller: Jobs that end just when they are
evicted, and what the stored Workloads say of quota that goes from one to another.

Ends with status 77 (skipped, for ctest) where the test servers or the program are not built.
"""

from __future__ import annotations

import calendar
import json
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.daemon import wait_until  # noqa: E402
from harness.kueue import GPU  # noqa: E402
from harness.suite import PODS, main  # noqa: E402
from queues_test import JOBS, WORKLOADS, QueueSuite, job  # noqa: E402


class Ends(QueueSuite):
    """A Job that ends is finished, and its quota free, whoever asked for it meanwhile."""

    def has_ended(self, name: str) -> bool:
        conditions = self.job(name).get("status", {}).get("conditions", [])
        return any(one["type"] in ("Complete", "Failed") for one in conditions)

    def all_end(self, names: list[str]) -> None:
        def left() -> list[str]:
            return [name for name in names if not self.has_ended(name)]

        wait_until(lambda: f"{left()} end: {[self.job(name)['status'] for name in left()]}", lambda: not left())

    def test_jobs_that_end_as_they_are_evicted_end(self) -> None:
        self.node(1, gpus=8)
        self.queues({"reclaimWithinCohort": "Any"}, red=8, blue=0)
        chance, last = random.Random(3), []
        for turn in range(6):
            names = [f"job-{turn}-{i}" for i in range(8)]
            for name in names:
                one = job(name, "blue", 1, runs="1s", backoffLimit=0)
                if turn % 2:  # they fail
                    annotations = one["spec"]["template"]["metadata"]["annotations"]
                    annotations["pod-fail.stage.kwok.x-k8s.io/delay"] = annotations.pop(
                        "pod-complete.stage.kwok.x-k8s.io/delay")  # fmt: skip
                self.apply(one)
            wait_until("all are let in", lambda n=names: not any(self.job(one)["spec"]["suspend"] for one in n))
            time.sleep(0.7 + 0.8 * chance.random())
            self.apply(job(f"own-{turn}", "red", 8, runs="1s"))
            self.all_end([*names, f"own-{turn}"])
            last = names
        for name in last:
            self.is_now(name, "Finished")
        wait_until("all is free", lambda: not self.status("clusterqueues", "blue").get("reservingWorkloads"))

    def test_a_job_that_has_lost_its_start_time_ends_without_quota(self) -> None:
        self.queues(red=0)
        criteria = {"SuccessCriteriaMet": "CompletionsReached", "FailureTarget": "BackoffLimitExceeded"}
        for kind, reason in criteria.items():
            name = kind.lower()
            self.apply(job(name, "red", 4))
            self.is_now(name, "QuotaReserved", "False")
            wait_until("its controller has seen it", lambda n=name: self.job(n)["status"].get("conditions"))
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            told = {"type": kind, "status": "True", "reason": reason, "message": "", "lastTransitionTime": now}
            self.patch(f"{JOBS}/{name}/status", {"status": {"conditions": [told]}})
            self.all_end([name])
            self.is_now(name, "Finished")
            self.assertTrue(self.job(name)["spec"]["suspend"])


class Stored(QueueSuite):
    """The stored Workloads never hold more than there is, and each admission has its own time."""

    def version(self) -> str:
        return self.api.call("GET", WORKLOADS)["metadata"]["resourceVersion"]

    def stored_since(self, version: str) -> list[dict]:
        """All that was stored of Workloads since then, in order."""
        text = self.api.raw("GET", f"{WORKLOADS}?watch=true&resourceVersion={version}&timeoutSeconds=2")[1]
        return [json.loads(line) for line in text.splitlines()]

    def most_reserved(self, version: str) -> int:
        held, most = {}, 0
        for event in self.stored_since(version):
            workload, name = event["object"], event["object"]["metadata"]["name"]
            conditions = {one["type"]: one["status"] for one in workload.get("status", {}).get("conditions", [])}
            holds = conditions.get("QuotaReserved") == "True" and conditions.get("Finished") != "True"
            held[name] = 0
            if holds and event["type"] != "DELETED":
                sets = workload["status"]["admission"]["podSetAssignments"]
                held[name] = sum(int(one["resourceUsage"][GPU]) for one in sets)
            most = max(most, sum(held.values()))
        return most

    def test_what_is_stored_is_given_back_before_it_is_given(self) -> None:
        self.node(2, gpus=8)
        self.queues({"reclaimWithinCohort": "Any"}, red=8, blue=0)
        version = self.version()
        victims = [f"victim-{i}" for i in range(8)]
        self.apply(*(job(name, "blue", 1) for name in victims))
        for name in victims:
            self.runs(name)
        self.apply(job("own", "red", 1, pods=8))
        self.runs("own", 8)
        for name in victims:
            self.is_now(name, "QuotaReserved", "False", "WaitingForQuota")
        self.assertEqual(self.most_reserved(version), 8)

    def test_who_is_admitted_again_at_once_is_so_since_then(self) -> None:
        self.node(1, gpus=8)
        self.queues({"reclaimWithinCohort": "Any"}, red=4, blue=4)
        slow = job("victim", "blue", 8)
        slow["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = "600"
        slow["spec"]["template"]["metadata"]["finalizers"] = ["example.com/slow"]
        self.apply(slow)
        [first] = self.runs("victim")
        time.sleep(2)
        version = self.version()
        self.apply(job("asks", "red", 4))
        wait_until("it is told to leave", lambda: self.get(first)["metadata"].get("deletionTimestamp"))
        self.api.call("DELETE", f"{JOBS}/asks", {"propagationPolicy": "Background"})
        wait_until("nobody asks any more", lambda: not self.workload("asks"))
        time.sleep(1.2)  # times are whole seconds
        self.patch(f"{PODS}/{first}", {"metadata": {"finalizers": None}})
        wait_until("others run", lambda: any(p["metadata"]["name"] != first for p in self.pods_of("victim")))
        [second] = self.runs("victim")
        evicted = self.condition("victim", "Evicted")["lastTransitionTime"]  # False since it has its quota again
        for kind in ("QuotaReserved", "Admitted"):
            self.assertGreaterEqual(self.is_now("victim", kind)["lastTransitionTime"], evicted)
        stored = [event["object"] for event in self.stored_since(version)]
        told = [one["status"] for each in stored if each["metadata"]["name"].startswith("job-victim")
                for one in each["status"].get("conditions", []) if one["type"] == "QuotaReserved"]  # fmt: skip
        self.assertIn("False", told)
        self.assertEqual(told[-1], "True")
        ran = self.workload("victim")["status"]["accumulatedPastExecutionTimeSeconds"]
        self.berth.kill()
        self.berth.start()
        time.sleep(1)
        self.apply(job("asks", "red", 4))
        wait_until("it leaves again", lambda: self.condition("victim", "Evicted").get("status") == "True")
        again = self.workload("victim")["status"]["accumulatedPastExecutionTimeSeconds"] - ran
        since = time.time() - calendar.timegm(time.strptime(evicted, "%Y-%m-%dT%H:%M:%SZ"))
        self.assertLessEqual(again, since + 1, "a time before counts twice")
        self.patch(f"{PODS}/{second}", {"metadata": {"finalizers": None}})
        self.runs("asks")


class Stopped(QueueSuite):
    """What is evicted for good waits until somebody makes it active again, whoever looks."""

    def test_who_is_made_active_again_has_all_of_his_time_after_a_restart(self) -> None:
        self.node(1, gpus=4)
        self.queues(red=4)
        paths = {}
        for name in ("up", "away"):
            one = job(name, "red", 2)
            one["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = "6"
            self.apply(one)
            self.is_now(name, "QuotaReserved")
            paths[name] = f"{WORKLOADS}/{self.workload(name)['metadata']['name']}"
        for name in paths:
            wait_until("it is inactive", lambda n=name: self.workload(n)["spec"].get("active") is False)
            self.is_now(name, "QuotaReserved", "False", "DeactivatedDueToMaximumExecutionTimeExceeded")
        self.berth.kill()
        self.patch(paths["away"], {"spec": {"active": True}})
        self.berth.start()
        self.runs("away")
        self.is_now("up", "QuotaReserved", "False", "DeactivatedDueToMaximumExecutionTimeExceeded")
        self.is_now("up", "Requeued", "False")
        self.patch(paths["up"], {"spec": {"active": True}})
        self.runs("up")
        self.is_now("up", "Requeued", "True", "Reactivated")


if __name__ == "__main__":
    main()
