"""Berth's side: the same state and the same pod, through `berth simulate`, and what differs.

Offline and without servers. Each step is a process of its own with a few objects, so that it can be reproduced alone.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from . import accepted
from .case import Case, case
from .records import Records
from .state import Outcome, State


@dataclass(frozen=True)
class Verdict:
    """What `berth simulate` says of a pod."""

    bound: bool  # at once; a simulation goes on, and a nominated pod is bound in the end
    message: str  # empty for a nominated pod: its last message is that it was bound
    feasible: tuple[str, ...]
    nominated: str
    evicted: tuple[str, ...]


@dataclass(frozen=True)
class Step:
    """One pod of a case, with the state it met and what kube-scheduler said."""

    case: Case
    number: int
    manifests: list[dict]  # all that is there
    outcome: Outcome

    @property
    def pod(self) -> dict:
        return self.case.pods[self.number]

    def document(self) -> str:
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": [*self.manifests, self.pod]})


def steps(one: Case, outcomes: list[Outcome]) -> Iterator[Step]:
    """Its pods, in order, each with the state that it met."""
    state = State(one)
    for number, (pod, outcome) in enumerate(zip(one.pods, outcomes, strict=True)):
        yield Step(one, number, state.manifests(), outcome)
        state.take(pod, outcome)


def berth_verdict(berth: Path, step: Step) -> Verdict:
    done = subprocess.run([berth, "simulate", "-f", "-", "-o", "json"], input=step.document(), text=True,
                          capture_output=True, timeout=60)  # fmt: skip
    if done.returncode not in (0, 3):
        raise AssertionError(f"berth simulate ended with {done.returncode}: {done.stderr}")
    metadata = step.pod["metadata"]
    found = [one for one in json.loads(done.stdout)["pods"]
             if (one["namespace"], one["name"]) == (metadata["namespace"], metadata["name"])]  # fmt: skip
    return _verdict(found[0])


def _verdict(said: dict) -> Verdict:
    feasible = tuple(sorted(said["feasible"]))
    nominated = said["nominated_node"] or ""
    evicted = tuple(sorted(one["name"] for one in said["evicted"]))
    bound = said["node"] is not None and not nominated
    message = "" if nominated and said["node"] is not None else said["message"]
    return Verdict(bound, message, feasible, nominated, evicted)


def differences(step: Step, berth: Verdict) -> dict[str, tuple[object, object]]:
    """What kube-scheduler and Berth do not agree on: name -> (kube-scheduler's, Berth's)."""
    kube = step.outcome
    pairs: dict[str, tuple[object, object]] = {
        "bound": (bool(kube.node), berth.bound),
        "nominated": (kube.nominated, berth.nominated),
        "evicted": (kube.evicted, berth.evicted),
    }
    if kube.node:
        pairs["feasible"] = (kube.feasible, berth.feasible)
    elif not kube.nominated or berth.message:
        pairs["message"] = (kube.message, berth.message)
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


@dataclass
class Report:
    folder: Path | None = None  # where the manifests of a mismatch go; None where the recorded seed brings them back
    compared: int = 0
    accepted: dict[str, int] = field(default_factory=dict)
    mismatches: list[str] = field(default_factory=list)

    def add(self, step: Step, verdict: Verdict) -> None:
        self.compared += 1
        differing = differences(step, verdict)
        if not differing:
            return
        name = accepted.name_of(step, differing)
        if name:
            self.accepted[name] = self.accepted.get(name, 0) + 1
        else:
            self.mismatches.append(_told(step, differing, self.folder))

    def summary(self) -> str:
        allowed = ", ".join(f"{count} {name}" for name, count in sorted(self.accepted.items())) or "none"
        return f"{self.compared} verdicts compared; {len(self.mismatches)} differ; accepted differences: {allowed}"


def write(step: Step, folder: Path) -> None:
    """The manifests of the step, for `berth simulate -f FOLDER`."""
    folder.mkdir(parents=True, exist_ok=True)
    state = {"apiVersion": "v1", "kind": "List", "items": step.manifests}
    for name, content in (("state", state), ("pod", step.pod)):
        (folder / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")


def _told(step: Step, differing: dict[str, tuple[object, object]], folder: Path | None) -> str:
    seed, number = step.case.seed, step.number
    lines = [f"seed {seed}, step {number} ({', '.join(sorted(step.case.emphasis))}):"]
    for name, (kube, berth) in differing.items():
        lines += [f"  {name}: kube-scheduler  {kube}", f"  {name}: Berth           {berth}"]
    lines.append("  " + json.dumps(step.pod))
    if folder is None:
        lines.append(f"  reproduce: python3 tests/cluster/differential show {seed} {number} /tmp/{seed}-{number}")
    else:
        write(step, folder / f"{seed}-{number}")
        lines.append(f"  reproduce: build/release/bin/berth simulate -f {folder / f'{seed}-{number}'} -o wide")
    return "\n".join(lines)


def compare(berth: Path, found: list[Step], report: Report, workers: int = 2) -> None:
    with ThreadPoolExecutor(workers) as pool:
        for step, verdict in zip(found, pool.map(lambda step: berth_verdict(berth, step), found), strict=True):
            report.add(step, verdict)


def replay(berth: Path, seeds: range) -> Report:
    """Every recorded outcome of these seeds against Berth. Raises NotRecorded."""
    records = Records()
    report = Report()
    for seed in seeds:
        one = case(seed)
        compare(berth, list(steps(one, records.of(one))), report)
    return report
