#!/usr/bin/env python3
"""How work leaves its queue on a real kube-apiserver, with the real Job controller: Jobs that end just when they are
evicted.

Ends with status 77 (skipped, for ctest) where the test servers or the program are not built.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.daemon import wait_until  # noqa: E402
from harness.suite import main  # noqa: E402
from queues_test import JOBS, QueueSuite, job  # noqa: E402


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


if __name__ == "__main__":
    main()
