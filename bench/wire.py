#!/usr/bin/env python3
"""`bench/wire.py`: what JSON and Kubernetes protobuf cost a real API server, on loopback: binds, events, cold lists.

The ways of writing take turns in blocks on one server, and each has its share of early and late ones, so that what else
the machine does hits all of them alike; medians and the quartiles of the blocks are printed, as Markdown. CPU is that
of the kube-apiserver process, from /proc. "JSON, watched in ..." has one watcher of the same objects, as Berth is one.
Needs build/release/bin/wire_bench ('./dev build'). About four minutes.
"""
import argparse
import http.client
import json
import os
import ssl
import statistics
import subprocess
import sys
import time
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "bench"))
from servers import Cluster, pid_of  # noqa: E402

WIRE_BENCH = os.path.join(ROOT, "build", "release", "bin", "wire_bench")


def say(text):
    print(f"wire: {text}", file=sys.stderr, flush=True)


def wire_bench(cluster, *args):
    command = [WIRE_BENCH, str(cluster.admin_kubeconfig), *map(str, args)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=900).stdout)


def inflate_seconds(cluster, path):
    """How long zlib takes over a whole gzipped answer on one core."""
    tls = ssl.create_default_context(cafile=str(cluster.layout.pki / "ca.crt"))
    tls.load_cert_chain(cluster.layout.pki / "admin.crt", cluster.layout.pki / "admin.key")
    connection = http.client.HTTPSConnection("127.0.0.1", cluster.layout.ports["kube-apiserver"], context=tls, timeout=120)
    connection.request("GET", path, headers={"Accept": "application/json", "Accept-Encoding": "gzip"})
    body = connection.getresponse().read()
    connection.close()
    if body[:2] != b"\x1f\x8b":
        return 0.0  # not offered
    start = time.process_time()
    zlib.decompress(body, wbits=31)
    return time.process_time() - start


def by_way(blocks):
    ways = {}
    for block in blocks:
        ways.setdefault(block["way"], []).append(block)
    return {way: ways[way] for way in sorted(ways, key=lambda way: ("watched" in way or "whole" in way, "gzip" in way,
                                                                    "protobuf" in way, "Ignore" in way, -len(way)))}


def spread(values, digits):
    """Median, and the quartiles behind it."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return f"{middle:,.{digits}f} ({low:,.{digits}f}–{high:,.{digits}f})"


def against(ways, way, base):
    """CPU relative to JSON's within each round: what else the machine does is much the same in neighbouring blocks."""
    pairs = zip(ways[way], ways[base])
    return "1" if way == base else spread([one["server_cpu_s"] / max(other["server_cpu_s"], 0.01) for one, other in pairs], 2)


def writes_table(title, blocks):
    failed = sum(block["failed"] for block in blocks)
    ways = by_way(blocks)
    lines = [f"### {title}: {sum(block['count'] for block in blocks):,} in blocks of {blocks[0]['count']}, {failed} failed\n",
             "| way | body, bytes | server CPU each, ms | ÷ JSON | per second | client CPU each, ms |", "|---|---|---|---|---|---|"]
    for way, own in ways.items():
        base = "JSON, watched in JSON" if "watched" in way else "JSON"
        lines.append(f"| {way} | {own[0]['bytes'] / own[0]['count']:,.0f} | "
                     f"{spread([1e3 * b['server_cpu_s'] / b['count'] for b in own], 3)} | {against(ways, way, base)} | "
                     f"{spread([b['count'] / b['seconds'] for b in own], 0)} | "
                     f"{statistics.median(1e3 * b['client_cpu_s'] / b['count'] for b in own):.3f} |")
    return "\n".join(lines) + "\n"


def list_table(title, blocks, inflate_s):
    ways = by_way(blocks)
    lines = [f"### {title}\n", "| way | MB | seconds to the last byte, decoding aside | server CPU, s | ÷ JSON | Berth decodes, s |",
             "|---|---|---|---|---|---|"]
    for way, own in ways.items():
        base = "whole, JSON" if way.startswith("whole") else "JSON"
        decode = statistics.median(b["decode_s"] for b in own)
        if way.endswith("gzip") and not all(b["gzip"] for b in own):
            lines.append(f"| {way} | not offered | | | | |")
            continue
        tail = f"{decode:.3f}" if decode else f"{inflate_s:.3f} to inflate" if way.endswith("gzip") else "–"
        lines.append(f"| {way} | {own[0]['bytes'] / 1e6:,.1f} | {spread([b['seconds'] - b['decode_s'] for b in own], 2)} | "
                     f"{spread([b['server_cpu_s'] for b in own], 2)} | {against(ways, way, base)} | {tail} |")
    return "\n".join(lines) + "\n"


def writes(options, figures, tables):
    with Cluster(components=("etcd", "kube-apiserver")) as cluster:
        pid = pid_of(cluster, "kube-apiserver")
        cluster.nodes(1000, gpus=8)
        count = options.block * 6 * (options.rounds + 1)
        say(f"{count} waiting pods")
        api_bench = os.path.join(os.path.dirname(WIRE_BENCH), "api_bench")
        subprocess.run([api_bench, str(cluster.admin_kubeconfig), "create", str(count), "berth"], check=True,
                       stdout=subprocess.DEVNULL, timeout=600)
        say("binds")
        figures["binds"] = wire_bench(cluster, "binds", options.block, pid)
        tables.append(writes_table("Binds", figures["binds"]))
        say("events")
        figures["events"] = wire_bench(cluster, "events", options.block, pid, options.rounds)
        tables.append(writes_table("Events", figures["events"]))


def lists(options, figures, tables):
    with Cluster(components=("etcd", "kube-apiserver")) as cluster:
        pid = pid_of(cluster, "kube-apiserver")
        say(f"{options.nodes} nodes, {options.pods} pods to list")
        cluster.nodes(options.nodes, gpus=8, labels=lambda i: {
            "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "topology.kubernetes.io/zone": f"zone-{i % 3}"})
        if wire_bench(cluster, "create", options.pods)["failed"]:
            raise SystemExit("wire: not all pods were made; the server's first refusal is above")
        for plural, count in (("nodes", options.nodes), ("pods", options.pods)):
            say(f"lists of {plural}")
            figures[plural] = wire_bench(cluster, "lists", plural, pid, options.lists)
            tables.append(list_table(f"Cold list of {count:,} {plural}", figures[plural],
                                     inflate_seconds(cluster, f"/api/v1/{plural}")))


def parse(arguments=None):
    parser = argparse.ArgumentParser(prog="bench/wire.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--block", type=int, default=250, help="writes of one way before the next takes its turn (%(default)s)")
    parser.add_argument("--rounds", type=int, default=16, help="turns of each way of writing that count (%(default)s)")
    parser.add_argument("--lists", type=int, default=10, help="turns of each way of listing that count (%(default)s)")
    parser.add_argument("--nodes", type=int, default=5000, help="nodes in the cold list (%(default)s)")
    parser.add_argument("--pods", type=int, default=20000, help="pods in the cold list (%(default)s)")
    parser.add_argument("--only", choices=("writes", "lists"), help="leave the other part out")
    parser.add_argument("--json", metavar="FILE", help="also write every block's figures here")
    return parser.parse_args(arguments)


def measure(options):
    """The figures, and the tables as Markdown."""
    figures, tables = {}, []
    if options.only != "lists":
        writes(options, figures, tables)
    if options.only != "writes":
        lists(options, figures, tables)
    return figures, "\n".join(tables)


def main():
    options = parse()
    figures, text = measure(options)
    print(text)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(figures, out, indent=1)


if __name__ == "__main__":
    main()
