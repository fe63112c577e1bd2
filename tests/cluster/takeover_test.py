#!/usr/bin/env python3
"""What a Berth that takes over holds for work that is admitted, before anybody else has a turn, on a real kube-apiserver.

Ends with status 77 (skipped, for ctest) where the test servers or the program are not built.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.objects import pod  # noqa: E402
from harness.suite import main  # noqa: E402
from queues_test import QueueSuite, job  # noqa: E402


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


if __name__ == "__main__":
    main()
