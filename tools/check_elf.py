#!/usr/bin/env python3
"""The release binary is hardened: PIE, full RELRO, stack protector, FORTIFY, no executable stack, no run path.

  check_elf.py [BINARY...]     default build/release/bin/berth; status 77 (skipped) where none is built
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def readelf(binary: Path, *options: str) -> str:
    done = subprocess.run(
        ["readelf", "--wide", *options, str(binary)], capture_output=True, text=True, env=os.environ | {"LC_ALL": "C"}
    )
    if done.returncode or "Error:" in done.stderr:
        sys.exit(f"check_elf: {binary} is not an ELF file that readelf can read: {done.stderr.strip()}")
    return done.stdout


def problems_of(binary: Path) -> list[str]:
    header, segments = readelf(binary, "--file-header"), readelf(binary, "--program-headers")
    dynamic, symbols = readelf(binary, "--dynamic"), readelf(binary, "--dyn-syms")
    wanted = {
        "not a position-independent executable (-fPIE -pie)":
            re.search(r"Type:\s+DYN", header) and re.search(r"\(FLAGS_1\).*\bPIE\b", dynamic),
        "no RELRO segment (-z relro)": "GNU_RELRO" in segments,
        "relocations stay writable (-z now)":
            re.search(r"\(BIND_NOW\)|\(FLAGS\).*\bBIND_NOW\b|\(FLAGS_1\).*\bNOW\b", dynamic),
        "the stack is executable (-z noexecstack)": re.search(r"GNU_STACK(?:\s+0x\w+){5}\s+RW\s", segments),
        "no stack protector (-fstack-protector-strong)": "__stack_chk_fail" in symbols,
        "no FORTIFY (-D_FORTIFY_SOURCE=2 with -O2)": re.search(r"\b__\w+_chk\b(?<!__stack_chk)", symbols),
        "text relocations": "(TEXTREL)" not in dynamic,
        "a run path": "(RPATH)" not in dynamic and "(RUNPATH)" not in dynamic,
    }
    return [what for what, holds in wanted.items() if not holds]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries", nargs="*", type=Path, default=[ROOT / "build" / "release" / "bin" / "berth"])
    binaries = parser.parse_args().binaries
    missing = [binary for binary in binaries if not binary.is_file()]
    if missing:
        print(f"check_elf: {missing[0]} is not built; './dev build' builds it")
        return 77
    findings = [f"{binary}: {problem}" for binary in binaries for problem in problems_of(binary)]
    for finding in findings:
        print(finding)
    print(f"check_elf: {len(binaries)} binaries, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
