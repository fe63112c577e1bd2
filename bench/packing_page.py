"""Figures of packing (devices, sets, MIG, traces) as Markdown, each with how near it comes to its goal. For run.py."""
import csv
import statistics

BASELINES = {"fgd": "FGD", "best-fit": "BestFit", "dot-product": "DotProd", "gpu-packing": "GpuPacking",
             "gpu-clustering": "GpuClustering", "random": "Random"}  # by their names in the published file
LIVE_POLICIES = ("berth", "fgd", "best-fit", "gpu-packing")
DEVICES_GOAL_PERCENT = 20  # that choosing among eight devices may add
FIDELITY_GOAL = 0.5        # points from the published mean
MIG_GOAL = 5               # points above first-fit
ONLINE_GOAL = 1.0          # points above fgd
BATCH_GOAL = 99            # per cent, on the list default
RUN_GOAL_S = 0.5


def devices_table(result):
    lines = ["10,000 nodes; the best of five rounds each, in turn; CPU time of the thread.\n",
             "| devices of a node | connected by | counted, ns a placement | listed, ns a placement | listed ÷ counted |",
             "|---|---|---|---|---|"]
    for one in result:
        lines.append(f"| {one['devices']} | {'NVSwitch' if one['nvlinks'] else 'PCIe'} | {one['counted_ns']:,.0f} | "
                     f"{one['listed_ns']:,.0f} | {one['ratio']:.2f} |")
    added = 100 * (max(one["ratio"] for one in result if one["devices"] == 8) - 1)
    lines.append(f"\nGoal: choosing among eight devices adds less than {DEVICES_GOAL_PERCENT} %. It adds {added:.0f} % at most "
                 f"({added / DEVICES_GOAL_PERCENT:.2f} of the limit).")
    return "\n".join(lines) + "\n"


def sets_tables(result):
    """`result`: what set_bench printed, and `at_once` of live.measure() where the public lists were there."""
    lines = []
    if "at_once" in result:
        lines += ["### All at once\n", "![GPUs allocated one by one and as a set](performance_sets.svg)\n"] + at_once(result["at_once"])
    rows = {(row["classes"], row["max_work"]): row for row in result["cycles"]}
    small = {(row["classes"], row["max_work"]): row for row in result["small"]}
    one_by_one, as_set, long = sorted({work for _, work in rows})
    lines += ["### A cycle\n",
              "| kinds of pods | first cycle, CPU ms: one by one | as a set | later cycle, CPU ms: one by one | as a set | "
              "GPUs allocated: one by one | as a set | 20 nodes and 20 pods: one by one | as a set |", "|" + "---|" * 9]
    for kinds in dict.fromkeys(kinds for kinds, _ in rows):
        alone, packed = rows[kinds, one_by_one], rows[kinds, as_set]
        lines.append(f"| {kinds} | {alone['first_cycle_ms']:.1f} | {packed['first_cycle_ms']:.1f} | {alone['later_cycle_ms']:.2f} | "
                     f"{packed['later_cycle_ms']:.2f} | {alone['gpus']:,.1f} | {packed['gpus']:,.1f} | "
                     f"{small[kinds, one_by_one]['gpus']:.1f} | {small[kinds, as_set]['gpus']:.1f} |")
    longest = [row for (_, work), row in rows.items() if work == long]
    ns = 1e6 * sum(row["first_cycle_ms"] for row in longest) / sum(row["work"] for row in longest)
    lines += [f"\nOne candidate examined costs {ns / 1000:.2f} µs.\n", "### Over time\n",
              "| asked for | | GPUs in use, % | mean wait, min | 99th percentile, min |", "|---|---|---|---|---|"]
    for row in result["over_time"]:
        bound = row["head_bound_min"]
        way = f"as a set, `headBound: {bound}m`" if bound else "one by one"
        lines.append(f"| {100 * row['load']:.0f} % | {way} | {row['in_use_percent']:.1f} | {row['wait_mean_min']:.1f} | "
                     f"{row['wait_p99_min']:.0f} |")
    return "\n".join(lines) + "\n"


