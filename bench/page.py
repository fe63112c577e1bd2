"""The bench's figures as Markdown, and their places in docs/. For run.py."""
import datetime
import os
import re
import statistics
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


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


def put(section, text, name):
    """Replaces the section between its markers in the page of docs/."""
    path = os.path.join(ROOT, "docs", name)
    with open(path, encoding="utf-8") as page:
        old = page.read()
    pattern = re.compile(rf"(<!-- bench: {re.escape(section)} -->\n).*?(<!-- bench: end -->)", re.DOTALL)
    if not pattern.search(old):
        raise SystemExit(f"bench: docs/{name} has no '<!-- bench: {section} -->'")
    with open(path, "w", encoding="utf-8") as page:
        page.write(pattern.sub(lambda found: f"{found.group(1)}{text}{found.group(2)}", old))
