#!/usr/bin/env python3
"""`./dev demo`: the main job, for real, on this machine, in about half a minute.

  demo.py [--example examples/demo]

Starts a Kubernetes control plane on loopback, applies the example with kubectl, lets `berth scheduler` bind its pods,
prints what was decided and why, compares it with `berth simulate` on the same files, and takes everything down.

Simulated kubelets (kwok) run the pods. Berth is the only scheduler here, so it serves `default-scheduler`, and the
manifests need no schedulerName. Exit status 0 when every pod was decided in time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from cluster import ApiError, Cluster, ClusterError, find_binaries  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
BERTH = ROOT / "build" / "release" / "bin" / "berth"
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kwok")
DECIDED_TIMEOUT_S = 60.0
QUIET_S = 2.0  # all is decided, and stays so for this long: controllers have made their last pod
COMMAND_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 15.0
KWOK_DELAY = "pod-complete.stage.kwok.x-k8s.io/delay"


class DemoError(Exception):
    """Something that the demo needs did not happen; the message says what to look at."""


def say(text: str = "") -> None:
    print(text, flush=True)


def show(title: str, text: str) -> None:
    say(f"\n$ {title}")
    say(text.rstrip() or "(nothing)")


def read_example(cluster: Cluster, folder: Path) -> list[dict]:
    """The example's objects, read by kubectl, so that the demo understands exactly what a user may write."""
    text = cluster.kubectl("create", "--dry-run=client", "--validate=false", "-o", "json", "-f", str(folder))
    decoder, at, objects = json.JSONDecoder(), 0, []
    while at < len(text):  # kubectl prints a List, or one object after another
        found, at = decoder.raw_decode(text, at)
        objects += found["items"] if found["kind"] == "List" else [found]
        while at < len(text) and text[at].isspace():
            at += 1
    return objects


def make_node(cluster: Cluster, node: dict) -> None:
    """Creates a node as its kubelet would have: ready, allocatable, without the taint that every new node is given."""
    metadata, status = node["metadata"], node.setdefault("status", {})
    metadata.setdefault("annotations", {})["kwok.x-k8s.io/node"] = "fake"
    metadata.setdefault("labels", {}).setdefault("kubernetes.io/hostname", metadata["name"])
    status.setdefault("allocatable", status.get("capacity", {}))
    status["conditions"] = [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated"}]
    taints = node.get("spec", {}).get("taints")
    cluster.api.call("POST", "/api/v1/nodes", node)
    patch = {"spec": {"taints": taints}}
    path = f"/api/v1/nodes/{metadata['name']}"
    cluster.api.call("PATCH", path, patch, content_type="application/merge-patch+json")


def apply_example(cluster: Cluster, folder: Path) -> None:
    objects = read_example(cluster, folder)
    nodes = [item for item in objects if item["kind"] == "Node"]
    for node in nodes:
        make_node(cluster, node)
    rest = [item for item in objects if item["kind"] != "Node"]
    for item in rest:
        if item["kind"] == "Job":  # kwok would let a Job's pods succeed at once
            template = item["spec"]["template"].setdefault("metadata", {})
            template.setdefault("annotations", {}).setdefault(KWOK_DELAY, "1h")
    first = ("Namespace", "PriorityClass")
    rest.sort(key=lambda item: first.index(item["kind"]) if item["kind"] in first else len(first))
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": rest})
    cluster.kubectl("apply", "-f", "-", input=manifest)
    say(f"applied {folder}: {len(nodes)} nodes and {len(rest)} other objects")


def decision(pod: dict) -> str | None:
    """"bound", "waiting" with a reason that a user can read, or nothing yet."""
    if pod["spec"].get("nodeName"):
        return "bound"
    for condition in pod.get("status", {}).get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return "waiting"
    return None


def wait_until_decided(cluster: Cluster, scheduler: subprocess.Popen, log: Path) -> list[dict]:
    """All pods, once each is bound or says why not and no new one has come for a moment."""
    began = time.monotonic()
    quiet_since, before = began, None
    while time.monotonic() - began < DECIDED_TIMEOUT_S:
        if scheduler.poll() is not None:
            raise DemoError(f"berth scheduler ended with status {scheduler.returncode}:\n{tail(log)}")
        pods = cluster.api.call("GET", "/api/v1/pods")["items"]
        now = {pod["metadata"]["uid"]: decision(pod) for pod in pods}
        if now != before or not now or None in now.values():
            quiet_since, before = time.monotonic(), now
        elif time.monotonic() - quiet_since >= QUIET_S:
            return pods
        time.sleep(0.2)
    left = sum(1 for what in (before or {}).values() if what is None)
    raise DemoError(f"after {DECIDED_TIMEOUT_S:.0f} s {left} of {len(before or {})} pods are undecided:\n{tail(log)}")


def tail(log: Path, lines: int = 20) -> str:
    text = log.read_text(errors="replace").splitlines()[-lines:] if log.exists() else []
    return "\n".join(f"  {line}" for line in text) or "  (it said nothing)"


def start_scheduler(cluster: Cluster, log: Path) -> subprocess.Popen:
    command = [str(BERTH), "scheduler", "--kubeconfig", str(cluster.berth_kubeconfig),
               "--scheduler-name", "default-scheduler", "--port", "0"]
    say("berth scheduler: started, with the rights in deploy/rbac.yaml and no others")
    with log.open("wb") as output:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)


