"""The command line of each test server, and where each says that it is ready. Everything listens on 127.0.0.1 only."""

from __future__ import annotations

import json
import random
import re
import socket
from dataclasses import asdict, dataclass, field
from pathlib import Path

# In the order in which they start; they stop in the opposite one.
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
REQUIRED = ("etcd", "kube-apiserver")
DEFAULT = ("etcd", "kube-apiserver", "kube-controller-manager", "kwok")
REPOSITORY = Path(__file__).resolve().parents[2]

# Below the range that the kernel gives to outgoing connections (32768 and up): a client that keeps trying the port of a
# stopped server could otherwise be given that very port and connect to itself.
_PORTS = range(20000, 30000)


@dataclass
class Options:
    """What a cluster is made of. `extra_flags` maps a component to flags appended to its own, which override them."""

    components: tuple[str, ...] = DEFAULT
    min_request_timeout: int | None = None  # seconds; the API server ends a watch between 1x and 2x of it
    etcd_compaction_interval: str | None = None  # a Go duration; "0" for none. The API server compacts every 5m
    scheduler_config: str | None = None  # text of a KubeSchedulerConfiguration, YAML or JSON, without clientConnection
    kwok_stages: str | None = None  # path of kwok stages; tests/cluster/kwok.yaml where None
    extra_flags: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unknown = (set(self.components) | set(self.extra_flags)) - set(COMPONENTS)
        if unknown:
            raise ValueError(f"no such component: {', '.join(sorted(unknown))}; there are {', '.join(COMPONENTS)}")
        wanted = {*REQUIRED, *self.components}
        self.components = tuple(name for name in COMPONENTS if name in wanted)

    def to_json(self) -> dict:
        return asdict(self)


