"""Draw: random choices that are the same on every machine and every version of Python.

Only random() itself is promised to stay as it is for a seed; choice() and sample() are not, so they are not used.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    def __init__(self, seed: int):
        self._random = random.Random(seed).random

    def below(self, bound: int) -> int:
        """0 to bound - 1, each as likely."""
        return int(self._random() * bound)

    def between(self, first: int, last: int) -> int:
        return first + self.below(last - first + 1)

    def chance(self, probability: float) -> bool:
        return self._random() < probability

    def pick(self, items: Sequence[T]) -> T:
        """One of the items; one that stands there twice is twice as likely."""
        return items[self.below(len(items))]

    def some(self, items: Sequence[T], count: int) -> list[T]:
        """`count` different items, or all where there are fewer, in the order in which they stand."""
        left = list(range(len(items)))
        taken = [left.pop(self.below(len(left))) for _ in range(min(count, len(items)))]
        return [items[index] for index in sorted(taken)]
