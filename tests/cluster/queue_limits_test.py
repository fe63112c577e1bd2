#!/usr/bin/env python3
"""What bounds work in queues beside quota, on a real kube-apiserver: what LimitRanges and RuntimeClasses give pods,
budgets, limits of users, and what LocalQueues have used of late.

Ends with status 77 (skipped, for ctest) where the test servers or the program are not built.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.daemon import wait_until  # noqa: E402
from harness.kueue import GPU, flavor, group, make, quota  # noqa: E402
from harness.suite import MERGE, main  # noqa: E402
from queues_test import JOBS, QueueSuite, job  # noqa: E402

RANGES = "/api/v1/namespaces/default/limitranges"
RUNTIMES = "/apis/node.k8s.io/v1/runtimeclasses"


class QueueLimits(QueueSuite):
    def setUp(self) -> None:
        super().setUp()
        for path in (RANGES, RUNTIMES):
            self.api.call("DELETE", path)

    def queue_of_two(self, cpu: int, gpus: int) -> None:
        covers = group(flavor("gpus", quota(nominal=gpus), quota("cpu", str(cpu))), covers=(GPU, "cpu"))
        self.apply(make("ResourceFlavor", "gpus", {}),
                   make("ClusterQueue", "red", {"namespaceSelector": {}, "resourceGroups": [covers]}),
                   make("LocalQueue", "red", {"clusterQueue": "red"}, namespace="default"))  # fmt: skip

    def limit(self, name: str = "bounds", **item) -> None:
        body = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": name},
                "spec": {"limits": [{"type": "Container", **item}]}}  # fmt: skip
        if self.api.raw("GET", f"{RANGES}/{name}")[0] == 200:
            self.api.call("PUT", f"{RANGES}/{name}", body)
        else:
            self.api.call("POST", RANGES, body)

    def usage(self, name: str) -> dict:
        return self.workload(name)["status"]["admission"]["podSetAssignments"][0]["resourceUsage"]

    @staticmethod
    def without_gpus(name: str, queue: str, pods: int = 1) -> dict:
        made = job(name, queue, 0, pods)
        made["spec"]["template"]["spec"]["containers"][0].pop("resources")
        return made


class Defaults(QueueLimits):
    """What the API server gives pods counts before they are made."""

    def test_what_a_limitrange_gives_pods_is_counted_and_kept(self) -> None:
        self.node(1, gpus=8)
        self.queues(red=7)
        self.limit(max={GPU: "4"})
        self.apply(self.without_gpus("pair", "red", 2))
        said = self.is_now("pair", "QuotaReserved", "False")["message"]
        self.assertIn(GPU, said)
        self.apply(self.without_gpus("single", "red"))
        self.runs("single")
        self.assertEqual(self.usage("single"), {GPU: "4"})
        asked = self.pods_of("single")[0]["spec"]["containers"][0]["resources"]
        self.assertEqual(asked["requests"], {GPU: "4"})

        # One that changes counts for those who wait, and is nothing to those who run.
        self.limit(max={GPU: "4"}, default={GPU: "1"}, defaultRequest={GPU: "1"})
        self.runs("pair", 2)
        self.assertEqual(self.usage("pair"), {GPU: "2"})
        self.assertEqual(self.usage("single"), {GPU: "4"})
        self.berth.kill()
        self.berth.start()
        self.settle()
        self.assertEqual(self.usage("single"), {GPU: "4"})
        self.assertFalse(self.job("single")["spec"]["suspend"])

    def test_whom_a_limitrange_refuses_waits_without_quota(self) -> None:
        self.node(1, gpus=8)
        self.queues(red=8)
        self.limit(max={GPU: "2"})
        self.apply(job("train", "red", 4))
        said = self.is_now("train", "QuotaReserved", "False", "Misconfigured")["message"]
        self.assertEqual(said, "resources didn't satisfy LimitRange constraints: maximum nvidia.com/gpu usage per "
                               "Container is 2, but limit is 4")  # fmt: skip
        self.api.call("DELETE", f"{RANGES}/bounds")
        self.runs("train")

    def test_the_overhead_of_a_runtimeclass_is_counted(self) -> None:
        self.node(1, gpus=8)
        self.queue_of_two(cpu=4, gpus=8)
        self.api.call("POST", RUNTIMES, {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "kata",
                                         "metadata": {"name": "kata"}, "overhead": {"podFixed": {"cpu": "3"}}})  # fmt: skip
        wait_until("Berth knows the class", lambda: time.sleep(1) or True)
        for name, pods in (("pair", 2), ("single", 1)):
            made = job(name, "red", 1, pods)
            made["spec"]["template"]["spec"]["runtimeClassName"] = "kata"
            self.apply(made)
        self.runs("single")
        self.assertEqual(self.usage("single"), {GPU: "1", "cpu": "3"})
        self.is_now("pair", "QuotaReserved", "False")


class Budgets(QueueLimits):
    """What was spent stays counted, whatever becomes of the budget, of Berth and of the Jobs."""

    EXPECTED_ERRORS = ("an object was set aside: it cannot be understood",)

    def active(self, plural: str, name: str) -> dict:
        conditions = self.status(plural, name).get("conditions", [])
        return next((one for one in conditions if one["type"] == "Active"), {})

    def annotate_local(self, queue: str, annotations: dict) -> None:
        self.api.call("PATCH", f"{self.of_kind('localqueues')}/{queue}", {"metadata": {"annotations": annotations}},
                      content_type=MERGE)  # fmt: skip

    def account(self, plural: str, name: str) -> str:
        conditions = self.status(plural, name).get("conditions", [])
        return next((one["message"] for one in conditions if one["type"] == "berth.dev/WithinBudget"), "")

    def spent(self, plural: str, name: str) -> float:
        return float(self.account(plural, name).split(" of ")[0])

    def rests(self, plural: str, name: str) -> float:
        """What was spent, once nobody spends any more."""
        wait_until("nobody spends", lambda: not self.account(plural, name).endswith("GPUs"))
        return self.spent(plural, name)

    def test_a_limit_that_cannot_be_read_closes_its_queue_and_forgets_nothing(self) -> None:
        hours, limits = "berth.dev/budget-gpu-hours", "berth.dev/user-limits"
        self.node(1, gpus=8)
        self.queues(team=4, users=4)
        self.annotate_local("team", {hours: "0.001"})
        self.apply(job("runs", "users", 1))
        self.runs("runs")
        self.apply(job("first", "team", 4, runs="2s"))
        self.ends("first")
        self.apply(job("second", "team", 1, runs="1s"))
        self.is_now("second", "QuotaReserved", "False", "BudgetSpent")
        before = self.rests("localqueues", "team")
        self.assertGreater(before, 0.001)

        self.annotate_local("team", {hours: "0,002"})
        self.annotate("users", {limits: "nvidia.com/gpu:2"})
        for plural, name, what in (("localqueues", "team", hours), ("clusterqueues", "users", limits)):
            said = wait_until(f"{name} is not active", lambda p=plural, n=name: (
                one if (one := self.active(p, n)).get("status") == "False" and one["reason"] == "InvalidSpec" else None))  # fmt: skip
            self.assertRegex(said["message"], f"annotation {what}: '.*' is no .*; write ")
            wait_until("an event", lambda n=name: self.events_of(n, "Quarantined"))
        self.is_now("second", "QuotaReserved", "False", "Suspended")
        self.assertEqual(self.spent("localqueues", "team"), before)
        self.apply(job("later", "users", 1))
        self.is_now("later", "QuotaReserved", "False", "Suspended")
        self.assertEqual(self.condition("runs", "Admitted")["status"], "True")

        # A Berth that takes over knows nothing else.
        self.berth.kill()
        self.berth.start()
        self.settle()
        self.is_now("second", "QuotaReserved", "False", "Suspended")
        self.assertEqual(self.spent("localqueues", "team"), before)
        self.annotate_local("team", {hours: "0.001"})
        self.is_now("second", "QuotaReserved", "False", "BudgetSpent")
        self.assertEqual(self.spent("localqueues", "team"), before)
        self.annotate("users", {limits: "nvidia.com/gpu=2"})
        self.runs("later")
        self.assertEqual(len(self.runs("runs")), 1)

    def test_what_is_deleted_while_berth_is_away_has_spent_until_it_is_back(self) -> None:
        self.node(1, gpus=8)
        self.queues(team=8)
        self.annotate("team", {"berth.dev/budget-gpu-hours": "1"})
        self.apply(job("train", "team", 8))
        self.runs("train")
        started = time.time()
        wait_until("the account says who spends", lambda: self.budget("team").get("message", "").endswith("8 GPUs"))
        time.sleep(3)
        self.berth.kill()
        self.api.call("DELETE", f"{JOBS}/train", {"propagationPolicy": "Foreground"})
        wait_until("its Workload is to go", lambda: "deletionTimestamp" in self.workload("train")["metadata"])
        least = (time.time() - started) * 8 / 3600
        self.berth.start()
        self.settle()
        spent = self.rests("clusterqueues", "team")
        self.assertGreaterEqual(spent, least)
        self.assertLess(spent, (time.time() - started + 3) * 8 / 3600)


class UsageOfLate(QueueLimits):
    """Who has used less of late comes first, whoever leads."""

    CONFIG = {**QueueSuite.CONFIG, "admissionFairSharing": {"usageHalfLifeTime": "10m", "usageSamplingInterval": "1s"}}

    def setUp(self) -> None:
        super().setUp()
        self.node(1, gpus=8)
        self.apply(make("ResourceFlavor", "gpus", {}),
                   make("ClusterQueue", "red", {
                       "namespaceSelector": {}, "resourceGroups": [group(flavor("gpus", quota(nominal=4)))],
                       "admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"}}))  # fmt: skip
        for name in ("one", "two", "three"):
            self.apply(make("LocalQueue", name, {"clusterQueue": "red", "fairSharing": {"weight": 1}},
                            namespace="default"))  # fmt: skip

    def used(self, queue: str) -> float:
        usage = self.status("localqueues", queue).get("fairSharing", {}).get("admissionFairSharingStatus", {})
        return float(usage.get("consumedResources", {}).get(GPU, 0))

    def restart(self) -> None:
        self.berth.kill()
        self.berth.start()
        self.settle()

    def whose_turn_it_is(self) -> None:
        """Of two that wait the later one starts, whose queue has used nothing."""
        self.apply(job("blocker", "three", 4, runs="9s"))
        self.runs("blocker")
        self.apply(job("older", "one", 4, runs="3s"))
        self.is_now("older", "QuotaReserved", "False")
        time.sleep(1.2)  # times of creation are told in seconds
        self.apply(job("newer", "two", 4, runs="3s"))
        self.is_now("newer", "QuotaReserved", "False")
        self.runs("newer")
        self.is_now("older", "QuotaReserved", "False")

    def test_it_decides_whose_turn_it_is(self) -> None:
        self.apply(job("used", "one", 4, runs="6s"))
        self.ends("used")
        self.whose_turn_it_is()

    def test_a_restart_does_not_forget_it(self) -> None:
        self.apply(job("used", "one", 4, runs="6s"))
        self.ends("used")
        wait_until("what was used is told", lambda: self.used("one") > 0.02)
        before = self.used("one")
        self.restart()
        self.whose_turn_it_is()
        self.assertAlmostEqual(self.used("one"), before, delta=before / 10)
        self.assertGreater(self.used("three"), 0)

    def test_what_runs_through_a_restart_counts_all_the_time(self) -> None:
        self.apply(make("LocalQueue", "four", {"clusterQueue": "red"}, namespace="default"), job("long", "four", 4))
        self.runs("long")
        started = time.time()
        time.sleep(2)
        self.berth.kill()
        time.sleep(4)
        self.berth.start()
        self.settle()
        wait_until("the time without Berth counts", lambda: self.used("four") > 4 * (1 - 2 ** (-6 / 600)))
        most = 4 * (1 - 2 ** (-(time.time() - started + 4) / 600))
        self.assertLess(self.used("four"), most)

    def test_what_others_write_there_is_put_right_and_harms_nobody(self) -> None:
        self.apply(job("used", "one", 4, runs="2s"))
        self.ends("used")
        wait_until("what was used is told", lambda: self.used("one") > 0)
        self.berth.kill()
        nonsense = {"weightedShare": 0, "admissionFairSharingStatus": {
            "consumedResources": {GPU: "1e400", "cpu": 7}, "lastUpdate": "2200-01-01T00:00:00Z"}}  # fmt: skip
        self.patch(f"{self.of_kind('localqueues')}/two/status", {"status": {"fairSharing": nonsense}})
        self.berth.start()
        self.settle()
        self.apply(job("after", "two", 4))
        self.runs("after")
        written = wait_until("it is put right", lambda: (
            one if (one := self.status("localqueues", "two")["fairSharing"]["admissionFairSharingStatus"])
            and one["lastUpdate"] < "2200" else None))  # fmt: skip
        self.assertLess(float(written["consumedResources"].get(GPU, 0)), 4)


if __name__ == "__main__":
    main()