def at_once(rows):
    weights = list(dict.fromkeys(row["weights"] for row in rows))
    found = {(row["list"], row["weights"], row["as_a_set"]): row for row in rows}
    lines = ["| list | " + " | ".join(f"{weight} | as a set" for weight in weights) + " | pods placed: "
             + " | ".join(f"{weight} | as a set" for weight in weights) + " |", "|" + "---|" * (1 + 4 * len(weights))]
    for name in dict.fromkeys(row["list"] for row in rows):
        cells = [f"{found[name, weight, way]['allocated']:.1f}" for weight in weights for way in (False, True)]
        cells += [f"{found[name, weight, way]['placed']:,.0f}" for weight in weights for way in (False, True)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines + [""]


def live_table(result):
    weights = list(dict.fromkeys(row["weights"] for row in result["weights"]))
    found = {(row["list"], row["weights"]): row["allocated"] for row in result["weights"]}
    lines = ["| list | " + " | ".join([*weights, *LIVE_POLICIES]) + " |", "|" + "---|" * (1 + len(weights) + len(LIVE_POLICIES))]
    for name, policies in result["policies"].items():
        cells = [found[name, weight] for weight in weights] + [policies[policy] for policy in LIVE_POLICIES]
        lines.append(f"| {name} | {' | '.join(f'{cell:.1f}' for cell in cells)} |")
    return "\n".join(lines) + "\n"


def published(path):
    """GPU allocation at 130 % by list and policy, from the file of published means."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] == "gpu_allocation_percent"]
    out = {}
    for row in rows:
        out.setdefault(row["workload"], {})[row["policy"]] = float(row["at_130"])
    return out


def fidelity_table(result):
    lines = [f"GPU allocation at 130 %, ours and in brackets the published one; ours is the mean of {result['seeds']} seeds from "
             f"{result['first_seed']} on.\n",
             f"| list | {' | '.join(BASELINES)} |", "|" + "---|" * (1 + len(BASELINES))]
    apart, seconds = {}, []
    for one in result["lists"]:
        name = one["list"].removeprefix("openb_pod_list_")
        cells = []
        for way in one["ways"]:
            ours = statistics.mean(way["allocated"])
            theirs = result["published"].get(name, {}).get(BASELINES[way["name"]])
            cells.append(f"{ours:.2f} ({f'{theirs:.2f}' if theirs else '–'})")
            seconds += way["seconds"]
            if theirs:
                apart[name, way["name"]] = abs(ours - theirs)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    if apart:
        worst = max(apart, key=apart.get)
        over = sum(points > FIDELITY_GOAL for points in apart.values())
        lines.append(f"\nGoal: within {FIDELITY_GOAL} points of the published mean. Furthest of {len(apart)}: {' on '.join(worst[::-1])}, "
                     f"{apart[worst]:.2f} points ({apart[worst] / FIDELITY_GOAL:.2f} of the limit); {over} beyond it. "
                     f"The mean distance is {statistics.mean(apart.values()):.2f}.")
    lines.append(f"A run takes {statistics.median(seconds):.2f} CPU seconds.")
    return "\n".join(lines) + "\n"


def points(value):
    """With its sign, and no sign for nothing."""
    return f"{value:+.1f}" if abs(value) >= 0.05 else "0.0"


def mig_tables(result):
    """`result`: what mig_bench printed."""
    def average(row, who):
        return statistics.mean(run[who] for run in row["runs"])

    def gains(row):
        return [run["berth"] - run["first_fit"] for run in row["runs"]]

    rows = {(row["stream"], row["mix"], row["load"]): row for row in result["streams"]}
    mixes = list(dict.fromkeys(mix for _, mix, _ in rows))
    seeds = len(result["streams"][0]["runs"])
    lines = ["![Allocated memory slices by who chooses the places](performance_mig.svg)\n",
             f"100 A100-40GB, {seeds} seeds. Allocated memory slices in per cent: Berth · first-fit · at most; and points above "
             "first-fit, the mean of the seeds (lowest to highest).\n"]
    for stream in dict.fromkeys(stream for stream, _, _ in rows):
        loads = [load for name, mix, load in rows if (name, mix) == (stream, mixes[0])]
        lines += [f"### {stream[0].upper()}{stream[1:]}\n",
                  "| mix | " + " | ".join(f"load {load:.2f} | points" for load in loads) + " |",
                  "|---" * (1 + 2 * len(loads)) + "|"]
        for mix in mixes:
            cells = []
            for row in (rows[stream, mix, load] for load in loads):
                cells.append(" · ".join(f"{average(row, who):.1f}" for who in ("berth", "first_fit", "bound")))
                cells.append(f"{points(statistics.mean(gains(row)))} ({points(min(gains(row)))} to {points(max(gains(row)))})")
            lines.append(f"| {mix} | {' | '.join(cells)} |")
        means = [statistics.mean(statistics.mean(gains(rows[stream, mix, load])) for mix in mixes) for load in loads]
        lines.append("| mean of the mixes | " + " | ".join(f" | {points(mean)}" for mean in means) + " |\n")
        reached = ", ".join(f"{points(mean)} at load {load:.2f} ({max(mean, 0) / MIG_GOAL:.2f} of it)" for load, mean in zip(loads, means))
        lines.append(f"Goal: {MIG_GOAL} points above first-fit. Reached by the mean of the mixes: {reached}.\n")
    last = [average(row, "last_start") - average(row, "first_fit") for row in result["streams"]]
    lines.append(f"First-fit that takes the last free start instead of the first: {points(min(last))} to {points(max(last))} points.\n")
    lines += ["### Devices cut anew for what waits\n",
              "| devices | memory slices asked for | served uncut | served by the plan | devices changed | CPU, ms |",
              "|---|---|---|---|---|---|"]
    for devices in dict.fromkeys(plan["devices"] for plan in result["plans"]):
        plans = [plan for plan in result["plans"] if plan["devices"] == devices]
        cells = [f"{statistics.mean(plan[what] for plan in plans):,.0f}" for what in ("asked", "uncut", "served", "changed")]
        lines.append(f"| {devices:,} | {' | '.join(cells)} | {1e3 * statistics.mean(plan['cpu_s'] for plan in plans):,.0f} |")
    return "\n".join(lines) + "\n"


def traces_table(result):
    def way(one, name):
        return next(found for found in one["ways"] if found["name"] == name)

    def mean(one, name, key):
        return statistics.mean(way(one, name)[key])

    def against(one, name, bound):
        """What a policy allocates, and how much of the way from fgd to the bound that is."""
        fgd, reached = mean(one, "fgd", "allocated"), mean(one, name, "allocated")
        return f"{reached:.2f} ({100 * (reached - fgd) / (bound - fgd):.0f} %)" if bound else f"{reached:.2f} (–)"

    lists = result["lists"]
    names = [one["list"].removeprefix("openb_pod_list_") for one in lists]
    lines = [f"Calibration: {result['calibration_million_reads_per_s']:.1f} million dependent reads/s.\n",
             "![GPU allocation while pods arrive](traces_curve.svg)\n",
             f"GPU allocation at 130 %, the mean of {result['seeds']} seeds from {result['first_seed']} on; in brackets the "
             "part of the way from fgd to the bound.\n",
             "| list | fgd | berth | berth-told | bound online | --batch 1000 | --batch all | bound for any set |",
             "|---|---|---|---|---|---|---|---|"]
    for name, one in zip(names, lists):
        online, batch = one["bounds"]["online"], one["bounds"]["batch"]
        lines.append(f"| {name} | {mean(one, 'fgd', 'allocated'):.2f} | {against(one, 'berth', online)} | "
                     f"{against(one, 'berth-told', online)} | {online:.2f} | {against(one, 'batch-1000', batch)} | "
                     f"{against(one, 'batch', batch)} | {f'{batch:.2f}' if batch else '–'} |")
    shown = ["fgd", "berth", "berth-told", "batch-1000", "batch"]
    lines += ["\n| list | pods that did not fit: fgd | berth | berth-told | --batch 1000 | --batch all | CPU seconds a run: fgd | "
              "berth | berth-told | --batch 1000 | --batch all |", "|" + "---|" * 11]
    for name, one in zip(names, lists):
        failed = " | ".join(f"{mean(one, shown_name, 'failed'):,.0f}" for shown_name in shown)
        seconds = " | ".join(f"{statistics.median(way(one, shown_name)['seconds']):.2f}" for shown_name in shown)
        lines.append(f"| {name} | {failed} | {seconds} |")
    gains = [mean(one, "berth", "allocated") - mean(one, "fgd", "allocated") for one in lists]
    slowest = {name: max(statistics.median(way(one, name)["seconds"]) for one in lists) for name in shown}
    lines.append(f"\n- Goal: berth {ONLINE_GOAL:.1f} points above fgd in the mean of the lists, and behind on none. Reached: "
                 f"{statistics.mean(gains):+.2f} ({statistics.mean(gains) / ONLINE_GOAL:.2f} of it), {min(gains):+.2f} at least.")
    for name, one in zip(names, lists):
        if name == "default":
            reached = mean(one, "batch", "allocated")
            lines.append(f"- Goal: {BATCH_GOAL} % with the whole queue in view, on default. Reached: {reached:.2f} %.")
    lines.append(f"- Goal: at most {RUN_GOAL_S} s a run, of a policy that places each pod as it comes. Slowest list: berth {slowest['berth']:.2f} s "
                 f"({slowest['berth'] / RUN_GOAL_S:.2f} of the limit), --batch 1000 {slowest['batch-1000']:.2f} s, "
                 f"--batch all {slowest['batch']:.2f} s.")
    return "\n".join(lines) + "\n"
