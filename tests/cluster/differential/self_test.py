#!/usr/bin/env python3
"""The differential suite can fail: what differs is found, what was recorded for other manifests is not compared."""

from __future__ import annotations

import sys
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from differential import accepted  # noqa: E402
from differential.case import case  # noqa: E402
from differential.draw import Draw  # noqa: E402
from differential.records import NotRecorded, Records  # noqa: E402
from differential.replay import Report, Step, Verdict  # noqa: E402
from differential.state import Outcome, State  # noqa: E402

DIFFERENCES = Path(__file__).resolve().parents[3] / "docs" / "differences.md"
BOUND = Outcome(node="n1", feasible=("n0", "n1"))
REFUSED = Outcome(message="0/2 nodes are available: 1 Too many pods, 1 Insufficient cpu.")


def report(outcome: Outcome, **said) -> Report:
    """Of one step whose pod kube-scheduler judged so, and Berth likewise save what is `said`."""
    agreed = Verdict(bound=bool(outcome.node), message=outcome.message, feasible=outcome.feasible,
                     nominated=outcome.nominated, evicted=outcome.evicted)  # fmt: skip
    one = case(1)
    result = Report()
    result.add(Step(one, 0, State(one).manifests(), outcome), replace(agreed, **said))
    return result


class Comparison(unittest.TestCase):
    def test_the_same_verdict_is_no_mismatch(self) -> None:
        for outcome in (BOUND, REFUSED):
            self.assertEqual(report(outcome).mismatches, [])

    def test_a_pod_that_one_binds_and_the_other_does_not_is_told_with_its_manifest_and_how_to_try_it(self) -> None:
        (told,) = report(BOUND, bound=False).mismatches
        self.assertIn("seed 1, step 0", told)
        self.assertIn('"kind": "Pod"', told)
        self.assertIn("differential show 1 0", told)

    def test_another_text_is_a_mismatch(self) -> None:
        self.assertTrue(report(REFUSED, message="0/2 nodes are available: 2 Too many pods.").mismatches)

    def test_another_feasible_node_is_a_mismatch(self) -> None:
        self.assertTrue(report(BOUND, feasible=("n1",)).mismatches)

    def test_another_nominated_node_and_another_victim_are_mismatches(self) -> None:
        outcome = replace(REFUSED, nominated="n0", evicted=("p1",))
        self.assertEqual(report(outcome).mismatches, [])
        self.assertTrue(report(outcome, nominated="n1").mismatches)
        self.assertTrue(report(outcome, evicted=("p1", "p2")).mismatches)


class AcceptedDifferences(unittest.TestCase):
    def test_each_is_explained_in_the_docs(self) -> None:
        for name in accepted.ACCEPTED:
            self.assertIn(f"| {name}", DIFFERENCES.read_text())

    def test_what_follows_from_a_disk_is_accepted_for_pods_that_name_one(self) -> None:
        pod = case(1).pods[0]
        disk = {"name": "disk", "gcePersistentDisk": {"pdName": "disk-a"}}
        with_disk = {**pod, "spec": {**pod["spec"], "volumes": [disk]}}
        differing = {"bound": (False, True)}
        step = Step(replace(case(1), pods=[with_disk, pod]), 0, [], BOUND)
        self.assertEqual(accepted.name_of(step, differing), "in-tree disks")
        self.assertIsNone(accepted.name_of(replace(step, number=1), differing))

    def test_other_victims_are_accepted_if_their_priorities_are_the_same_and_nothing_else_differs(self) -> None:
        def running(name: str, priority: str) -> dict:
            return {"kind": "Pod", "metadata": {"name": name}, "spec": {"priorityClassName": priority}}

        manifests = [running("a", "low"), running("b", "low"), running("c", "high")]
        step = Step(case(1), 0, manifests, replace(REFUSED, nominated="n0", evicted=("a",)))
        self.assertEqual(accepted.name_of(step, {"evicted": (("a",), ("b",))}), "equal victims")
        self.assertIsNone(accepted.name_of(step, {"evicted": (("a",), ("c",))}))
        self.assertIsNone(accepted.name_of(step, {"evicted": (("a",), ("a", "b"))}))
        self.assertIsNone(accepted.name_of(step, {"evicted": (("a",), ("b",)), "nominated": ("n0", "n1")}))


class Recorded(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_what_was_put_is_found_again_in_the_files(self) -> None:
        one = case(7)
        nominated = replace(REFUSED, nominated="n0", evicted=("p1",))
        outcomes = [BOUND, REFUSED, nominated, replace(BOUND, claims={"c0": "v-c0", "c1": ""})]
        written = Records(self.folder)
        written.put(one, outcomes)
        written.save()
        self.assertEqual(Records(self.folder).of(one), outcomes)

    def test_outcomes_of_other_manifests_are_refused(self) -> None:
        written = Records(self.folder)
        written.put(case(7), [BOUND])
        with self.assertRaisesRegex(NotRecorded, "seed 7 now makes other manifests"):
            written.of(replace(case(7), pods=case(7).pods[1:]))
        with self.assertRaisesRegex(NotRecorded, "seed 8 was never recorded"):
            written.of(case(8))


class Cases(unittest.TestCase):
    def test_a_seed_makes_the_same_manifests_every_time(self) -> None:
        self.assertEqual(case(3), case(3))
        self.assertNotEqual(case(3).fingerprint(), case(4).fingerprint())

    def test_draws_are_what_they_were_when_the_outcomes_were_recorded(self) -> None:
        draw = Draw(1)
        self.assertEqual([draw.below(100) for _ in range(5)], [13, 84, 76, 25, 49])

    def test_what_follows_from_an_outcome(self) -> None:
        one = case(7)
        state = State(one)
        state.take(one.pods[0], BOUND)
        state.take(one.pods[1], REFUSED)
        state.take(one.pods[2], replace(REFUSED, nominated="n0", evicted=("p0",)))
        placed = {name: pod["spec"]["nodeName"] for name, pod in state.running.items() if name.startswith("p")}
        self.assertEqual(placed, {"p2": "n0"})


if __name__ == "__main__":
    unittest.main()
