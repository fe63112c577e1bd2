"""The bench's figures as Markdown, and their places in docs/performance.md. For run.py."""
import datetime
import os
import re
import statistics
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs", "performance.md")


def busy_seconds():
    """CPU seconds that this machine has spent on anything so far."""
    with open("/proc/stat", encoding="utf-8") as stat:
        user, nice, system, _idle, _wait, irq, softirq, steal = map(int, stat.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def circumstances():
    """When, on what, and how quiet it was. Asked while the bench itself does nothing; takes two seconds."""
    before, cores = busy_seconds(), os.cpu_count()
    time.sleep(2)
    used = (busy_seconds() - before) / 2
    quiet = "quiet otherwise" if used < 0.1 * cores else "busy with other work, so read the ratios"
    return (f"*{datetime.date.today()}, {cores} cores, of which others used {used:.1f} just before: the machine was "
            f"{quiet}.*\n")


def told(values, digits):
    """The median, and the lowest and highest where there are several."""
    if not all(values):
        return "–"
    middle = f"{statistics.median(values):,.{digits}f}"
    return middle if len(values) == 1 else f"{middle} ({min(values):,.{digits}f}–{max(values):,.{digits}f})"


def bind_rate(seen):
    return seen["bound"]["per_second"]


def span_rate(seen):
    """Pods per second until the later of the last bind and the last event, from the first bind; 0 without events."""
    start = seen["bound"]["first_s"]
    end = max(seen["bound"]["last_s"], seen["noted"]["last_s"])
    return seen["bound"]["count"] / (end - start) if end > start and seen["noted"]["count"] else 0.0


def waiting_table(rounds, nodes, pods, limit_s):
    """`rounds`: what waiting_pods() gave, each time anew; ratios are within a round."""
    def against(name, base, rate):
        return "1" if name == base else told([rate(runs[name]) / rate(runs[base]) if base in runs else 0 for runs in rounds], 2)

    often = f", {len(rounds)} rounds: medians (lowest–highest)" if len(rounds) > 1 else ""
    lines = [f"{nodes:,} nodes × 8 GPUs, {pods:,} one-GPU pods waiting{often}.\n",
             "| what | pods bound/s | ÷ raw binds | binds and events, pods/s | ÷ plain loop | servers' CPU, ms a pod | own CPU, ms a pod |",
             "|---|---|---|---|---|---|---|"]
    for name in rounds[0]:
        least = min(runs[name]["bound"]["count"] for runs in rounds)
        part = "" if least >= pods else f" ({least:,} bound in {limit_s} s)"
        cpu = [told([1e3 * runs[name].get(key, 0) / runs[name]["bound"]["count"] for runs in rounds], 2)
               for key in ("servers_cpu_s", "cpu_s")]
        lines.append(f"| {name}{part} | {told([bind_rate(runs[name]) for runs in rounds], 0)} | {against(name, 'raw', bind_rate)} | "
                     f"{told([span_rate(runs[name]) for runs in rounds], 0)} | {against(name, 'loop', span_rate)} | "
                     f"{' | '.join(cpu)} |")
    berth = [runs["berth"] for runs in rounds]
    lines.append(f"\nBerth dropped {max(run['dropped_events'] for run in berth):.0f} events and used "
                 f"{told([run['cpu_s'] for run in berth], 2)} s of CPU; its owner thread was busy for "
                 f"{told([run['owner_busy_s'] for run in berth], 3)} s; its longest turn was "
                 f"{told([1e3 * run['longest_turn_s'] for run in berth], 0)} ms (stated maximum "
                 f"{1e3 * berth[0]['turn_max_s']:.0f} ms, {sum(run['turns_over_max'] for run in berth):.0f} turns above it).")
    if "kube-scheduler" in rounds[0]:
        lines[-1] += f" Berth ÷ kube-scheduler: {against('berth', 'kube-scheduler', bind_rate)}."
    return "\n".join(lines) + "\n"


def arrivals_table(rounds, nodes, raw_rate, share):
    often = f" {len(rounds)} rounds: medians (lowest–highest)." if len(rounds) > 1 else ""
    lines = [f"{nodes:,} nodes × 8 GPUs; one-GPU pods arrive at {share * raw_rate:,.0f}/s, {share:.2f} of the raw bind rate of "
             f"this run.{often}\n",
             "| scheduler | pods | created/s | create answered, ms: p50 | p99 | create to bound, ms: p50 | p99 | bound |",
             "|---|---|---|---|---|---|---|---|"]
    for name in rounds[0]:
        seen = [runs[name] for runs in rounds]
        waits = [told([run[what][percentile] for run in seen], 0)
                 for what in ("create_ms", "create_to_bound_ms") for percentile in ("p50", "p99")]
        lines.append(f"| {name} | {seen[0]['pods']:,} | {told([run['created_per_s'] for run in seen], 0)} | "
                     f"{' | '.join(waits)} | {min(run['bound'] for run in seen):,} |")
    if any(run["bound"] < run["pods"] for runs in rounds for run in runs.values()):
        lines.append("\nPods that were not bound in the end count with the time that they had waited.")
    return "\n".join(lines) + "\n"


def engine_table(result):
    lines = [f"Calibration: {result['calibration_million_reads_per_s']:.1f} million dependent reads/s.\n",
             "| run | nodes | pods | classes or deployments | placements/s | cycle, s | facts in, s |", "|---|---|---|---|---|---|---|"]
    for r in result["runs"]:
        facts = r["apply_nodes_s"] + r["apply_pods_s"]
        lines.append(f"| {r['name']} | {r['nodes']:,} | {min(r['pods'], 8 * r['nodes']) if r['name'] == 'placements' else r['pods']:,} | "
                     f"{r['classes']:,} | {r['placements_per_s']:,.0f} | {r['cycle_s']:.3f} | {facts:.3f} |")
    return "\n".join(lines) + f"\n\nLargest memory: {result['max_rss_mib']} MiB.\n"


def curve_table(points):
    lines = ["![Cost of one decision against the number of nodes](performance_curve.svg)\n",
             "| pods | nodes | µs per decision, median | lowest–highest of runs | ÷ the smallest cluster's |", "|---|---|---|---|---|"]
    first = {}
    for point in points:
        us = point["us_per_decision"]
        middle = statistics.median(us)
        grown = middle / first.setdefault(point["name"], middle)
        lines.append(f"| {point['name']} | {point['nodes']:,} | {middle:.2f} | {min(us):.2f}–{max(us):.2f} | {grown:.2f} |")
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
    lines = [f"100 A100-40GB, {seeds} seeds. Allocated memory slices in per cent: Berth · first-fit · at most; and points above "
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
    lines += ["\n| list | pods that did not fit: fgd | berth | berth-told | --batch 1000 | --batch all | seconds a run: fgd | "
              "berth | berth-told | --batch 1000 | --batch all |", "|" + "---|" * 11]
    for name, one in zip(names, lists):
        failed = " | ".join(f"{mean(one, shown_name, 'failed'):,.0f}" for shown_name in shown)
        seconds = " | ".join(f"{statistics.median(way(one, shown_name)['seconds']):.2f}" for shown_name in shown)
        lines.append(f"| {name} | {failed} | {seconds} |")
    return "\n".join(lines) + "\n"


def put(section, text):
    """Replaces the section between its markers in the page."""
    with open(PAGE, encoding="utf-8") as page:
        old = page.read()
    pattern = re.compile(rf"(<!-- bench: {re.escape(section)} -->\n).*?(<!-- bench: end -->)", re.DOTALL)
    if not pattern.search(old):
        raise SystemExit(f"bench: docs/performance.md has no '<!-- bench: {section} -->'")
    with open(PAGE, "w", encoding="utf-8") as page:
        page.write(pattern.sub(lambda found: f"{found.group(1)}{text}{found.group(2)}", old))
