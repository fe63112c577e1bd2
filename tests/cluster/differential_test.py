#!/usr/bin/env python3
"""kube-scheduler and Berth, given the same small clusters and pods: a live kube-scheduler, some seeds of the suite.

`differential.replay` compares Berth with the recorded outcomes of all seeds; here the recording itself is on trial, and
Berth meets states that nobody has recorded. BERTH_LONG=1 takes all seeds. Ends with status 77 (skipped, for ctest) where
the test servers or the program are not built.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from differential import records  # noqa: E402
from differential.case import case  # noqa: E402
from differential.recorder import Recorder, cluster  # noqa: E402
from differential.replay import Report, compare, steps  # noqa: E402
from differential.state import Outcome  # noqa: E402
from harness.daemon import berth_binary  # noqa: E402
from harness.suite import main  # noqa: E402

LONG = os.environ.get("BERTH_LONG") == "1"
RECORDED = range(records.FIRST, (records.LAST if LONG else 30) + 1)
UNKNOWN = range(records.LAST + 1, records.LAST + (300 if LONG else 30) + 1)


def disagreement(recorded: list[Outcome], seen: list[Outcome]) -> str:
    """What kube-scheduler says otherwise than it was recorded to; empty where its picks among equals alone differ."""
    for number, (then, now) in enumerate(zip(recorded, seen)):  # a guided recording may end early
        same = then.without_pick() == now.without_pick()
        if not same:
            return f"step {number}:\n  recorded {then}\n  now      {now}"
    return ""


class Live(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        servers = cls.enterClassContext(cluster())
        cls.recorder = cls.enterClassContext(Recorder(servers))

    def test_kube_scheduler_says_what_was_recorded(self) -> None:
        store = records.Records()
        for seed in RECORDED:
            with self.subTest(seed=seed):
                one = case(seed)
                recorded = store.of(one)
                found = disagreement(recorded, self.recorder.record(one, guide=recorded))
                if found:  # on a machine this busy, did its caches lag? Then patience helps, and nothing is wrong
                    found = disagreement(recorded, self.recorder.record(one, guide=recorded, patience_s=2))
                self.assertEqual(found, "")

    def test_berth_agrees_where_nothing_was_recorded(self) -> None:
        report = Report(Path(tempfile.gettempdir()) / "berth-differential")
        for seed in UNKNOWN:
            one = case(seed)
            compare(berth_binary(), list(steps(one, self.recorder.record(one))), report)
        print(report.summary(), file=sys.stderr)
        self.assertEqual(report.mismatches, [], "\n\n".join(report.mismatches))
        self.assertGreater(report.compared, len(UNKNOWN), json.dumps(report.accepted))


if __name__ == "__main__":
    main()
