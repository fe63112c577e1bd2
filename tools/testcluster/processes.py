"""Server processes that are ended exactly, and never outlive their owner by accident.

A process is named by its pid, its start time and the boot it belongs to; a pid alone may be a stranger's by now.
Signals go through a pidfd that was opened before the start time was compared, so that a recycled pid is never hit.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

# "Parent" means the thread that started the process (prctl(2), PR_SET_PDEATHSIG), so all are started by one thread that
# lives as long as this interpreter.
_starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="start-server")
_children: dict[int, subprocess.Popen] = {}


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _start_ticks(pid: int) -> int | None:
    """Start time of a running process in clock ticks since boot; None when there is none or it is a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat[stat.rindex(")") + 2 :].split()  # the name before it may hold anything
    return None if fields[0] in "ZX" else int(fields[19])


@dataclass(frozen=True)
class ServerProcess:
    """One started server, as it can be written to a file and found again by another program."""

    pid: int
    start_ticks: int
    boot_id: str

    @classmethod
    def start(cls, argv: list[str], log: Path, *, outlives_us: bool) -> ServerProcess:
        """Starts `argv` with its output appended to `log`. Unless it `outlives_us`, the kernel kills it when we die."""
        if not outlives_us:
            argv = ["setpriv", "--pdeathsig", "KILL", *argv]

        def spawn() -> subprocess.Popen:
            with log.open("ab") as out:
                return subprocess.Popen(
                    argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
                )

        child = _starter.submit(spawn).result()
        ticks = _start_ticks(child.pid)
        _children[child.pid] = child
        return cls(child.pid, -1 if ticks is None else ticks, _boot_id())

    def alive(self) -> bool:
        child = _children.get(self.pid)
        if child is not None:
            child.poll()  # reap it
        return self.boot_id == _boot_id() and _start_ticks(self.pid) == self.start_ticks

    def end(self, *, grace_s: float) -> None:
        """Ends it: SIGTERM, and after `grace_s` seconds SIGKILL; SIGKILL at once when 0. Returns when it is gone."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            if not self.alive():
                return
            for sig, wait_s in [(signal.SIGTERM, grace_s), (signal.SIGKILL, 10.0)]:
                if wait_s <= 0:
                    continue
                signal.pidfd_send_signal(handle, sig)
                if select.select([handle], [], [], wait_s)[0]:
                    break
        except ProcessLookupError:
            pass
        finally:
            os.close(handle)
            child = _children.pop(self.pid, None)
            if child is not None:
                child.wait()

    def to_json(self) -> dict:
        return asdict(self)
