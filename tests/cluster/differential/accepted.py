"""The differences from kube-scheduler that Berth means to have. docs/differences.md explains each by its name."""

from __future__ import annotations

import re
from collections.abc import Callable

Pairs = dict[str, tuple[object, object]]  # what differs -> (kube-scheduler's, Berth's)


def _contradictory_match_fields(pairs: Pairs) -> bool:
    kube, berth = pairs.get("message", ("", ""))
    text = r"0/(\d+) nodes are available: pod affinity terms conflict\."
    count = re.match(text, kube)
    own = rf"0/\d+ nodes are available: {count[1]} node\(s\) didn't satisfy plugin\(s\) \[NodeAffinity\]\." if count else ""
    return bool(count) and bool(re.match(own, berth)) and set(pairs) == {"message"}


ACCEPTED: dict[str, Callable[[Pairs], bool]] = {
    "matchFields that contradict each other": _contradictory_match_fields,
}


def name_of(pairs: Pairs) -> str | None:
    """The accepted difference that these are, all of them; None where one is not accepted."""
    return next((name for name, holds in ACCEPTED.items() if holds(pairs)), None)
