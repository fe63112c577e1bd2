"""Berth: one `berth scheduler` process, which dies with this program; and its kubeconfigs.

    berth = Berth(folder, cluster.berth_kubeconfig, config={"leaderElection": {"leaderElect": False}})
    berth.start()          # returns when /readyz says so
    berth.kill()           # a crash; start() again is the same replica, started anew
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from . import TOOLS

WAIT_S = 90.0  # a bound for hangs, far beyond what anything here takes; no test is about speed
# futex, poll, ppoll, epoll_wait, epoll_pwait, rt_sigtimedwait, restart_syscall on x86-64
_WAITING_CALLS = {"202", "7", "271", "232", "281", "128", "219"}
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def berth_binary() -> Path | None:
    """The program under test: $BERTH_BIN/berth, or the release build of this checkout; None where it is not built."""
    folder = Path(os.environ.get("BERTH_BIN") or TOOLS.parent / "build" / "release" / "bin")
    return folder / "berth" if (folder / "berth").exists() else None


def wait_until(what: str, holds: Callable[[], object], timeout_s: float = WAIT_S, every_s: float = 0.05):
    """The first true answer of `holds`; AssertionError naming `what` when there is none in time."""
    deadline = time.monotonic() + timeout_s
    while not (answer := holds()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s:.0f} s: {what() if callable(what) else what}")
        time.sleep(every_s)
    return answer


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def write_kubeconfig(path: Path, server: str, user: dict, ca: Path | None = None) -> Path:
    """A kubeconfig with this `user` entry; JSON, which is YAML."""
    cluster = {"server": server}
    if ca is not None:
        cluster["certificate-authority-data"] = base64.b64encode(ca.read_bytes()).decode()
    path.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": user}],
    }))  # fmt: skip
    return path


def token_of(kubeconfig: Path) -> str:
    return re.search(r"token: (\S+)", kubeconfig.read_text()).group(1)


class Berth:
    """One replica. Its log goes on in one file over all its starts."""

    _numbers = iter(range(1_000_000))

    def __init__(self, folder: Path, kubeconfig: Path, *, config: dict | None = None, args: tuple = (), env=None):
        number = next(self._numbers)
        self.config_file = folder / f"berth-{number}.yaml"
        self.log_file = folder / f"berth-{number}.log"
        given = {"leaderElection": {"leaderElect": False}, **(config or {})}
        given.setdefault("http", {}).setdefault("port", 0)
        header = {"apiVersion": "berth.dev/v1alpha1", "kind": "BerthConfiguration"}
        self.config_file.write_text(json.dumps({**header, **given}))
        self._args = ["--kubeconfig", str(kubeconfig), "--log-format", "json", "--log-level", "debug", *args]
        self._env = {**os.environ, **(env or {})}
        self._process: subprocess.Popen | None = None
        self._log_from = 0
        self.address = ""

    def start(self, *, ready: bool = True) -> Berth:
        """Starts it; returns when it listens and, unless told otherwise, is ready (a standby is)."""
        self._log_from = self.log_file.stat().st_size if self.log_file.exists() else 0
        command = [str(berth_binary()), "scheduler", "--config", str(self.config_file), *self._args]
        with self.log_file.open("ab") as out:
            self._process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command], stdin=subprocess.DEVNULL,
                                             stdout=out, stderr=out, env=self._env)  # fmt: skip
        started = wait_until("berth says that it starts", lambda: self.said("starting") or self._ended())
        self.address = started[0]["http"]
        if ready:
            wait_until(lambda: f"berth is ready: {self.get('/readyz')}; its log ends\n{self.log_file.read_text()[-3000:]}",
                       lambda: self.get("/readyz")[0] == 200 or self._ended())
            wait_until("it schedules or waits", lambda: self.said("scheduling") or self.said("waiting for the lease"))
        return self

    def _ended(self) -> bool:
        if self._process.poll() is None:
            return False
        raise AssertionError(f"berth ended with {self._process.returncode}: {self.log_file.read_text()[-2000:]}")

    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def terminate(self) -> int:
        """SIGTERM; its exit status."""
        self._process.terminate()
        return self._process.wait(timeout=30)

    def pause(self) -> None:
        """Stops it while all its threads wait.

        A thread that stops in the microseconds between its last look at the lease and its write has to write when it
        goes on: nothing in a process can prevent that, and it is not what the tests are about.
        """
        while True:
            self._process.send_signal(signal.SIGSTOP)
            wait_until("it has stopped", self._stopped)
            if all(self._waits(thread) for thread in Path(f"/proc/{self._process.pid}/task").iterdir()):
                return
            self.resume()
            time.sleep(0.003)

    def _stopped(self) -> bool:
        return Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    @staticmethod
    def _waits(thread: Path) -> bool:
        """In a system call that only waits; see proc(5), /proc/[pid]/syscall."""
        return (thread / "syscall").read_text().split()[0] in _WAITING_CALLS

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def memory_peak_bytes(self) -> int:
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s*(\d+) kB", status).group(1)) * 1024

    def entries(self, *, all_starts: bool = False) -> list[dict]:
        """Its log since the latest start. A line that is no JSON, a half-written last one excepted, is an error."""
        with self.log_file.open("rb") as log:
            log.seek(0 if all_starts else self._log_from)
            lines = log.read().split(b"\n")[:-1]
        return [json.loads(line) for line in lines]

    def said(self, message: str, **fields: str) -> list[dict]:
        wanted = fields.items()
        return [one for one in self.entries() if message in one["msg"] and wanted <= one.items()]

    def get(self, path: str) -> tuple[int, str]:
        """GET on its own port; (0, why) while there is no answer."""
        try:
            with _DIRECT.open(f"http://{self.address}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except (OSError, http.client.HTTPException) as error:
            return 0, str(error)

    def metrics(self) -> dict[str, float]:
        """/metrics by sample: 'berth_binds_total{result="bound"}' -> 3. Everything that is no sample is a comment."""
        status, text = self.get("/metrics")
        if status != 200:
            return {}
        samples = [line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#")]
        return {name: float(value) for name, value in samples}

    def metric(self, name: str) -> float:
        """The sum of all samples of one family, or of those whose name and labels begin so."""
        return sum(value for sample, value in self.metrics().items() if sample.startswith(name))
