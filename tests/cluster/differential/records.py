"""Recorded outcomes as files: recorded/seeds-001-050.json and so on, one line for each seed.

A step is what became of one pod, nodes and victims by their number:

  {"on": 3, "of": [1, 3]}                    bound to n3; n1 and n3 were feasible
  {"no": [12, 4]}                            refused; the message is texts[12] + ", " + texts[4]
  {"no": [7], "for": 2, "out": ["p3"]}       refused, and nominated for n2, from which p3 was evicted
  {"on": 0, "of": [0], "claims": {"c5": "v-c5"}}

Only outcomes are kept: the manifests follow from the seed, and `hash` tells whether they still are those.
"""

from __future__ import annotations

import json
from pathlib import Path

from .case import Case
from .state import Outcome

FOLDER = Path(__file__).resolve().parent / "recorded"
FIRST, LAST = 1, 500
BUNCH = 50


class NotRecorded(Exception):
    """There is no outcome for the manifests that a seed now makes; the message says what to do."""


class Records:
    """All recorded outcomes in memory; save() writes them."""

    def __init__(self, folder: Path = FOLDER):
        self._folder = folder
        self._seeds: dict[int, tuple[str, list[Outcome]]] = {}
        for path in sorted(folder.glob("*.json")):
            self._load(json.loads(path.read_text()))

    def of(self, case: Case) -> list[Outcome]:
        fingerprint, outcomes = self._seeds.get(case.seed, ("", []))
        if fingerprint != case.fingerprint():
            why = "was never recorded" if not fingerprint else "now makes other manifests than those recorded"
            raise NotRecorded(f"seed {case.seed} {why}: python3 tests/cluster/differential record")
        return outcomes

    def put(self, case: Case, outcomes: list[Outcome]) -> None:
        self._seeds[case.seed] = (case.fingerprint(), outcomes)

    def save(self) -> None:
        self._folder.mkdir(exist_ok=True)
        bunches: dict[int, list[int]] = {}
        for seed in sorted(self._seeds):
            bunches.setdefault((seed - FIRST) // BUNCH, []).append(seed)
        for number, seeds in bunches.items():
            first = FIRST + number * BUNCH
            path = self._folder / f"seeds-{first:03}-{first + BUNCH - 1:03}.json"
            path.write_text(self._bunch(seeds))

    # -- the form of a file

    def _bunch(self, seeds: list[int]) -> str:
        texts: dict[str, int] = {}
        lines = []
        for seed in seeds:
            fingerprint, outcomes = self._seeds[seed]
            steps = [_encoded(one, texts) for one in outcomes]
            lines.append(f'"{seed}":' + json.dumps({"hash": fingerprint, "steps": steps}, separators=(",", ":")))
        table = ",\n".join(json.dumps(text) for text in texts)
        return '{"texts":[\n' + table + '],\n"seeds":{\n' + ",\n".join(lines) + "}}\n"

    def _load(self, bunch: dict) -> None:
        for seed, one in bunch["seeds"].items():
            self._seeds[int(seed)] = (one["hash"], [_decoded(step, bunch["texts"]) for step in one["steps"]])


def _encoded(outcome: Outcome, texts: dict[str, int]) -> dict:
    if outcome.node:
        step: dict = {"on": int(outcome.node[1:]), "of": [int(name[1:]) for name in outcome.feasible]}
        return {**step, "claims": outcome.claims} if outcome.claims else step
    step = {"no": [texts.setdefault(part, len(texts)) for part in outcome.message.split(", ")]}
    if outcome.nominated:
        step.update({"for": int(outcome.nominated[1:]), "out": list(outcome.evicted)})
    return step


def _decoded(step: dict, texts: list[str]) -> Outcome:
    if "on" in step:
        return Outcome(node=f"n{step['on']}", feasible=tuple(f"n{number}" for number in step["of"]),
                       claims=step.get("claims", {}))  # fmt: skip
    return Outcome(message=", ".join(texts[index] for index in step["no"]),
                   nominated=f"n{step['for']}" if "for" in step else "", evicted=tuple(step.get("out", ())))  # fmt: skip