@dataclass(frozen=True)
class Layout:
    """The files and ports of one cluster."""

    folder: Path
    ports: dict[str, int]

    @property
    def pki(self) -> Path:
        return self.folder / "pki"

    @property
    def etcd_url(self) -> str:
        return f"http://127.0.0.1:{self.ports['etcd']}"

    @property
    def server_url(self) -> str:
        return f"https://127.0.0.1:{self.ports['kube-apiserver']}"

    def log(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.log"

    def kubeconfig(self, user: str) -> Path:
        return self.folder / f"{user}.kubeconfig"


def free_ports() -> dict[str, int]:
    """A port for each component and for etcd's peers that nobody listens on now."""
    ports: dict[str, int] = {}
    for name in (*COMPONENTS, "etcd-peer"):
        while name not in ports:
            port = random.SystemRandom().choice(_PORTS)
            with socket.socket() as probe:
                try:
                    probe.bind(("127.0.0.1", port))
                except OSError:
                    continue
            if port not in ports.values():
                ports[name] = port
    return ports


def health_url(name: str, layout: Layout) -> str:
    scheme = "http" if name in ("etcd", "kwok") else "https"
    path = {"etcd": "health", "kube-apiserver": "readyz"}.get(name, "healthz")
    return f"{scheme}://127.0.0.1:{layout.ports[name]}/{path}"


def flags(name: str, layout: Layout, options: Options) -> list[str]:
    """The arguments of component `name`; writes the configuration file that they refer to, if any."""
    return [*_BUILDERS[name](layout, options), *options.extra_flags.get(name, [])]


def _etcd(layout: Layout, _options: Options) -> list[str]:
    peer = f"http://127.0.0.1:{layout.ports['etcd-peer']}"
    return [
        "--name=test",
        f"--data-dir={layout.folder / 'etcd'}",
        f"--listen-client-urls={layout.etcd_url}",
        f"--advertise-client-urls={layout.etcd_url}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=test={peer}",
        "--unsafe-no-fsync",
        "--quota-backend-bytes=8589934592",
        "--log-level=warn",
    ]


def _kube_apiserver(layout: Layout, options: Options) -> list[str]:
    pki = layout.pki
    result = [
        f"--etcd-servers={layout.etcd_url}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={layout.ports['kube-apiserver']}",
        f"--tls-cert-file={pki / 'apiserver.crt'}",
        f"--tls-private-key-file={pki / 'apiserver.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki / 'sa.pub'}",
        f"--service-account-signing-key-file={pki / 'sa.key'}",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--disable-admission-plugins=ServiceAccount",  # no pod needs a token here, nor a controller that makes accounts
        "--endpoint-reconciler-type=none",  # a loopback address may not stand in Endpoints
        "--allow-privileged=true",
        "--profiling=false",
    ]
    if options.min_request_timeout is not None:
        result.append(f"--min-request-timeout={options.min_request_timeout}")
    if options.etcd_compaction_interval is not None:
        result.append(f"--etcd-compaction-interval={options.etcd_compaction_interval}")
    return result


def _serving(name: str, layout: Layout) -> list[str]:
    """Address, certificate and delegated authorization of a component that serves health and metrics itself."""
    kubeconfig = layout.kubeconfig(name)
    return [
        "--bind-address=127.0.0.1",
        f"--secure-port={layout.ports[name]}",
        f"--tls-cert-file={layout.pki / 'apiserver.crt'}",
        f"--tls-private-key-file={layout.pki / 'apiserver.key'}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
    ]


def _kube_controller_manager(layout: Layout, options: Options) -> list[str]:
    result = [
        f"--kubeconfig={layout.kubeconfig('kube-controller-manager')}",
        *_serving("kube-controller-manager", layout),
        f"--service-account-private-key-file={layout.pki / 'sa.key'}",
        f"--root-ca-file={layout.pki / 'ca.crt'}",
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        "--kube-api-qps=2000",
        "--kube-api-burst=4000",
    ]
    if "kwok" not in options.components:  # nobody sends heartbeats: every node would be lost after 50 s
        result.append("--controllers=*,-node-lifecycle-controller")
    return result


def _kube_scheduler(layout: Layout, options: Options) -> list[str]:
    path = layout.folder / "kube-scheduler.yaml"
    path.write_text(scheduler_config(options.scheduler_config or "", layout.kubeconfig("kube-scheduler")))
    return [f"--config={path}", *_serving("kube-scheduler", layout)]


def scheduler_config(text: str, kubeconfig: Path) -> str:
    """`text`, a KubeSchedulerConfiguration or nothing, completed by what the test cluster sets.

    That is the connection to its server with the client's limits lifted, and no leader election. Raises ValueError
    where `text` sets these itself.
    """
    ours: dict = {
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 100000, "burst": 100000},
        "leaderElection": {"leaderElect": False},
    }
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    if text.lstrip().startswith("{"):
        given = json.loads(text)
    else:  # no YAML parser in the standard library: top-level keys are enough to append our own
        given = dict.fromkeys(re.findall(r"^([A-Za-z]+):", text, re.MULTILINE))
    clash = sorted(set(ours) & set(given))
    if clash:
        raise ValueError(f"leave {' and '.join(clash)} out of the scheduler configuration: the test cluster sets them")
    added = {**{key: value for key, value in header.items() if key not in given}, **ours}
    if text.lstrip().startswith("{"):
        return json.dumps({**given, **added}, indent=1)
    return text.rstrip() + "\n" + "".join(f"{key}: {json.dumps(value)}\n" for key, value in added.items())


def _kwok(layout: Layout, options: Options) -> list[str]:
    stages = options.kwok_stages or str(REPOSITORY / "tests" / "cluster" / "kwok.yaml")
    return [
        f"--kubeconfig={layout.kubeconfig('admin')}",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        "--node-ip=127.0.0.1",
        "--node-lease-duration-seconds=40",
        f"--server-address=127.0.0.1:{layout.ports['kwok']}",
        f"--config={stages}",
    ]


_BUILDERS = {
    "etcd": _etcd,
    "kube-apiserver": _kube_apiserver,
    "kube-controller-manager": _kube_controller_manager,
    "kube-scheduler": _kube_scheduler,
    "kwok": _kwok,
}
