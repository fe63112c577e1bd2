#!/usr/bin/env python3
"""`./dev bench`: the speed table, as ratios of figures that were measured in one run.

Real kube-apiserver and etcd on loopback, a fresh pair for each measurement, 1,000 nodes with 8 GPUs and 4,000 one-GPU pods
that already wait; the same watcher counts bound pods and stored Scheduled events throughout. Measured are the server's raw
bind rate, a plain loop that writes a Binding and an Event for each pod, Berth, and kube-scheduler with its client limits
lifted. The engine alone comes from engine_bench, beside a calibration kernel. Nothing here asserts a time.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tools"))
from cluster import Cluster  # noqa: E402

BIN = os.path.join(ROOT, "build", "release", "bin")


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def tool(cluster, *args, wait=True):
    """Runs api_bench; its JSON, or the process when `wait` is false."""
    command = [os.path.join(BIN, "api_bench"), cluster.admin_kubeconfig, *map(str, args)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if not wait:
        process.stderr.readline()  # "watching"
        return process
    out, err = process.communicate(timeout=600)
    if process.returncode != 0:
        raise SystemExit(f"bench: {' '.join(command)} failed: {err}")
    return json.loads(out)


def cpu_seconds(pid):
    """User and system time of a process so far."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(name, options, act, components=("etcd", "kube-apiserver"), scheduler="berth", **kwargs):
    """One measurement on a fresh cluster: what the watcher saw while act(cluster) ran."""
    say(f"{name}: starting a cluster with {options.nodes} nodes and {options.pods} waiting pods")
    with Cluster(components=components, **kwargs) as cluster:
        cluster.nodes(options.nodes, gpus=8)
        tool(cluster, "create", options.pods, scheduler)
        watcher = tool(cluster, "watch", options.pods, options.limit, wait=False)
        time.sleep(1)
        extra = act(cluster, watcher) or {}
        out, _ = watcher.communicate(timeout=options.limit + 60)
        seen = json.loads(out)
    seen.update(extra)
    say(f"{name}: bound {seen['bound']['count']} at {seen['bound']['per_second']:.0f}/s, "
        f"events {seen['noted']['count']} at {seen['noted']['per_second']:.0f}/s")
    return seen


def raw(cluster, watcher):
    result = tool(cluster, "bind", 1_000_000, 32)
    return {"answered": result}


def plain_loop(cluster, watcher):
    return {"answered": tool(cluster, "bind-and-note", 1_000_000, 32)}


def berth(cluster, watcher):
    process = subprocess.Popen(
        [os.path.join(BIN, "berth"), "scheduler", "--kubeconfig", cluster.berth_kubeconfig, "--port", "0"],
        stderr=subprocess.PIPE, text=True)
    try:
        port = None
        for line in process.stderr:
            found = re.search(r"http=127\.0\.0\.1:(\d+)", line)
            if found:
                port = found.group(1)
                break
        watcher.wait(timeout=600)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as response:
            metrics = response.read().decode()
        dropped = re.search(r'berth_events_total\{result="dropped"\} (\S+)', metrics)
        busy = re.search(r"berth_cycle_duration_seconds_sum (\S+)", metrics)
        return {"dropped_events": float(dropped.group(1)) if dropped else None, "cpu_s": cpu_seconds(process.pid),
                "owner_busy_s": float(busy.group(1)) if busy else None}
    finally:
        process.terminate()
        process.stderr.close()
        process.wait(timeout=30)


def kube_scheduler(cluster, watcher):
    cluster.start("kube-scheduler")
    watcher.wait(timeout=600)


def api_table(options):
    runs = {}
    raw_options = argparse.Namespace(**{**vars(options), "limit": 15})
    runs["raw"] = measure("raw binds", raw_options, raw)
    runs["loop"] = measure("plain loop", options, plain_loop)
    runs["berth"] = measure("berth", options, berth)
    if not options.no_kube_scheduler:
        runs["kube-scheduler"] = measure("kube-scheduler", options, kube_scheduler, scheduler="default-scheduler")
    return runs


def ratio(a, b):
    return f"{a / b:.2f}" if b else "–"


def span_rate(seen):
    """Pods per second until the later of the last bind and the last event, from the first bind."""
    start = seen["bound"]["first_s"]
    end = max(seen["bound"]["last_s"], seen["noted"]["last_s"])
    return seen["bound"]["count"] / (end - start) if end > start else 0.0


def print_api(runs, options):
    limit, loop = runs["raw"]["bound"]["per_second"], span_rate(runs["loop"])
    print(f"\n## Real API server, {options.nodes:,} nodes × 8 GPUs, {options.pods:,} one-GPU pods waiting\n")
    print("| what | pods bound/s | ÷ raw binds | binds and events, pods/s | ÷ plain loop |")
    print("|---|---|---|---|---|")
    for name, seen in runs.items():
        rate, both = seen["bound"]["per_second"], span_rate(seen) if seen["noted"]["count"] else 0.0
        print(f"| {name} | {rate:,.0f} | {ratio(rate, limit)} | {both:,.0f} | {ratio(both, loop)} |")
    berth_run = runs["berth"]
    print(f"\nBerth dropped {berth_run['dropped_events']:.0f} events, used {berth_run['cpu_s']:.2f} s of CPU; its owner thread "
          f"was busy for {berth_run['owner_busy_s']:.3f} s.")
    if "kube-scheduler" in runs:
        print(f"Berth ÷ kube-scheduler: {ratio(berth_run['bound']['per_second'], runs['kube-scheduler']['bound']['per_second'])}")


def print_engine(result):
    print(f"\n## Engine alone (calibration: {result['calibration_million_reads_per_s']:.1f} million dependent reads/s)\n")
    print("| run | nodes | pods | classes | placements/s | cycle, s | facts in, s |")
    print("|---|---|---|---|---|---|---|")
    for r in result["runs"]:
        facts = r["apply_nodes_s"] + r["apply_pods_s"]
        print(f"| {r['name']} | {r['nodes']:,} | {r['pods']:,} | {r['classes']:,} | {r['placements_per_s']:,.0f} | "
              f"{r['cycle_s']:.3f} | {facts:.3f} |")
    print(f"\nLargest memory: {result['max_rss_mib']} MiB.")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000, help="nodes of the API bench (1,000)")
    parser.add_argument("--pods", type=int, default=4000, help="pods of the API bench (4,000)")
    parser.add_argument("--limit", type=int, default=120, help="seconds after which a measurement ends by itself")
    parser.add_argument("--engine-only", action="store_true", help="only the engine, without servers")
    parser.add_argument("--api-only", action="store_true", help="only binds through a real API server")
    parser.add_argument("--no-kube-scheduler", action="store_true", help="do not measure kube-scheduler beside Berth")
    parser.add_argument("--json", metavar="FILE", help="also write all figures here")
    options = parser.parse_args()
    figures = {}
    if not options.engine_only:
        figures["api"] = api_table(options)
        print_api(figures["api"], options)
    if not options.api_only:
        say("engine")
        figures["engine"] = json.loads(subprocess.run([os.path.join(BIN, "engine_bench")], check=True, capture_output=True, text=True).stdout)
        print_engine(figures["engine"])
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(figures, out, indent=2)


if __name__ == "__main__":
    main()
