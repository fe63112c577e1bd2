#!/usr/bin/env python3
"""Functions fit a screen, files stay small, and headers say what they are for.

  function            70 lines     C++ under src, bench, fuzz and tests; Python under tools, tests and bench
  source file        400 lines     tests 600
  header             200 lines
  header and policy  begin with a comment; headers have #pragma once

tools/size_exceptions.toml holds the exceptions, each with a limit of its own and a reason; one that is no longer needed
is an error, so that the list only shrinks.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cpp_source import functions, tree_files  # noqa: E402

FUNCTION, SOURCE, TEST, HEADER = 70, 400, 600, 200
FOLDERS = {"src", "bench", "fuzz", "tests", "tools"}


class Sizes:
    """Compares sizes with limits and remembers which exceptions were needed."""

    def __init__(self, root: Path):
        self.root = root
        path = root / "tools" / "size_exceptions.toml"
        self.exceptions = tomllib.loads(path.read_text()) if path.is_file() else {}
        self.needed: set[str] = set()
        self.problems: list[str] = []
        for name, entry in self.exceptions.items():
            if not isinstance(entry.get("lines"), int) or not str(entry.get("reason", "")).strip():
                self.problems.append(f"tools/size_exceptions.toml: '{name}' needs lines = N and reason = \"...\"")

    def compare(self, name: str, place: str, lines: int, limit: int, what: str) -> None:
        if lines <= limit:
            return
        if name in self.exceptions:
            self.needed.add(name)
            limit = self.exceptions[name].get("lines", limit)
        if lines > limit:
            self.problems.append(f"{place}: {what} of {lines} lines; the limit is {limit}. Split it by what it does.")

    def unneeded(self) -> None:
        for name in sorted(self.exceptions.keys() - self.needed):
            self.problems.append(f"tools/size_exceptions.toml: '{name}' is small enough or gone; remove the entry")


def check_cpp(sizes: Sizes, path: Path, name: str) -> None:
    text = path.read_text()
    lines = text.count("\n")
    if path.suffix == ".h":
        sizes.compare(name, name, lines, HEADER, "a header")
        if not text.startswith("//"):
            sizes.problems.append(f"{name}:1: begin with a comment: what this is, who owns it, which thread, what must hold")
        if "\n#pragma once\n" not in text:
            sizes.problems.append(f"{name}: #pragma once is missing")
    else:
        sizes.compare(name, name, lines, TEST if name.endswith("_test.cc") else SOURCE, "a source file")
        if "\nextern const PolicyInfo " in text and not text.startswith("//"):
            sizes.problems.append(f"{name}:1: a policy begins with a comment that says what it does and why")
    for function in functions(text):
        sizes.compare(f"{name}#{function.name}", f"{name}:{function.first_line}", function.lines, FUNCTION,
                      f"{function.name}() is a function")


def check_python(sizes: Sizes, path: Path, name: str) -> None:
    text = path.read_text()
    sizes.compare(name, name, text.count("\n"), TEST if name.endswith("_test.py") else SOURCE, "a source file")
    for node in ast.walk(ast.parse(text, name)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            sizes.compare(f"{name}#{node.name}", f"{name}:{node.lineno}", lines, FUNCTION,
                          f"{node.name}() is a function")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root.resolve()
    sizes = Sizes(root)
    count = 0
    for path in tree_files(root, "*.cc", "*.h", "*.py"):
        name = str(path.relative_to(root))
        if name.split("/")[0] in FOLDERS:
            count += 1
            (check_python if path.suffix == ".py" else check_cpp)(sizes, path, name)
    sizes.unneeded()
    if not count:
        sizes.problems.append(f"{root}: no sources found")
    for problem in sizes.problems:
        print(problem)
    print(f"check_sizes: {count} files, {len(sizes.problems)} findings")
    return 1 if sizes.problems else 0


if __name__ == "__main__":
    sys.exit(main())
