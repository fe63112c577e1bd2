#!/usr/bin/env python3
"""transcripts_test.py BERTH [--update]: what README.md, docs/ and examples/ show of `berth` is what it prints.

Of each block that begins with `$ berth ... -f examples/...` (or another command that needs no files of the reader's) the
command is run and its output compared, line by line; a last line `…` stands for all that follows. --update writes the
output into the documents, up to where it is left out.
"""

from __future__ import annotations

import difflib
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BERTH = sys.argv[1]
COMMAND = re.compile(r"^(?P<indent> *)\$ (?:build/release/bin/)?berth (?P<arguments>.*-f examples/.*|policies)$")
LEFT_OUT = "…"


def stripped(lines: list[str]) -> list[str]:
    out = [line.rstrip() for line in lines]
    while out and not out[-1]:
        out.pop()
    return out


def shown(lines: list[str], first: int, indent: str) -> int:
    """The first line after `first` that is no output of the command before it."""
    end = first
    while end < len(lines):
        line = lines[end]
        if line.startswith(("```", f"{indent}$ ")) or (line.strip() and not line.startswith(indent)):
            break
        end += 1
    return end


def printed(arguments: str, expected: list[str]) -> list[str]:
    run = subprocess.run([BERTH, *shlex.split(arguments)], capture_output=True, text=True, cwd=ROOT, check=False)
    lines = stripped(run.stdout.splitlines())
    if expected and expected[-1] == LEFT_OUT:
        return [*lines[:len(expected) - 1], LEFT_OUT]
    return lines


def check(path: Path, update: bool) -> tuple[int, list[str]]:
    """How many transcripts the document has, and where they differ from what is printed."""
    lines = path.read_text().splitlines()
    differences: list[str] = []
    at, count = 0, 0
    while at < len(lines):
        command = COMMAND.match(lines[at])
        at += 1
        if command is None:
            continue
        indent = command["indent"]
        end = shown(lines, at, indent)
        expected = stripped([line.removeprefix(indent) for line in lines[at:end]])
        actual = printed(command["arguments"], expected)
        count += 1
        if actual != expected:
            name = f"{path.relative_to(ROOT)}:{at}"
            differences += difflib.unified_diff(expected, actual, f"{name} says", "berth prints", lineterm="", n=1)
            if update:
                lines[at:at + len(expected)] = [(indent + line).rstrip() for line in actual]
        at += len(actual if update else expected)
    if update and differences:
        path.write_text("\n".join(lines) + "\n")
    return count, differences


def main() -> None:
    update = "--update" in sys.argv[2:]
    documents = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("examples/*/README.md"))]
    found = [check(path, update) for path in documents]
    count = sum(each for each, _ in found)
    differences = [line for _, each in found for line in each]
    if count < 5:
        sys.exit(f"only {count} transcripts were found in {len(documents)} documents: is their form another one?")
    print("\n".join(differences) if differences else f"{count} transcripts are what berth prints")
    if differences and not update:
        sys.exit(f"write them anew: tests/cli/transcripts_test.py {BERTH} --update")


main()
