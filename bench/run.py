#!/usr/bin/env python3
"""`./dev bench`: the speed tables, as ratios of figures that were measured in one run.

parts, each on a fresh kube-apiserver and etcd on loopback where it needs servers:
  waiting   1,000 nodes, 4,000 one-GPU pods that already wait: the server's raw bind rate, a plain loop that writes a
            Binding and an Event for each pod, Berth, and kube-scheduler with its client limits lifted
  scale     the same with 5,000 nodes and 20,000 pods, without the loop
  arrivals  create-to-bound latency while pods arrive at a share of the raw bind rate, for Berth and kube-scheduler
  engine    the engine alone, beside a calibration kernel
  devices   what choosing devices one by one adds to a placement, at 10,000 nodes
  sets      what a queue gains when it is packed as a set, and what a cycle costs then
  curve     what one decision of the engine costs at 100 to 40,000 nodes; with --write also the picture
  mig       MIG slices that a fleet keeps allocated, by Berth's placement and by first-fit; no server
  fidelity  the baselines that are shipped for comparison, on the public lists, beside the published means
  traces    GPU allocation on the public lists of docs/traces.md, with several policies, the bounds beside them, and
            what a run takes
  live      the engine itself, its scores at several weights, on public lists
  wire      JSON against Kubernetes protobuf on the API server (bench/wire.py)

fidelity, traces, live and a part of sets read the public lists: the environment variable BERTH_TRACES names the folder
above openb, and without it they are skipped.

Tables go to standard output as Markdown; --write puts them into docs/performance.md as well, each in its place
(fidelity: docs/traces.md). All parts take half an hour. Nothing here asserts a time; where a figure has a goal, the
table ends with how near it comes.
"""
import argparse
import glob
import json
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live  # noqa: E402
import packing_page  # noqa: E402
import page  # noqa: E402
import picture  # noqa: E402
import queues_live  # noqa: E402
import queues_page  # noqa: E402
import servers  # noqa: E402
import wire  # noqa: E402
from servers import BIN, ROOT, say  # noqa: E402

TITLES = {"waiting": "Pods that wait", "scale": "Pods that wait, at scale", "arrivals": "Pods that arrive",
          "engine": "Engine alone", "curve": "Cost against the size of the cluster",
          "devices": "Whole GPUs as devices", "sets": "Waiting pods as a set", "queues": "Work in queues", "queues_live": "Work in queues, on a real server", "mig": "MIG slices",
          "fidelity": "Baselines beside the published ones", "traces": "Packing public traces",
          "live": "The engine on public traces", "wire": "JSON and protobuf"}
PAGES = {"fidelity": "traces.md"}  # the others are in performance.md


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
    parser.add_argument("--trace-seeds", type=int, default=10, metavar="N", help="seeds of 'fidelity' and 'traces' (%(default)s)")
    parser.add_argument("--trace-lists", nargs="+", metavar="LIST",
                        help=f"lists of 'fidelity' and 'traces' (all), 'live' and 'sets' ({' '.join(live.LISTS)})")
    parser.add_argument("--write", action="store_true", help="also put the tables into docs/, and draw the pictures")
    parser.add_argument("--json", metavar="FILE", help="also write all figures here")
    return parser.parse_args()


def program(name, *args):
    """What a bench program prints."""
    return json.loads(subprocess.run([os.path.join(BIN, name), *args], check=True, stdout=subprocess.PIPE, text=True).stdout)


def engine_bench(*args):
    say(f"engine {' '.join(args)}")
    return program("engine_bench", *args)


def draw(options, name, svg):
    if options.write:
        with open(os.path.join(ROOT, "docs", name), "w", encoding="utf-8") as out:
            out.write(svg)


def openb_folder(part):
    """Where the public lists are; None, after saying so, where nothing names it."""
    folder = os.environ.get("BERTH_TRACES")
    if not folder:
        say(f"{part}: skipped; BERTH_TRACES names no folder with the openb traces, see docs/traces.md")
        return None
    return os.path.join(folder, "openb")


def list_names(options, openb, usual=None):
    """The lists that are asked for; else the usual ones, without these all that are there."""
    there = sorted(os.path.basename(path)[len("openb_pod_list_"):-len(".csv")]
                   for path in glob.glob(os.path.join(openb, "openb_pod_list_*.csv")))
    names = options.trace_lists or usual or there
    missing = [name for name in names if name not in there]
    if missing or not names:
        raise SystemExit(f"bench: there is no {openb}/openb_pod_list_{missing[0] if missing else '*'}.csv; see docs/traces.md")
    return names


def trace_bench(options, openb, *args):
    """trace_bench on the lists that are asked for."""
    lists = [os.path.join(openb, f"openb_pod_list_{name}.csv") for name in list_names(options, openb)]
    return program("trace_bench", *args, "--seeds", str(options.trace_seeds), os.path.join(openb, live.NODES), *lists)


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
    draw(options, "performance_curve.svg", picture.curve_svg(points))
    return points, page.curve_table(points)


def part_devices(_options, _figures):
    result = engine_bench("devices")
    return result, packing_page.devices_table(result)


def part_sets(options, _figures):
    openb = openb_folder("sets: the table of public lists")
    say("queues as sets")
    result = {"cycles": program("set_bench"), "small": program("set_bench", "20", "20"), "over_time": program("set_bench", "over-time")}
    if openb:
        result["at_once"] = live.measure(openb, list_names(options, openb, live.LISTS), 0, list(live.WEIGHTS)[:2], (False, True))
        draw(options, "performance_sets.svg", picture.sets_svg(result["at_once"]))
    return result, packing_page.sets_tables(result)


def part_queues(_options, _figures):
    say("queues")
    result = {"waiting": program("queue_bench"), "one_cohort": program("queue_bench", "6000", "120", "1200", "120"), "victims": program("queue_bench", "victims"), "drain": program("queue_bench", "drain")}
    return result, queues_page.tables(result)


def part_queues_live(_options, _figures):
    result = queues_live.measure()
    return result, queues_live.table(result)


def part_mig(options, _figures):
    say("MIG streams")
    result = program("mig_bench")
    draw(options, "performance_mig.svg", picture.mig_svg(result))
    return result, packing_page.mig_tables(result)


def part_fidelity(options, _figures):
    openb = openb_folder("fidelity")
    if not openb:
        return None
    say("fidelity")
    result = trace_bench(options, openb, "--baselines")
    result["published"] = packing_page.published(os.path.join(openb, "published_baselines.csv"))
    return result, packing_page.fidelity_table(result)


def part_traces(options, _figures):
    openb = openb_folder("traces")
    if not openb:
        return None
    say("traces")
    result = trace_bench(options, openb)
    draw(options, "traces_curve.svg", picture.traces_svg(result))
    return result, packing_page.traces_table(result)


def part_live(options, _figures):
    openb = openb_folder("live")
    if not openb:
        return None
    names = list_names(options, openb, live.LISTS)
    result = {"weights": live.measure(openb, names, 1, live.WEIGHTS, (False,)),
              "policies": {name: {policy: live.by_policy(openb, name, policy) for policy in packing_page.LIVE_POLICIES}
                           for name in names}}
    return result, packing_page.live_table(result)


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
            page.put(part, text, PAGES.get(part, "performance.md"))
        if options.json:
            with open(options.json, "w", encoding="utf-8") as out:
                json.dump(figures, out, indent=1)


if __name__ == "__main__":
    main()
