"""Cluster: a real Kubernetes control plane on loopback, for tests, benches and a look around.

    with Cluster(components=("etcd", "kube-apiserver", "kube-scheduler")) as cluster:
        cluster.nodes(4, gpus=8)
        print(cluster.kubectl("get", "nodes"))
        cluster.kill("kube-apiserver")   # the same port, certificates and data when it starts again
        cluster.start("kube-apiserver")

Any number of clusters can run at once, each with a folder and ports of its own. One that is not `detached` ends with
this program, however this program ends; a detached one runs until `close()` from any program that names its folder.
"""

from __future__ import annotations

import atexit
import base64
import http.client
import json
import shutil
import signal
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from testcluster import certificates, components
from testcluster.components import COMPONENTS, REPOSITORY, Layout, Options
from testcluster.nodes import create_nodes
from testcluster.processes import ServerProcess
from testcluster.rest import ApiClient

_DIRECT = urllib.request.ProxyHandler({})  # loopback never goes through a proxy that the environment names
READY_TIMEOUT_S = 90.0  # about five seconds are needed; slow machines under load need more
STOP_GRACE_S = 10.0


class ClusterError(Exception):
    """A server that did not start or a command that failed; the message holds the end of its log or its output."""


class BinariesMissing(ClusterError):
    """The test servers are not built; the message says how to get them."""


def find_binaries(*, build: bool = False) -> Path:
    """The folder with the test servers. Builds them (minutes) only if asked to; BinariesMissing otherwise."""
    script = [str(REPOSITORY / "tools" / "test_servers.sh"), *([] if build else ["--if-built"])]
    done = subprocess.run(script, stdout=subprocess.PIPE, text=True)
    if done.returncode == 77:
        raise BinariesMissing(
            "the test servers (etcd, kube-apiserver, ...) are not built: run tools/test_servers.sh (needs Go; some "
            "minutes, once), or set KUBEBUILDER_ASSETS to a folder that holds them"
        )
    if done.returncode != 0:
        raise ClusterError("tools/test_servers.sh failed; what it said is above")
    return Path(done.stdout.split()[-1])


