#!/usr/bin/env python3
"""Runs clang-tidy over src/**/*.cc, two units at a time, and remembers what was clean.

  tidy.py [--build build/release] [--jobs N] [FILE...]

What is compiled as one (cmake/units.cmake) is examined as one; FILE stands for the unit that holds it. A unit is examined
again only when something that decides the result has changed: its files, a header of ours that they include (directly or
not), .clang-tidy, its compile command or clang-tidy itself. Clean results are empty files under
${BERTH_CACHE:-${XDG_CACHE_HOME:-~/.cache}/berth}/tidy. Findings are printed and never remembered.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(rb'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
HEARTBEAT_S = 20.0
KEEP_DAYS = 30


def cache_folder() -> Path:
    base = os.environ.get("BERTH_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "berth"
    )
    folder = Path(base) / "tidy"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@cache
def read(path: Path) -> bytes:
    return path.read_bytes()


@cache
def direct_includes(path: Path) -> tuple[Path, ...]:
    """Headers of ours that the file names; those of the system are left out."""
    found = []
    for name in INCLUDE.findall(read(path)):
        for folder in (ROOT / "src", path.parent):
            header = folder / name.decode()
            if header.is_file():
                found.append(header)
                break
    return tuple(found)


def all_includes(path: Path) -> list[Path]:
    seen: set[Path] = set()
    waiting = [path]
    while waiting:
        for header in direct_includes(waiting.pop()):
            if header not in seen:
                seen.add(header)
                waiting.append(header)
    return sorted(seen)


def fingerprint(path: Path, command: str, common: bytes) -> str:
    digest = hashlib.sha256(common + command.encode())
    for part in (path, *all_includes(path)):
        digest.update(b"\0" + str(part.relative_to(ROOT)).encode() + b"\0" + read(part))
    return digest.hexdigest()


def examine(tool: str, build: Path, path: Path) -> tuple[Path, int, str, float]:
    began = time.monotonic()
    # -w: compiler warnings are g++'s business; clang knows other ones.
    done = subprocess.run(
        [tool, "-p", str(build), "--quiet", "--extra-arg=-w", str(path)], capture_output=True, text=True, cwd=ROOT
    )
    output = done.stdout + (done.stderr if done.returncode and not done.stdout else "")
    return path, done.returncode, output, time.monotonic() - began


def commands_of(build: Path) -> dict[Path, str]:
    """The compile command of each unit and of each file of src/ that is in none."""
    database = build / "compile_commands.json"
    if not database.is_file():
        sys.exit(f"tidy: {database} is missing; './dev build' writes it")
    units, alone = {}, {}
    for entry in json.loads(database.read_text()):
        path = (Path(entry["directory"]) / entry["file"]).resolve()
        if not path.is_file():
            continue
        if path.parent == build.resolve() / "units":
            units[path] = entry["command"].replace(str(ROOT), ".")
        elif ROOT / "src" in path.parents:
            alone[path] = entry["command"].replace(str(ROOT), ".")
    held = {source for unit in units for source in direct_includes(unit)}
    return units | {path: command for path, command in alone.items() if path not in held}


def unit_of(path: Path, commands: dict[Path, str]) -> Path:
    for unit in commands:
        if unit == path or path in direct_includes(unit):
            return unit
    sys.exit(f"tidy: not built, so not known how to read it: {path}; './dev build' first")


def forget_old(folder: Path) -> None:
    limit = time.time() - KEEP_DAYS * 86400
    for entry in folder.iterdir():
        if entry.stat().st_mtime < limit:
            entry.unlink(missing_ok=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--times", action="store_true", help="print the seconds that each unit took")
    parser.add_argument("files", nargs="*", type=Path, help="instead of all of src/")
    args = parser.parse_args()

    tool = shutil.which("clang-tidy-14") or shutil.which("clang-tidy")
    if tool is None:
        sys.exit("tidy: clang-tidy is not installed; './dev setup' installs it")
    commands = commands_of(args.build)
    chosen = sorted({unit_of(path.resolve(), commands) for path in args.files} or commands)

    version = subprocess.run([tool, "--version"], capture_output=True, check=True).stdout
    common = version + read(ROOT / ".clang-tidy")
    folder = cache_folder()
    forget_old(folder)
    keys = {path: fingerprint(path, commands[path], common) for path in chosen}
    stale = [path for path in chosen if not (folder / keys[path]).exists()]
    # The largest first, so that none of them runs alone at the end.
    stale.sort(key=lambda path: -sum(len(read(part)) for part in (path, *all_includes(path))))

    failed, done, told = 0, 0, time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for path, status, output, seconds in pool.map(lambda path: examine(tool, args.build, path), stale):
            done += 1
            if status:
                failed += 1
                print(output.strip(), flush=True)
            else:
                (folder / keys[path]).touch()
            if args.times:
                print(f"{seconds:6.1f} s  {path.relative_to(ROOT)}", flush=True)
            if time.monotonic() - told >= HEARTBEAT_S:
                told = time.monotonic()
                print(f"tidy: {done} of {len(stale)} units", flush=True)
    print(f"tidy: {len(chosen)} units, {len(stale)} examined, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
