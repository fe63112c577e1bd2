"""The table of what cycles cost where most work waits in queues, from what queue_bench printed."""

from __future__ import annotations

GOAL_MS = 50.0


def tables(result: dict) -> str:
    waiting, together, victims, drain = (result[part] for part in ("waiting", "one_cohort", "victims", "drain"))
    lines = [f"{waiting['workloads']:,} workloads of one pod with 1 to 8 GPUs in {waiting['queues']:,} queues of cohorts of ten, "
             f"{waiting['nodes']:,} nodes of eight GPUs; CPU ms of the thread, until nothing more is decided.\n",
             "| what happens | mean | longest |", "|---|---|---|",
             f"| all are new; {waiting['admitted']:,} are let in | {waiting['first_ms']:,.0f} | |",
             line("those that borrowed in the first cycle give it back, in turns", waiting["given_back"]),
             line("a workload has ended, and lets others in", waiting["ended"]),
             line("one has come, and waits", waiting["came"]), line("nothing", waiting["idle"]),
             f"| ten minutes later room is kept for {waiting['rooms']:,}, a few in each cycle | {waiting['due_ms']:,.0f} in all | |",
             line("then one has ended, and others have room kept", waiting["kept"]["ended"]),
             line("one has come, and waits", waiting["kept"]["came"]), line("nothing", waiting["kept"]["idle"]),
             f"\nAll of {together['queues']} queues in one cohort, {together['workloads']:,} workloads on {together['nodes']:,} nodes: where one has "
             f"ended it takes {together['ended']['mean_ms']:.1f} ms, {together['ended']['longest_ms']:.1f} at most; with room kept for "
             f"{together['rooms']} of them {together['kept']['ended']['mean_ms']:.1f} and {together['kept']['ended']['longest_ms']:.1f}, since each "
             "that is let in changes what is kept for all behind it.",
             "\n| victims | nodes | by | taken | CPU ms |", "|---|---|---|---|---|"]
    for one in victims:
        lines.append(f"| {one['victims']:,} | {one['nodes']:,} | {'fair shares' if one['fair'] else 'priority and borrowing'} | "
                     f"{one['evicted']:,} | {one['ms']:.1f} |")
    lines.append(f"\n{drain['workloads']:,} workloads in 6 queues on 100 nodes, until the last has run: {drain['cycles']} cycles with something to "
                 f"do, {drain['ms']:,.0f} ms in all, {1000 * drain['ms_per_workload']:.0f} µs a workload.")
    worst = max(part[kind]["longest_ms"] for part in (waiting, waiting["kept"]) for kind in ("ended", "came", "idle"))
    lines.append(f"\nGoal: a full cycle, and preemption among 700 victims, in {GOAL_MS:.0f} ms. A cycle in which something has ended or come takes "
                 f"{worst:.1f} ms at most ({worst / GOAL_MS:.2f} of the limit), preemption {max(one['ms'] for one in victims):.1f} ms "
                 f"({max(one['ms'] for one in victims) / GOAL_MS:.2f}).")
    return "\n".join(lines) + "\n"


def line(what: str, times: dict) -> str:
    return f"| {what} | {times['mean_ms']:,.2f} | {times['longest_ms']:,.2f} |"