def stop(process: subprocess.Popen) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def show_decisions(cluster: Cluster, pods: list[dict]) -> None:
    columns = "NAMESPACE:.metadata.namespace,NAME:.metadata.name,NODE:.spec.nodeName,PHASE:.status.phase"
    show("kubectl get pods -A", cluster.kubectl("get", "pods", "-A", "-o", f"custom-columns={columns}"))
    waiting = [pod for pod in pods if decision(pod) == "waiting"]
    for pod in waiting[:3]:
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        messages = [condition.get("message", "") for condition in pod["status"]["conditions"]
                    if condition["type"] == "PodScheduled"]
        show(f"why {namespace}/{name} waits (its PodScheduled condition)", "\n".join(messages))
        show(f"kubectl events -n {namespace} --for pod/{name}",
             cluster.kubectl("events", "-n", namespace, "--for", f"pod/{name}"))
    if len(waiting) > 3:
        say(f"\n... and {len(waiting) - 3} more pods wait.")


def show_simulation(folder: Path) -> None:
    """The same files, offline: no cluster, virtual time."""
    done = subprocess.run([str(BERTH), "simulate", "-f", str(folder)], capture_output=True, text=True,
                          timeout=COMMAND_TIMEOUT_S)
    show(f"berth simulate -f {folder}      # the same engine, offline, in virtual time", done.stdout + done.stderr)
    if done.returncode not in (0, 3):
        raise DemoError(f"berth simulate ended with status {done.returncode}")


def run(args: argparse.Namespace) -> None:
    log = ROOT / "build" / "logs" / "demo-scheduler.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    say("starting etcd, kube-apiserver, kube-controller-manager and simulated kubelets on loopback ...")
    with Cluster(components=COMPONENTS, binaries=find_binaries(build=True)) as cluster:
        say(f"a Kubernetes API server is ready at {cluster.server_url} ({time.monotonic() - began:.0f} s)")
        scheduler = start_scheduler(cluster, log)
        try:
            apply_example(cluster, args.example)
            pods = wait_until_decided(cluster, scheduler, log)
            show_decisions(cluster, pods)
        finally:
            stop(scheduler)
        bound = sum(1 for pod in pods if decision(pod) == "bound")
        show_simulation(args.example)
        say(f"\n{bound} pods bound, {len(pods) - bound} wait with a reason. Taking everything down.")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--example", type=Path, default=Path("examples/demo"), help="a folder of manifests with nodes")
    args = parser.parse_args()
    if not BERTH.is_file():
        print(f"demo: {BERTH} is not built; './dev demo' builds it first", file=sys.stderr)
        return 1
    if not args.example.exists():
        print(f"demo: there is no {args.example}", file=sys.stderr)
        return 1
    try:
        run(args)
    except (DemoError, ClusterError, ApiError, OSError, subprocess.TimeoutExpired) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
