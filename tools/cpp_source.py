"""Reads C++ well enough for the checks of the tree: text without comments and literals, functions and their lines.

Not a parser: it follows braces. It relies on the tree being formatted by clang-format and compiled without warnings.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^()\s\\]*)\(.*?\)(?P=tag)"|"(?:[^"\\\n]|\\.)*"|(?<![0-9A-Za-z_])\'(?:[^\'\\\n]|\\.)+\'',
    re.DOTALL,
)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE)
_TYPE = re.compile(r"\b(class|struct|union|enum)\b")
_NAME = re.compile(r"(~?[A-Za-z_][A-Za-z0-9_]*|operator[^\s(]+|operator\(\))\s*\(")
_MEMBER_INIT = re.compile(r"\)[\w\s]*:(?!:)")


@dataclass(frozen=True)
class Function:
    name: str  # without its class
    first_line: int
    last_line: int

    @property
    def lines(self) -> int:
        return self.last_line - self.first_line + 1


def blank(match: re.Match) -> str:
    return "".join("\n" if char == "\n" else " " for char in match.group())


def code_only(text: str) -> str:
    """The text with comments, string and character literals as spaces; lines stay where they are."""
    return _TOKEN.sub(blank, text)


def comments_only(text: str) -> dict[int, str]:
    """Line comments by the line on which they stand."""
    return {
        text.count("\n", 0, match.start()) + 1: match.group()
        for match in _TOKEN.finditer(text)
        if match.group().startswith("//")
    }


def functions(text: str) -> list[Function]:
    """Every function with a body outside other functions, in order."""
    code = _DIRECTIVE.sub(blank, code_only(text))
    found: list[Function] = []
    blocks: list[tuple[str, str, int]] = []  # kind, name, first line
    header_start = 0
    for match in re.finditer(r"[{};]", code):
        at, char = match.start(), match.group()
        header = code[header_start:at]
        inside = any(kind == "function" for kind, _, _ in blocks)
        if char == ";":
            if not inside and header.count("(") <= header.count(")"):
                header_start = at + 1
        elif char == "{":
            kind = "inner" if inside else _kind(header)
            first = code.count("\n", 0, header_start + len(header) - len(header.lstrip())) + 1
            blocks.append((kind, _name(header), first))
            if kind not in ("inner", "member-init"):
                header_start = at + 1
        elif blocks:
            kind, name, first = blocks.pop()
            if kind == "function":
                found.append(Function(name, first, code.count("\n", 0, at) + 1))
            if kind not in ("inner", "member-init"):
                header_start = at + 1
    return found


def _kind(header: str) -> str:
    if _MEMBER_INIT.search(header) and re.search(r"[\w>]\s*$", header) and not header.rstrip().endswith(
        ("const", "noexcept", "override")
    ):
        return "member-init"  # a_{1} in front of a constructor's body
    if re.search(r"\bnamespace\b", header):
        return "scope"
    if _TYPE.search(re.sub(r"template\s*<[^{]*?>", "", header)) and not re.search(r"\)\s*(const|noexcept|override|\s)*$", header):
        return "scope"
    return "function" if "(" in header else "value"


def _name(header: str) -> str:
    match = _NAME.search(re.sub(r"\[\[.*?\]\]|\b(alignas|decltype|requires|explicit|noexcept)\s*\([^()]*\)", "", header))
    return match.group(1) if match else ""


def tree_files(root: Path, *patterns: str) -> list[Path]:
    """Files of the checkout that git does not ignore, by glob; without git, all that do not lie in build or .cache."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    done = subprocess.run(command, capture_output=True) if (root / ".git").exists() else None
    if done is not None and done.returncode == 0:
        names = [name for name in done.stdout.decode().split("\0") if name]
        return sorted({root / name for name in names if (root / name).is_file()})
    found = {path for pattern in patterns for path in root.rglob(pattern) if path.is_file()}
    return sorted(path for path in found if not {"build", ".cache"} & set(path.relative_to(root).parts))
