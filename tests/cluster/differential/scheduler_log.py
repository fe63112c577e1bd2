"""SchedulerLog: kube-scheduler's log as it grows. It alone names the feasible nodes, and says what the scheduler knows.

The scheduler learns of every kind of object through a watch of its own, so an answer of the API server says nothing
about what the scheduler has seen; its log lines do.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

# What has to be logged: verdicts and scores, caches, preemption; everything else stays at -v=2.
FLAGS = ("--v=2", "--vmodule=schedule_one=10,eventhandlers=4,preemption=6,executor=6,volume_binding=5")
WAIT_S = 30.0  # a bound for hangs; everything takes milliseconds

_FIELD = re.compile(r'(\w+)=(?:"((?:[^"\\]|\\.)*)"|(\S+))')


class SchedulerLog:
    def __init__(self, path: Path):
        self._file = path.open("rb")
        self._rest = b""
        self._unread: list[str] = []

    def close(self) -> None:
        self._file.close()

    def _more(self) -> None:
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        self._unread += [line.decode(errors="replace") for line in lines]

    def skip(self) -> None:
        """Forgets what was written so far."""
        self._more()
        self._unread.clear()

    def wait(self, *messages: str, timeout_s: float = WAIT_S, **fields: str) -> tuple[str, dict[str, str], list[str]]:
        """The first line with one of these messages and these fields: (message, its fields, the lines before it)."""
        wanted = [f'{name}="{value}"' for name, value in fields.items()]
        deadline = time.monotonic() + timeout_s
        looked_at = 0
        while True:
            for index in range(looked_at, len(self._unread)):
                line = self._unread[index]
                found = next((one for one in messages if f'"{one}"' in line), None)
                if found and all(part in line for part in wanted):
                    before = self._unread[:index]
                    del self._unread[: index + 1]
                    return found, {name: text or word for name, text, word in _FIELD.findall(line)}, before
            looked_at = len(self._unread)
            if time.monotonic() > deadline:
                raise TimeoutError(f"kube-scheduler did not log {' or '.join(messages)} {fields} in {timeout_s:.0f} s")
            time.sleep(0.001)
            self._more()

    def wait_all(self, message: str, name: str, values: set[str]) -> None:
        """Returns when there was a line with `message` for each of these values of the field `name`."""
        left = set(values)
        while left:
            left.discard(self.wait(message)[1].get(name, ""))
