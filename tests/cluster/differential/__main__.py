#!/usr/bin/env python3
"""The differential suite's tool.

  python3 tests/cluster/differential record [FIRST LAST]     asks a real kube-scheduler anew, and writes the recorded files
  python3 tests/cluster/differential replay [FIRST LAST]     compares Berth with what is recorded
  python3 tests/cluster/differential show SEED STEP FOLDER   the manifests of one step and both verdicts
  python3 tests/cluster/differential coverage                how often each text stands in the recorded messages
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from differential import records  # noqa: E402
from differential.case import case  # noqa: E402
from differential.replay import Step, berth_verdict, differences, replay, write  # noqa: E402
from differential.state import State  # noqa: E402
from harness.daemon import berth_binary  # noqa: E402


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("record", "replay"):
        command = commands.add_parser(name)
        command.add_argument("first", type=int, nargs="?", default=records.FIRST)
        command.add_argument("last", type=int, nargs="?", default=records.LAST)
        command.add_argument("--berth", type=Path, help="the program, instead of the release build's")
    show = commands.add_parser("show")
    show.add_argument("seed", type=int)
    show.add_argument("step", type=int)
    show.add_argument("folder", type=Path)
    commands.add_parser("coverage")
    return parser.parse_args()


def record(seeds: range) -> int:
    from differential.recorder import Recorder, cluster  # needs the test servers

    store = records.Records()
    began = time.monotonic()
    with cluster() as servers, Recorder(servers) as recorder:
        for seed in seeds:
            one = case(seed)
            store.put(one, recorder.record(one))
    store.save()
    print(f"{len(seeds)} seeds recorded in {time.monotonic() - began:.0f} s")
    return 0


def compare(berth: Path | None, seeds: range) -> int:
    berth = berth or berth_binary()
    if berth is None:
        print("the berth program is not built: ./dev build", file=sys.stderr)
        return 1
    report = replay(berth, seeds)
    print("\n\n".join([*report.mismatches, report.summary()]))
    return 1 if report.mismatches else 0


def show(seed: int, number: int, folder: Path) -> int:
    """Writes state.json and pod.json, and says how to try them."""
    one = case(seed)
    outcomes = records.Records().of(one)
    state = State(one)
    for pod, outcome in list(zip(one.pods, outcomes, strict=True))[:number]:
        state.take(pod, outcome)
    step = Step(one, number, state.manifests(), outcomes[number])
    write(step, folder)
    print(f"kube-scheduler: {step.outcome}")
    if berth := berth_binary():
        verdict = berth_verdict(berth, step)
        print(f"Berth:          {verdict}\ndifferent:      {differences(step, verdict) or 'nothing'}")
    print(f"berth simulate -f {folder} -o wide")
    return 0


def coverage() -> int:
    store, count = records.Records(), Counter()
    for seed in range(records.FIRST, records.LAST + 1):
        for outcome in store.of(case(seed)):
            count["(bound)" if outcome.node else "(refused)"] += 1
            count["(nominated)"] += bool(outcome.nominated)
            head, _, tail = outcome.message.partition("preemption: ")
            for part, text in (("", head), ("preemption: ", tail)):
                body = re.sub(r"^0/\d+ nodes are available: ", "", text)
                for reason in re.split(r", |\. ", re.sub(r'"[^"]*"', '"..."', body)):
                    count[part + re.sub(r"^\d+ ", "", reason).rstrip(".")] += 1
    for text, times in sorted(count.items(), key=lambda item: -item[1]):
        print(f"{times:6} {text}")
    return 0


def main() -> int:
    args = parse()
    try:
        if args.command == "record":
            return record(range(args.first, args.last + 1))
        if args.command == "replay":
            return compare(args.berth, range(args.first, args.last + 1))
        return show(args.seed, args.step, args.folder) if args.command == "show" else coverage()
    except records.NotRecorded as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
