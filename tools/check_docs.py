#!/usr/bin/env python3
"""Links in *.md lead somewhere: files exist, #headings exist, and functions named as path#function exist there.

  [text](../src/engine/txn.h)             the file
  [text](../src/engine/txn.cc#commit)     and a function, type or method of that name in it
  `src/engine/txn.cc#commit`              the same, from the root of the checkout
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cpp_source import code_only, tree_files  # noqa: E402

LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(<?([^()\s<>]+(?:\([^()\s]*\))?)>?(?:\s+\"[^\"]*\")?\)")
REFERENCE = re.compile(r"^\[[^\]]+\]:\s+<?(\S+?)>?(?:\s|$)", re.MULTILINE)
IN_CODE = re.compile(r"`((?:src|tools|tests|bench|fuzz|web)/[\w./-]+\.\w+)#([A-Za-z_~][\w:~]*)`")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
CODE_SPAN = re.compile(r"(`+)[^`].*?\1")
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*\s*$", re.MULTILINE)
ELSEWHERE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)


def spaces(match: re.Match) -> str:
    return re.sub(r"[^\n]", " ", match.group())


def anchors(markdown: str) -> set[str]:
    """The anchors that a renderer makes of the headings."""
    found: set[str] = set()
    for heading in HEADING.findall(FENCE.sub(spaces, markdown)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        number, unique = 0, slug
        while unique in found:
            number += 1
            unique = f"{slug}-{number}"
        found.add(unique)
    return found


def names_something(path: Path, name: str) -> bool:
    """True when the source has a function, type, constant or target of that name."""
    name = re.escape(name.split("::")[-1])
    text = path.read_text(errors="replace")
    if path.suffix in (".cc", ".h"):
        code = code_only(text)
        return re.search(rf"(?<![\w~]){name}\s*\(|\b(?:class|struct|enum class|enum|using)\s+{name}\b|\b{name}\s*[={{]", code) is not None
    if path.suffix == ".py":
        return re.search(rf"^\s*(?:async\s+)?(?:def|class)\s+{name}\b", text, re.MULTILINE) is not None
    return re.search(rf"\b{name}\b", text) is not None


def check_target(root: Path, document: Path, target: str) -> str | None:
    if ELSEWHERE.match(target):
        return None
    name, _, fragment = target.partition("#")
    name = name.replace("%20", " ")
    path = document if not name else (root / name.lstrip("/") if name.startswith("/") else document.parent / name)
    if not path.exists():
        return f"'{target}' leads nowhere: there is no {name}"
    if root not in path.resolve().parents and path.resolve() != root:
        return f"'{target}' leads out of the checkout"
    if not fragment:
        return None
    if path.suffix == ".md":
        if fragment not in anchors(path.read_text()):
            return f"'{target}': {path.name} has no heading #{fragment}"
    elif path.is_file() and not names_something(path, fragment):
        return f"'{target}': {path.name} has nothing that is called {fragment}"
    return None


def check_document(root: Path, document: Path) -> list[str]:
    text = FENCE.sub(spaces, document.read_text())
    problems = []

    def report(at: int, problem: str | None) -> None:
        if problem:
            problems.append(f"{document.relative_to(root)}:{text.count(chr(10), 0, at) + 1}: {problem}")

    for match in IN_CODE.finditer(text):
        report(match.start(), check_target(root, root / "README.md", f"{match.group(1)}#{match.group(2)}"))
    prose = CODE_SPAN.sub(lambda match: re.sub(r"[\[\]()]", " ", match.group()), text)
    for pattern in (LINK, REFERENCE):
        for match in pattern.finditer(prose):
            report(match.start(), check_target(root, document, match.group(1)))
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root.resolve()
    documents = tree_files(root, "*.md")
    problems = [problem for document in documents for problem in check_document(root, document)]
    if not documents:
        problems.append(f"{root}: no *.md found")
    for problem in problems:
        print(problem)
    print(f"check_docs: {len(documents)} documents, {len(problems)} findings")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
