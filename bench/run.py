#!/usr/bin/env python3
"""`./dev bench`: the speed tables, as ratios of figures that were measured in one run.

parts, each on a fresh kube-apiserver and etcd on loopback where it needs servers:
  waiting   1,000 nodes, 4,000 one-GPU pods that already wait: the server's raw bind rate, a plain loop that writes a
            Binding and an Event for each pod, Berth, and kube-scheduler with its client limits lifted
  scale     the same with 5,000 nodes and 20,000 pods, without the loop
  arrivals  create-to-bound latency while pods arrive at a share of the raw bind rate, for Berth and kube-scheduler
  engine    the engine alone, beside a calibration kernel
  curve     what one decision of the engine costs at 100 to 40,000 nodes; with --write also the picture
  mig       MIG slices that a fleet keeps allocated, by Berth's placement and by first-fit; no server
  traces    GPU allocation on the public lists of docs/traces.md, with several policies, the bounds beside them, and
            what a run takes; the environment variable BERTH_TRACES names the folder above openb, and without it this
            part is skipped
  wire      JSON against Kubernetes protobuf on the API server (bench/wire.py)

Tables go to standard output as Markdown; --write puts them into docs/performance.md as well, each in its place. All
parts take about twenty minutes. Nothing here asserts a time.
"""
import argparse
import glob
import json
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import page  # noqa: E402
import picture  # noqa: E402
import servers  # noqa: E402
import wire  # noqa: E402
from servers import BIN, ROOT, say  # noqa: E402

TITLES = {"waiting": "Pods that wait", "scale": "Pods that wait, at scale", "arrivals": "Pods that arrive",
          "engine": "Engine alone", "curve": "Cost against the size of the cluster", "mig": "MIG slices",
          "traces": "Packing public traces", "wire": "JSON and protobuf"}


def parse():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=TITLES, metavar="PART", default=list(TITLES), help="these parts alone")
    parser.add_argument("--without", nargs="+", choices=TITLES, metavar="PART", default=[], help="leave these parts out")
    parser.add_argument("--no-kube-scheduler", action="store_true", help="leave kube-scheduler out of every part")
    parser.add_argument("--nodes", type=int, default=1000, help="nodes of 'waiting' and 'arrivals' (%(default)s)")
    parser.add_argument("--pods", type=int, default=4000, help="pods of 'waiting' (%(default)s)")
    parser.add_argument("--scale-nodes", type=int, default=5000, help="nodes of 'scale' (%(default)s)")
    parser.add_argument("--scale-pods", type=int, default=20000, help="pods of 'scale' (%(default)s)")
    parser.add_argument("--repeat", type=int, default=1, metavar="ROUNDS",
                        help="do 'waiting', 'scale' and 'arrivals' so often; medians of ratios within a round (%(default)s)")
    parser.add_argument("--limit", type=int, default=180, metavar="SECONDS",
                        help="a measurement ends by itself after this, and says how far it came (%(default)s)")
    parser.add_argument("--arrival-share", type=float, default=0.5, metavar="SHARE",
                        help="pods arrive at this share of the raw bind rate (%(default)s)")
    parser.add_argument("--arrival-seconds", type=float, default=8, metavar="SECONDS", help="for so long (%(default)s)")
    parser.add_argument("--write", action="store_true", help="also put the tables into docs/performance.md, and draw the picture")
    parser.add_argument("--json", metavar="FILE", help="also write all figures here")
    return parser.parse_args()


def engine_bench(*args):
    say(f"engine {' '.join(args)}")
    return json.loads(subprocess.run([os.path.join(BIN, "engine_bench"), *args], check=True, stdout=subprocess.PIPE, text=True).stdout)


def waiting(options, nodes, pods, loop):
    rounds = [servers.waiting_pods(nodes, pods, options.limit, loop=loop, kube_scheduler=not options.no_kube_scheduler)
              for _ in range(options.repeat)]
    return rounds, page.waiting_table(rounds, nodes, pods, options.limit)


def part_waiting(options, _figures):
    return waiting(options, options.nodes, options.pods, loop=True)


def part_scale(options, _figures):
    return waiting(options, options.scale_nodes, options.scale_pods, loop=False)


def part_arrivals(options, figures):
    if "waiting" in figures:
        raw_rate = statistics.median(page.bind_rate(runs["raw"]) for runs in figures["waiting"])
    else:
        raw_rate = page.bind_rate(servers.measure("raw binds", options.nodes, options.pods, options.limit, servers.act_raw,
                                                  events=False))
    names = ["berth"] if options.no_kube_scheduler else ["berth", "kube-scheduler"]
    rounds = [{name: servers.arriving_pods(name, options.nodes, options.arrival_share * raw_rate, options.arrival_seconds,
                                           options.limit) for name in names} for _ in range(options.repeat)]
    return rounds, page.arrivals_table(rounds, options.nodes, raw_rate, options.arrival_share)


def part_engine(_options, _figures):
    result = engine_bench()
    return result, page.engine_table(result)


def part_curve(options, _figures):
    points = engine_bench("curve")
    if options.write:
        with open(os.path.join(ROOT, "docs", "performance_curve.svg"), "w", encoding="utf-8") as out:
            out.write(picture.curve_svg(points))
    return points, page.curve_table(points)


def part_mig(_options, _figures):
    say("MIG streams")
    result = json.loads(subprocess.run([os.path.join(BIN, "mig_bench")], check=True, stdout=subprocess.PIPE, text=True).stdout)
    return result, page.mig_tables(result)


def part_traces(options, _figures):
    folder = os.environ.get("BERTH_TRACES")
    if not folder:
        say("traces: skipped; BERTH_TRACES names no folder with the openb traces, see docs/traces.md")
        return None
    openb = os.path.join(folder, "openb")
    lists = sorted(glob.glob(os.path.join(openb, "openb_pod_list_*.csv")))
    if not lists:
        raise SystemExit(f"bench: traces: no openb_pod_list_*.csv in {openb}; see docs/traces.md")
    say("traces")
    program = os.path.join(BIN, "trace_bench")
    result = json.loads(subprocess.run([program, os.path.join(openb, "openb_node_list_gpu_node.csv"), *lists], check=True,
                                       stdout=subprocess.PIPE, text=True).stdout)
    if options.write:
        with open(os.path.join(ROOT, "docs", "traces_curve.svg"), "w", encoding="utf-8") as out:
            out.write(picture.traces_svg(result))
    return result, page.traces_table(result)


def part_wire(_options, _figures):
    return wire.measure(wire.parse([]))


def main():
    options = parse()
    figures = {}
    for part, title in TITLES.items():
        if part not in options.only or part in options.without:
            continue
        when = page.circumstances()
        measured = globals()[f"part_{part}"](options, figures)
        if measured is None:
            continue
        figures[part], text = measured
        text = f"{when}\n{text}"
        print(f"\n## {title}\n\n{text}", flush=True)
        if options.write:
            page.put(part, text)
        if options.json:
            with open(options.json, "w", encoding="utf-8") as out:
                json.dump(figures, out, indent=1)


if __name__ == "__main__":
    main()
