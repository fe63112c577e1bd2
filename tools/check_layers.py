#!/usr/bin/env python3
"""Compares the real #include lines of src/ with layers.toml, and looks for what deterministic layers must not use.

A line may carry the reason why a finding is none:  // deterministic: <why>
(the only one so far: an iteration over a hash container whose order does not reach a decision.)
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cpp_source import code_only, comments_only, tree_files  # noqa: E402

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.MULTILINE)

BANNED_HEADERS = {
    "chrono": "clocks", "ctime": "clocks", "time.h": "clocks", "sys/time.h": "clocks",
    "random": "randomness; base/rng.h has a seeded Rng",
    "thread": "threads", "mutex": "threads", "shared_mutex": "threads", "condition_variable": "threads",
    "future": "threads", "atomic": "threads", "semaphore": "threads", "latch": "threads", "barrier": "threads",
    "sys/socket.h": "sockets", "netinet/in.h": "sockets", "netdb.h": "sockets", "arpa/inet.h": "sockets",
    "poll.h": "sockets", "sys/epoll.h": "sockets", "unistd.h": "the operating system", "curl/curl.h": "sockets",
}
BANNED_TOKENS = [
    (re.compile(r"\b(?:system|steady|high_resolution)_clock\b"), "reads a clock"),
    (re.compile(r"\b(?:gettimeofday|clock_gettime|localtime(?:_r)?|gmtime(?:_r)?)\s*\("), "reads a clock"),
    (re.compile(r"(?<![\w.>:])(?:std::)?time\s*\(\s*(?:nullptr|NULL|0|&)"), "reads a clock"),
    (re.compile(r"(?<![\w.>])(?:std::)?s?rand(?:om)?\s*\("), "draws unseeded random numbers"),
    (re.compile(r"\bstd::(?:random_device|mt19937(?:_64)?|default_random_engine)\b"), "draws random numbers"),
    (re.compile(r"\b(?:secure_)?getenv\s*\("), "reads the environment"),
    (re.compile(r"\bstd::(?:j?thread|\w*mutex|condition_variable\w*|atomic\w*|async|future|this_thread)\b"),
     "uses threads"),
]
HASHED = re.compile(r"\b(?:flat_hash|node_hash|unordered)_(?:map|set)\s*<[^;{}()]*>\s*&?\s*(\w+)\s*(?=[;={,)])")
EXCUSE = re.compile(r"//.*\bdeterministic: \S")


class Tree:
    """What layers.toml says, and the sources with their layers."""

    def __init__(self, root: Path):
        self.root = root
        rules = tomllib.loads((root / "layers.toml").read_text())
        self.deterministic = set(rules.pop("deterministic", {}).get("layers", []))
        self.allowed = {layer: set(below) | {layer} for layer, below in rules.items()}
        self.files = [path for path in tree_files(root, "*.cc", "*.h") if path.relative_to(root).parts[0] == "src"]
        self.text = {path: path.read_text() for path in self.files}

    def layer(self, path: Path) -> str:
        return path.relative_to(self.root / "src").parts[0]

    def place(self, path: Path, line: int) -> str:
        return f"{path.relative_to(self.root)}:{line}"


def find_cycle(edges: dict) -> list | None:
    """A path that ends where it began, or None. Self-edges do not count."""
    state: dict = {}
    for start in sorted(edges):
        if start in state:
            continue
        path, stack = [start], [iter(sorted(edges[start]))]
        state[start] = "open"
        while stack:
            for after in stack[-1]:
                if after == path[-1] or state.get(after) == "done":
                    continue
                if state.get(after) == "open":
                    return path[path.index(after):] + [after]
                state[after] = "open"
                path.append(after)
                stack.append(iter(sorted(edges.get(after, ()))))
                break
            else:
                state[path.pop()] = "done"
                stack.pop()
    return None


def check_rules(tree: Tree) -> list[str]:
    problems = []
    for layer, below in sorted(tree.allowed.items()):
        for name in sorted(below - tree.allowed.keys()):
            problems.append(f"layers.toml: {layer} names the unknown layer {name}")
    for name in sorted(tree.deterministic - tree.allowed.keys()):
        problems.append(f"layers.toml: deterministic names the unknown layer {name}")
    if cycle := find_cycle(tree.allowed):
        problems.append(f"layers.toml: a cycle: {' -> '.join(cycle)}")
    for layer in sorted({tree.layer(path) for path in tree.files} - tree.allowed.keys()):
        problems.append(f"src/{layer}: no such layer in layers.toml; add it with what it may include")
    return problems


def check_includes(tree: Tree) -> list[str]:
    problems = []
    edges: dict[str, set[str]] = {}
    layers = {path.name for path in (tree.root / "src").iterdir() if path.is_dir()}
    for path in tree.files:
        layer = tree.layer(path)
        own = edges.setdefault(str(path.relative_to(tree.root / "src")), set())
        for match in INCLUDE.finditer(tree.text[path]):
            line = tree.text[path].count("\n", 0, match.start(2)) + 1
            bracket, name = match.groups()
            target = name.split("/")[0]
            if bracket == "<" or (target not in layers and not (path.parent / name).is_file()):
                continue  # the system's or a library's
            if target not in layers or not (tree.root / "src" / name).is_file():
                problems.append(f'{tree.place(path, line)}: include "{name}" by its path from src/')
                continue
            own.add(name)
            if target not in tree.allowed.get(layer, {target}):
                problems.append(f"{tree.place(path, line)}: {layer} may not include {target} ({name}); see layers.toml")
    if cycle := find_cycle(edges):
        problems.append(f"src: headers include each other: {' -> '.join(cycle)}")
    return problems


def check_determinism(tree: Tree) -> list[str]:
    problems = []
    for path in tree.files:
        if tree.layer(path) not in tree.deterministic or path.name.endswith("_test.cc"):
            continue
        text = tree.text[path]
        code, comments = code_only(text), comments_only(text)

        def report(at: int, what: str) -> None:
            line = text.count("\n", 0, at) + 1
            if not any(EXCUSE.search(comments.get(near, "")) for near in (line, line - 1)):
                problems.append(f"{tree.place(path, line)}: {what}; {tree.layer(path)} must stay deterministic")

        for match in INCLUDE.finditer(text):
            if match.group(1) == "<" and (why := BANNED_HEADERS.get(match.group(2))):
                report(match.start(2), f"<{match.group(2)}> brings {why}")
        for pattern, what in BANNED_TOKENS:
            for match in pattern.finditer(code):
                report(match.start(), f"'{match.group().strip()}' {what}")
        for match in iterations(code, hashed_names(tree, path)):
            report(match.start(), f"'{match.group(1)}' is a hash container, whose order is undefined, and is iterated here")
    return problems


def hashed_names(tree: Tree, path: Path) -> set[str]:
    """Variables and members that are hash containers, from the file itself and the header beside it."""
    header = path.with_suffix(".h")
    own = [tree.text[path]] + ([tree.text[header]] if header in tree.text and header != path else [])
    return {name for text in own for name in HASHED.findall(code_only(text))}


def iterations(code: str, names: set[str]):
    if not names:
        return
    name = "|".join(sorted(map(re.escape, names)))
    for pattern in (rf"\bfor\s*\([^;()]*[^:]:\s*(?:\w+\s*(?:\.|->)\s*)*({name})\s*\)", rf"\b({name})\s*\.\s*c?begin\s*\("):
        yield from re.finditer(pattern, code)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    tree = Tree(parser.parse_args().root.resolve())
    if not tree.files:
        print("check_layers: no sources under src/", file=sys.stderr)
        return 1
    problems = check_rules(tree) + check_includes(tree) + check_determinism(tree)
    for problem in problems:
        print(problem)
    print(f"check_layers: {len(tree.files)} files, {len(problems)} findings")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
