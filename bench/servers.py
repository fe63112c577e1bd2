"""Measurements on a real kube-apiserver and etcd, a fresh pair for each, loopback only. For run.py."""
import contextlib
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tools"))
from cluster import Cluster  # noqa: E402

BIN = os.path.join(ROOT, "build", "release", "bin")
SERVERS = ("etcd", "kube-apiserver")
SCHEDULER_NAME = {"berth": "berth", "kube-scheduler": "default-scheduler"}


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def tool(cluster, *args, wait=True):
    """Runs api_bench; its JSON, or the process when `wait` is false."""
    command = [os.path.join(BIN, "api_bench"), str(cluster.admin_kubeconfig), *map(str, args)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if not wait:
        process.stderr.readline()  # "watching"
        return process
    try:
        out, err = process.communicate(timeout=900)
    finally:
        process.kill()  # where it has not ended by itself
    if process.returncode != 0:
        raise SystemExit(f"bench: {' '.join(command)} failed: {err}")
    return json.loads(out)


def cpu_seconds(pid):
    """User and system time of a process so far."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def pid_of(cluster, name):
    """Of a component; nothing where it does not run."""
    with open(cluster.folder / "state.json", encoding="utf-8") as state:
        return json.load(state)["processes"].get(name, {}).get("pid")


def servers_cpu(cluster):
    return sum(cpu_seconds(pid_of(cluster, name)) for name in SERVERS)


def http_get(port, path):
    """The body; nothing while the answer is not 200."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as response:
            return response.read().decode()
    except urllib.error.HTTPError:
        return None


@contextlib.contextmanager
def berth_running(cluster):
    """`berth scheduler` on the cluster; gives its process and its HTTP port."""
    command = [os.path.join(BIN, "berth"), "scheduler", "--kubeconfig", str(cluster.berth_kubeconfig), "--port", "0"]
    log = cluster.folder / "logs" / "berth.log"  # a pipe that nobody empties would stop it in the end
    with open(log, "w", encoding="utf-8") as out:
        process = subprocess.Popen(command, stderr=out)
    try:
        while not (found := re.search(r"http=127\.0\.0\.1:(\d+)", log.read_text())):
            if process.poll() is not None:
                raise SystemExit(f"bench: berth ended while starting:\n{log.read_text()}")
            time.sleep(0.05)
        yield process, int(found.group(1))
    finally:
        process.terminate()
        process.wait(timeout=30)


def measure(name, nodes, pods, limit_s, act, scheduler="berth", events=True):
    """On a fresh cluster with pods that wait: what the watcher saw while act(cluster, watcher) ran."""
    say(f"{name}: starting a cluster with {nodes} nodes and {pods} waiting pods")
    with Cluster(components=SERVERS) as cluster:
        cluster.nodes(nodes, gpus=8)
        tool(cluster, "create", pods, SCHEDULER_NAME[scheduler])
        watcher = tool(cluster, "watch", pods, limit_s, *([] if events else ["bound"]), wait=False)
        try:
            time.sleep(1)
            before = servers_cpu(cluster)
            extra = act(cluster, watcher) or {}
            out, _ = watcher.communicate(timeout=limit_s + 60)
        finally:
            watcher.kill()  # where it has not ended by itself
        seen = {**json.loads(out), "servers_cpu_s": servers_cpu(cluster) - before}
    seen.update(extra)
    say(f"{name}: bound {seen['bound']['count']} at {seen['bound']['per_second']:.0f}/s, "
        f"events {seen['noted']['count']} at {seen['noted']['per_second']:.0f}/s")
    return seen


def act_raw(cluster, _watcher):
    return {"answered": tool(cluster, "bind", 1_000_000, 32)}


def act_loop(cluster, _watcher):
    return {"answered": tool(cluster, "bind-and-note", 1_000_000, 32)}


def metric(text, series):
    """The value of a series, as it is written in the text; without it, the bench and this build do not belong together."""
    found = re.search(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)
    if not found:
        raise SystemExit(f"bench: Berth's metrics have no {series}; build it anew, with './dev build'")
    return float(found.group(1))


def act_berth(cluster, watcher):
    with berth_running(cluster) as (process, port):
        watcher.wait(timeout=900)
        metrics = http_get(port, "/metrics") or ""
        return {"dropped_events": metric(metrics, 'berth_events_total{result="dropped"}'), "cpu_s": cpu_seconds(process.pid),
                "owner_busy_s": metric(metrics, "berth_cycle_duration_seconds_sum"),
                "longest_turn_s": metric(metrics, "berth_owner_turn_longest_seconds"),
                "turn_max_s": metric(metrics, "berth_owner_turn_max_seconds"),
                "turns_over_max": sum(metric(metrics, f'berth_owner_turns_over_max_total{{list="{lists}"}}')
                                      for lists in ("no", "yes"))}


def act_kube_scheduler(cluster, watcher):
    cluster.start("kube-scheduler")
    watcher.wait(timeout=900)
    return {"cpu_s": cpu_seconds(pid_of(cluster, "kube-scheduler"))}


def waiting_pods(nodes, pods, limit_s, loop=True, kube_scheduler=True):
    """How fast pods that already wait are bound, by everyone."""
    size = f"{nodes} nodes"
    runs = {"raw": measure(f"raw binds, {size}", nodes, pods, limit_s, act_raw, events=False)}
    if loop:
        runs["loop"] = measure(f"plain loop, {size}", nodes, pods, limit_s, act_loop)
    runs["berth"] = measure(f"berth, {size}", nodes, pods, limit_s, act_berth)
    if kube_scheduler:
        runs["kube-scheduler"] = measure(f"kube-scheduler, {size}", nodes, pods, limit_s, act_kube_scheduler, "kube-scheduler")
    return runs


def arriving_pods(scheduler, nodes, rate, seconds, limit_s):
    """Create-to-bound latency while pods arrive at `rate` for `seconds`, on an idle scheduler that is ready for them."""
    count = int(min(rate * seconds, 0.9 * 8 * nodes))
    say(f"{scheduler}: {count} pods arrive at {rate:.0f}/s on {nodes} nodes")
    with Cluster(components=SERVERS) as cluster, contextlib.ExitStack() as stack:
        cluster.nodes(nodes, gpus=8)
        if scheduler == "berth":
            _, port = stack.enter_context(berth_running(cluster))
            deadline = time.monotonic() + 60
            while http_get(port, "/readyz") is None:
                if time.monotonic() > deadline:
                    raise SystemExit("bench: berth was not ready after 60 s")
                time.sleep(0.1)
        else:
            cluster.start(scheduler)
        time.sleep(2)
        seen = tool(cluster, "arrive", count, SCHEDULER_NAME[scheduler], rate, limit_s)
    say(f"{scheduler}: {seen['bound']} bound, create to bound {seen['create_to_bound_ms']['p50']:.0f} ms p50, "
        f"{seen['create_to_bound_ms']['p99']:.0f} ms p99")
    return seen