class Cluster:
    """One test cluster in one folder. Not thread-safe, save `api`.

    Invariants: 1. a process that we started is in `state.json` before anything else happens, so that close() finds it;
    2. only processes written there are ever signalled, and only while pid, start time and boot agree.
    """

    def __init__(
        self, folder: Path | str | None = None, *, detached: bool = False, binaries: Path | None = None, **options
    ):
        """A cluster in `folder`, found again where one is there (options are then its own), or in a temporary one.

        close() removes the folder. `options` are those of components.Options. Starts nothing yet.
        """
        self._temporary = folder is None
        if detached and self._temporary:
            raise ValueError("a detached cluster needs a folder by which it can be found again")
        if folder is not None and _is_of_something_else(Path(folder)):
            raise ValueError(f"{folder} holds something else than a test cluster; close() would remove it")
        folder = Path(folder or tempfile.mkdtemp(prefix="berth-cluster-")).resolve()
        self._detached = detached
        self._binaries = binaries
        self._processes: dict[str, ServerProcess] = {}
        self._handles_sigterm = False
        if (folder / "state.json").exists():
            self._load(folder)
        else:
            self.options = Options(**options)
            self.layout = Layout(folder, components.free_ports())
        self._api: ApiClient | None = None

    # -- life

    def __enter__(self) -> Cluster:
        """up(), with SIGTERM turned into SystemExit meanwhile, so that the folder goes away too."""
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _exit_on_signal)
            self._handles_sigterm = True
        try:
            return self.up()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_exception) -> None:
        self.close()
        if self._handles_sigterm:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._handles_sigterm = False

    def up(self) -> Cluster:
        """Starts what is not running and returns when all of it is ready, or stops what it started and raises."""
        already = [name for name in COMPONENTS if self.alive(name)]
        if not self._detached:
            atexit.register(self.close)
        try:
            for folder in (self.layout.folder, self.layout.folder / "logs"):
                folder.mkdir(parents=True, exist_ok=True)
            self._save()
            self._write_credentials()
            self.start("etcd", "kube-apiserver")
            self.start(*self.options.components, wait=False)
            self._set_up_berth()
            self.wait_ready(*self.options.components)
        except BaseException:
            for name in reversed(COMPONENTS):
                if name not in already:
                    self.kill(name)
            raise
        return self

    def close(self, *, keep_data: bool = False) -> None:
        """Ends every process and removes the folder, unless its data are to be kept. Does nothing the second time."""
        atexit.unregister(self.close)
        if self._api is not None:
            self._api.close()
        for name in reversed(COMPONENTS):
            self._end(name, STOP_GRACE_S if keep_data else 0)
        if not keep_data and (self._temporary or (self.layout.folder / "state.json").exists()):
            shutil.rmtree(self.layout.folder, ignore_errors=True)

    # -- components

    def start(self, *names: str, wait: bool = True) -> None:
        """Starts these components in order, each only when the one before is ready; those that run are left alone."""
        for name in names:
            if not self.alive(name):
                self._start(name)
            if wait:
                self.wait_ready(name)

    def stop(self, name: str, *, grace_s: float = STOP_GRACE_S) -> None:
        """Asks a component to end (SIGTERM) and kills it when it has not after `grace_s`; returns when it is gone."""
        self._end(name, grace_s)

    def kill(self, name: str) -> None:
        """Ends a component at once (SIGKILL), as a crash would; returns when it is gone."""
        self._end(name, 0)

    def restart(self, name: str, *, kill: bool = False) -> None:
        """Stops or kills a component and starts it again on the same port and data; returns when it is ready."""
        self._end(name, 0 if kill else STOP_GRACE_S)
        self.start(name)

    def alive(self, name: str) -> bool:
        process = self._processes.get(name)
        return process is not None and process.alive()

    def wait_ready(self, *names: str, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Waits until these components (all that were asked for, without names) say that they are healthy."""
        deadline = time.monotonic() + timeout_s
        for name in names or self.options.components:
            while not self._healthy(name):
                if not self.alive(name):
                    raise ClusterError(f"{name} ended while starting; {self.log_tail(name)}")
                if time.monotonic() > deadline:
                    raise ClusterError(f"{name} was not ready after {timeout_s:.0f} s; {self.log_tail(name)}")
                time.sleep(0.05)

    def log_tail(self, name: str, lines: int = 15) -> str:
        """The end of a component's log, for messages."""
        log = self.layout.log(name)
        text = log.read_text(errors="replace").splitlines()[-lines:] if log.exists() else []
        return f"the last lines of {log}:\n  " + "\n  ".join(text or ["(nothing)"])

    # -- use

    @property
    def folder(self) -> Path:
        return self.layout.folder

    @property
    def server_url(self) -> str:
        return self.layout.server_url

    @property
    def admin_kubeconfig(self) -> Path:
        """May do everything."""
        return self.layout.kubeconfig("admin")

    @property
    def berth_kubeconfig(self) -> Path:
        """A token, good for 24 hours, of service account berth-system/berth, with the rights in deploy/rbac.yaml."""
        return self.layout.kubeconfig("berth")

    @property
    def binaries(self) -> Path:
        if self._binaries is None:
            self._binaries = find_binaries()
        return self._binaries

    @property
    def api(self) -> ApiClient:
        """A quick client as admin; any thread may use it."""
        if self._api is None:
            self._api = ApiClient(self.layout.ports["kube-apiserver"], self.layout.pki)
        return self._api

    def kubectl(self, *args: str, input: str | None = None, kubeconfig: Path | None = None) -> str:
        """Runs kubectl as admin, or with another kubeconfig; its standard output, or ClusterError with what it said."""
        own = [f"--kubeconfig={kubeconfig or self.admin_kubeconfig}", f"--cache-dir={self.folder / 'kubectl-cache'}"]
        command = [str(self.binaries / "kubectl"), *own, *args]
        done = subprocess.run(command, input=input, capture_output=True, text=True)
        if done.returncode != 0:
            raise ClusterError(f"kubectl {' '.join(args)}: {(done.stderr or done.stdout).strip()}")
        return done.stdout

    def nodes(self, count: int, **how) -> list[str]:
        """Creates `count` simulated nodes that can be scheduled on when this returns; see nodes.create_nodes()."""
        return create_nodes(self.api, count, **how)

    def compact(self) -> int:
        """Forgets etcd's history up to now; the revision. A list's continue token from before then gets 410 Gone.

        The API server answers a *watch* from its own memory: for 410 there, restart("kube-apiserver") as well. It then
        knows nothing older than its start, and a watch from an older version ends with an ERROR event of code 410.
        """
        key = base64.b64encode(b"/").decode()
        revision = int(self._etcd("kv/range", {"key": key, "keys_only": True, "limit": 1})["header"]["revision"])
        self._etcd("kv/compaction", {"revision": str(revision), "physical": True})
        return revision

    def stored(self, key: str) -> dict:
        """The custom resource that etcd holds at /registry/`key`, as it is stored: JSON in the storage version."""
        found = self._etcd("kv/range", {"key": base64.b64encode(f"/registry/{key}".encode()).decode()})
        return json.loads(base64.b64decode(found["kvs"][0]["value"]))

    def environment(self) -> dict[str, str]:
        """What a shell needs to use the cluster."""
        return {"KUBECONFIG": str(self.admin_kubeconfig), "BERTH_KUBECONFIG": str(self.berth_kubeconfig)}

    # -- inside

    def _load(self, folder: Path) -> None:
        state = json.loads((folder / "state.json").read_text())
        self.options = Options(**state["options"])
        self.layout = Layout(folder, state["ports"])
        self._processes = {name: ServerProcess(**fields) for name, fields in state["processes"].items()}

    def _save(self) -> None:
        state = {
            "options": self.options.to_json(),
            "ports": self.layout.ports,
            "processes": {name: process.to_json() for name, process in self._processes.items()},
        }
        path = self.layout.folder / "state.json"
        path.with_suffix(".new").write_text(json.dumps(state, indent=1))
        path.with_suffix(".new").rename(path)

    def _start(self, name: str) -> None:
        argv = [str(self.binaries / name), *components.flags(name, self.layout, self.options)]
        self._processes[name] = ServerProcess.start(argv, self.layout.log(name), outlives_us=self._detached)
        if name not in self.options.components:
            self.options = Options(**{**self.options.to_json(), "components": (*self.options.components, name)})
        self._save()

    def _end(self, name: str, grace_s: float) -> None:
        process = self._processes.pop(name, None)
        if process is None:
            return
        process.end(grace_s=grace_s)
        self._save()

    def _healthy(self, name: str) -> bool:
        tls = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=str(self.layout.pki / "ca.crt")))
        try:
            urllib.request.build_opener(_DIRECT, tls).open(components.health_url(name, self.layout), timeout=5).close()
        except (OSError, http.client.HTTPException):
            return False
        # The namespace is made just after the API server calls itself ready.
        return name != "kube-apiserver" or self.api.raw("GET", "/api/v1/namespaces/default")[0] == 200

    def _write_credentials(self) -> None:
        certificates.make_certificates(self.layout.pki)
        for user in certificates.CLIENTS:
            certificates.write_kubeconfig(
                self.layout.kubeconfig(user), server=self.server_url, pki=self.layout.pki, user=user
            )

    def _set_up_berth(self) -> None:
        """Berth's account with the rights it has in production, and a token for it."""
        self.kubectl("apply", "--server-side", "--validate=false", "-f", str(REPOSITORY / "deploy" / "rbac.yaml"))
        token = self.kubectl("create", "token", "berth", "-n", "berth-system", "--duration=24h").strip()
        certificates.write_kubeconfig(
            self.berth_kubeconfig, server=self.server_url, pki=self.layout.pki, user="berth", token=token
        )

    def _etcd(self, call: str, body: dict) -> dict:
        """One call of etcd's v3 API through its HTTP gateway; bytes and 64-bit numbers are strings there."""
        request = urllib.request.Request(f"{self.layout.etcd_url}/v3/{call}", data=json.dumps(body).encode())
        with urllib.request.build_opener(_DIRECT).open(request, timeout=30) as answer:
            return json.load(answer)


def _is_of_something_else(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir()) and not (folder / "state.json").exists()


def _exit_on_signal(number: int, _frame) -> None:
    raise SystemExit(128 + number)
