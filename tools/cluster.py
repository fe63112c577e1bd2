#!/usr/bin/env python3
"""A real Kubernetes control plane on this machine, on loopback only: for `./dev cluster`, tests and benches.

  cluster.py up [--nodes 4] [--with kube-scheduler] [--without kwok]   start; builds the servers where they are missing
  cluster.py env        export lines:  eval "$(./dev cluster env)"
  cluster.py status     what runs, where it logs
  cluster.py nodes 16 --gpus 8 --prefix big-                           add simulated GPU nodes
  cluster.py stop|kill|start|restart NAME...                           one component, on the same port and data
  cluster.py down [--keep]                                             end all of it; the data go unless kept

Python programs write `from cluster import Cluster` with tools/ in sys.path; see testcluster/cluster.py.
"""

from __future__ import annotations

import argparse
import fcntl
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from testcluster import COMPONENTS, ApiError, BinariesMissing, Cluster, ClusterError, Options, find_binaries  # noqa: E402
from testcluster.components import DEFAULT, REPOSITORY  # noqa: E402

__all__ = ["ApiError", "BinariesMissing", "Cluster", "ClusterError", "Options", "find_binaries"]

OPTIONAL = [name for name in COMPONENTS if name not in ("etcd", "kube-apiserver")]


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, default=REPOSITORY / ".cache" / "cluster", help="where its state lies")
    commands = parser.add_subparsers(dest="command", required=True)

    up = commands.add_parser("up", help="start the cluster and wait until it is ready")
    up.add_argument("--with", dest="added", action="append", choices=OPTIONAL, default=[], help="start this one too")
    up.add_argument("--without", dest="left_out", action="append", choices=OPTIONAL, default=[])
    up.add_argument("--nodes", type=int, default=0, metavar="COUNT", help="simulated nodes with 8 GPUs to begin with")
    up.add_argument("--scheduler-config", type=Path, metavar="FILE", help="a KubeSchedulerConfiguration")
    up.add_argument("--kwok-stages", type=Path, metavar="FILE", help="instead of tests/cluster/kwok.yaml")
    up.add_argument("--etcd-compaction-interval", metavar="DURATION", help="for example 1s; 0 for never")
    up.add_argument("--min-request-timeout", type=int, metavar="SECONDS", help="watches end between 1x and 2x of it")
    up.add_argument("--flag", action="append", default=[], metavar="NAME:--FLAG", help="one more flag of a component")

    nodes = commands.add_parser("nodes", help="add simulated nodes")
    nodes.add_argument("count", type=int)
    nodes.add_argument("--gpus", type=int, default=8)
    nodes.add_argument("--prefix", default="node-")
    nodes.add_argument("--first", type=int, default=0, help="the first node's number")
    nodes.add_argument("--label", action="append", default=[], metavar="KEY=VALUE")

    for name in ("start", "stop", "kill", "restart"):
        one = commands.add_parser(name, help=f"{name} components")
        one.add_argument("names", nargs="+", choices=COMPONENTS, metavar="NAME")
    commands.add_parser("status", help="what runs; status 1 where nothing does")
    commands.add_parser("env", help="export lines for a shell")
    commands.add_parser("compact", help="forget etcd's history, for tests of 410 Gone")
    down = commands.add_parser("down", help="end the cluster")
    down.add_argument("--keep", action="store_true", help="keep its data for the next up")
    return parser.parse_args(argv)


def options_of(args: argparse.Namespace) -> dict:
    """The keyword arguments of Cluster that `up` was asked for."""
    flags: dict[str, list[str]] = {}
    for item in args.flag:
        name, _, flag = item.partition(":")
        flags.setdefault(name, []).append(flag)
    return {
        "components": tuple(name for name in (*DEFAULT, *args.added) if name not in args.left_out),
        "scheduler_config": args.scheduler_config.read_text() if args.scheduler_config else None,
        "kwok_stages": str(args.kwok_stages.resolve()) if args.kwok_stages else None,
        "etcd_compaction_interval": args.etcd_compaction_interval,
        "min_request_timeout": args.min_request_timeout,
        "extra_flags": flags,
    }


def up(args: argparse.Namespace) -> int:
    running = (args.dir / "state.json").exists()
    cluster = Cluster(args.dir, detached=True, binaries=find_binaries(build=True), **options_of(args))
    if running:
        print(f"There is a cluster in {args.dir} already; it keeps the options that it was made with ('down' ends it).")
    cluster.up()
    if args.nodes:
        cluster.nodes(args.nodes)
    print(f"Ready: {', '.join(cluster.options.components)} at {cluster.server_url}\n")
    print(f"  admin:  export KUBECONFIG={cluster.admin_kubeconfig}")
    print(f"  Berth:  export KUBECONFIG={cluster.berth_kubeconfig}   (what deploy/rbac.yaml allows)")
    print(f"  kubectl, if you have none:  export PATH={cluster.binaries}:$PATH\n")
    print("'./dev cluster down' ends it.")
    return 0


def status(cluster: Cluster) -> int:
    for name in cluster.options.components:
        state = "running" if cluster.alive(name) else "not running"
        print(f"{name:24} {state:12} {cluster.layout.log(name)}")
    return 0 if any(cluster.alive(name) for name in COMPONENTS) else 1


def environment(cluster: Cluster) -> int:
    for name, value in cluster.environment().items():
        print(f"export {name}='{value}'")
    print(f"export PATH='{cluster.binaries}':\"$PATH\"")
    return 0


def use(args: argparse.Namespace) -> int:
    """Carries out a command on the cluster that is there."""
    if not (args.dir / "state.json").exists():
        print(f"No cluster in {args.dir}; './dev cluster up' starts one.", file=sys.stderr)
        return 0 if args.command == "down" else 1
    cluster = Cluster(args.dir, detached=True)
    match args.command:
        case "status":
            return status(cluster)
        case "env":
            return environment(cluster)
        case "compact":
            print(f"compacted at revision {cluster.compact()}")
        case "nodes":
            labels = dict(item.split("=", 1) for item in args.label)
            made = cluster.nodes(args.count, gpus=args.gpus, prefix=args.prefix, first=args.first, labels=labels)
            print(f"{len(made)} nodes: {made[0]} to {made[-1]}" if made else "no nodes")
        case "down":
            cluster.close(keep_data=args.keep)
            print(f"The cluster is down; its data {f'stay in {args.dir}' if args.keep else 'are gone'}.")
        case action:
            for name in args.names:
                getattr(cluster, action)(name)
    return 0


def main() -> int:
    args = parse()
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    args.dir.parent.mkdir(parents=True, exist_ok=True)
    try:
        with args.dir.with_suffix(".lock").open("w") as lock:  # beside the folder, which `down` removes
            if args.command not in ("env", "status"):
                fcntl.flock(lock, fcntl.LOCK_EX)
            return up(args) if args.command == "up" else use(args)
    except (ClusterError, ApiError, ValueError, OSError) as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
