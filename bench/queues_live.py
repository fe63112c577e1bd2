"""Workloads that only hold quota, on a real kube-apiserver: how many Berth admits a minute. The shape is that of Kueue's
own performance test: 5 cohorts of 6 queues with 20 units each that may borrow 100, and in every queue 350 Workloads of 1 unit
that run for 200 ms, 100 of 5 for 500 ms and 50 of 20 for 1,000 ms. All wait on the server when Berth starts. A program that
plays the job controllers (workload_bench.cc) marks them finished.

    python3 bench/queues_live.py [--part-of 1] [--limit 600]
"""
from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time

import servers
from servers import ROOT, Cluster, say

GROUP = "/apis/kueue.x-k8s.io/v1beta2"
WORKLOADS = f"{GROUP}/namespaces/default/workloads"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
COHORTS, QUEUES, NOMINAL, BORROWING = 5, 6, 20, 100
CLASSES = ((350, 1, 0.2), (100, 5, 0.5), (50, 20, 1.0))  # how many in each queue, units, seconds
IN_FLIGHT = 48  # as Berth has at most: 16 for queues, 32 for events (noteConnections)
KUEUE_A_MINUTE = {"as shipped": 2225, "with its client limit lifted": 2800}  # seen on two cores


def queue_names():
    return [f"cohort-{c}-queue-{q}" for c in range(COHORTS) for q in range(QUEUES)]


def create_queues(api):
    api.call("POST", f"{GROUP}/resourceflavors", {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor",
                                                "metadata": {"name": "units"}, "spec": {}})
    for name in queue_names():
        quota = {"name": "cpu", "nominalQuota": NOMINAL, "borrowingLimit": BORROWING}
        spec = {"cohortName": name.rsplit("-queue-", 1)[0], "namespaceSelector": {},
                "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
                "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "units", "resources": [quota]}]}]}
        api.call("POST", f"{GROUP}/clusterqueues", {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue",
                                                  "metadata": {"name": name}, "spec": spec})
        api.call("POST", f"{GROUP}/namespaces/default/localqueues",
                 {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue",
                  "metadata": {"name": name, "namespace": "default"}, "spec": {"clusterQueue": name}})


def workload(name, queue, units):
    template = {"spec": {"restartPolicy": "Never", "schedulerName": "berth",
                         "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": str(units)}}}]}}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": {"name": name, "namespace": "default"},
            "spec": {"active": True, "queueName": queue, "priority": 0,
                     "podSets": [{"name": "main", "count": 1, "template": template}]}}


def jobs(part_of):
    """(name, queue, units, seconds) in the order of submission: the classes come mixed, as from users of each."""
    each = [((i + 0.5) / (count // part_of), f"{queue}-{units}-{i}", queue, units, seconds) for count, units, seconds in CLASSES
            for i in range(count // part_of) for queue in queue_names()]
    return [one[1:] for one in sorted(each)]


def player(cluster, verb, argument, lines):
    """workload_bench as a process that has been given its lines."""
    process = subprocess.Popen([os.path.join(servers.BIN, "workload_bench"), str(cluster.admin_kubeconfig), verb, str(argument)],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdin.write("".join(json.dumps(line) + "\n" for line in lines))
    process.stdin.close()
    process.stdin = None
    return process


def result_of(process):
    try:
        out, err = process.communicate(timeout=900)
    finally:
        process.kill()  # where it has not ended by itself
    if process.returncode != 0:
        raise SystemExit(f"bench: workload_bench failed: {err}")
    return json.loads(out)


def writes(cluster):
    """Requests that the server has answered so far, by what they write."""
    out = {}
    for labels, value in re.findall(r"^apiserver_request_total\{(.*)\} (\S+)$", cluster.api.raw("GET", "/metrics")[1], re.MULTILINE):
        label = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if label["verb"] in ("POST", "PATCH", "PUT"):
            kind = "/".join(filter(None, (label["resource"], label["subresource"], label["verb"])))
            out[kind] = out.get(kind, 0) + int(float(value))
    return out


def written(before, after, played):
    """What the server has taken meanwhile, by kind. All but the last is Berth's."""
    wrote = {kind: after[kind] - before.get(kind, 0) for kind in after}
    statuses = wrote.get("workloads/status/PATCH", 0) - played["finished"]
    return {"that it waits": statuses - played["admissions"], "that it is admitted": played["admissions"],
            "events": wrote.get("events/POST", 0) + wrote.get("events/PATCH", 0),
            "counts of queues": wrote.get("clusterqueues/status/PATCH", 0) + wrote.get("localqueues/status/PATCH", 0),
            "that it has finished (the bench)": played["finished"]}


def condition(kind, status, reason, message):
    return {"type": kind, "status": status, "reason": reason, "message": message, "observedGeneration": 1,
            "lastTransitionTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}


def plain_loop(cluster, wrote, workloads):
    """Workloads a minute, when a loop that decides nothing makes the same writes for each."""
    count = workloads // 5
    result_of(player(cluster, "write", IN_FLIGHT, [{"path": WORKLOADS, "create": workload(f"plain-{i}", "nobodys", 1)} for i in range(count)]))
    given = {"clusterQueue": "nobodys", "podSetAssignments": [
        {"name": "main", "count": 1, "flavors": {"cpu": "units"}, "resourceUsage": {"cpu": "1"}}]}
    event = cluster.api.call("GET", f"{EVENTS}?limit=1")["items"][0]
    queues = [f"{GROUP}/{path}/{name}" for name in queue_names() for path in ("clusterqueues", "namespaces/default/localqueues")]
    status = {queue: cluster.api.call("GET", queue)["status"] for queue in queues}

    def body(kind, i):
        path = f"{WORKLOADS}/plain-{i % count}/status"
        if kind == "events":
            return {"path": EVENTS, "create": {**event, "metadata": {"name": f"plain.{i}", "namespace": "default"}}}
        if kind == "counts of queues":
            queue = queues[i % len(queues)]
            return {"path": f"{queue}/status", "patch": {"status": {**status[queue], "pendingWorkloads": i}}}
        if kind == "that it waits":
            text = f"couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor units, {i} more needed"
            return {"path": path, "patch": {"status": {"conditions": [condition("QuotaReserved", "False", "Pending", text)]}}}
        admitted = [condition("QuotaReserved", "True", "QuotaReserved", "Quota reserved in ClusterQueue nobodys"),
                    condition("Admitted", "True", "Admitted", "The workload is admitted")]
        if kind == "that it is admitted":
            return {"path": f"{WORKLOADS}/plain-{(i + count // 3) % count}/status", "patch": {"status": {"admission": given, "conditions": admitted}}}
        finished = condition("Finished", "True", "Succeeded", "the bench says so")
        return {"path": f"{WORKLOADS}/plain-{(i + 2 * count // 3) % count}/status", "patch": {"status": {"conditions": [*admitted, finished]}}}

    share = {kind: round(number * count / workloads) for kind, number in wrote.items()}
    mixed = sorted(((i + 0.5) / number, kind, i) for kind, number in share.items() for i in range(number))
    done = result_of(player(cluster, "write", IN_FLIGHT, [body(kind, i) for _, kind, i in mixed]))
    if done["failed"]:
        raise SystemExit(f"bench: the plain loop's writes failed, {done['failed']} of {len(mixed)}")
    return 60 * count / done["seconds"]


def measure(part_of=1, limit_s=600):
    """With `part_of` n, an n-th of the Workloads."""
    todo = jobs(part_of)
    with Cluster(components=servers.SERVERS) as cluster:
        cluster.kubectl("apply", "--server-side", "-f", f"{ROOT}/deploy/crds/v1beta2")
        deadline = time.monotonic() + 60
        while cluster.api.raw("GET", f"{WORKLOADS}?watch=true&timeoutSeconds=1")[0] != 200 and time.monotonic() < deadline:
            time.sleep(0.5)
        cluster.nodes(40, gpus=0, cpu="100", pods=1000)
        create_queues(cluster.api)
        submitted = result_of(player(cluster, "write", IN_FLIGHT, [{"path": WORKLOADS, "create": workload(*one[:3])} for one in todo]))
        say(f"queues_live: {submitted['written']} Workloads submitted within {submitted['seconds']:.0f} s")
        playing = player(cluster, "play", limit_s, [{"name": name, "seconds": seconds} for name, _, _, seconds in todo])
        playing.stderr.readline()  # "playing"
        before, began = writes(cluster), time.monotonic()
        with servers.berth_running(cluster) as (process, _):
            played = result_of(playing)
            cpu = servers.cpu_seconds(process.pid)
            wrote = written(before, writes(cluster), played)
        say(f"queues_live: {played['admitted']} admitted within {played['last'] - began:.0f} s")
        loop = plain_loop(cluster, wrote, len(todo))
    took = max(played["last"] - began, 0.001)
    units_s = sum(units * seconds for _, _, units, seconds in todo)
    return {"workloads": len(todo), "admitted": played["admitted"], "finished": played["finished"], "admissions": played["admissions"],
            "submitted_s": submitted["seconds"], "first_s": played["first"] - began, "took_s": took,
            "a_minute": 60 * played["admitted"] / took, "loop_a_minute": loop, "wrote": wrote,
            "least_s": units_s / (COHORTS * QUEUES * NOMINAL), "units": sum(units for _, _, units, _ in todo), "berth_cpu_s": cpu}


def table(result):
    count = result["workloads"]
    bound = 60 * count / result["least_s"]
    free_ms = 1000 * (result["took_s"] - result["least_s"]) * COHORTS * QUEUES * NOMINAL / result["units"]
    lines = [f"{count:,} Workloads, submitted within {result['submitted_s']:.0f} s, before Berth starts; {result['admitted']:,} admitted, "
             f"{result['finished']:,} finished. The first was admitted {result['first_s']:.1f} s after Berth's start, from which the rates count.\n",
             "| | Workloads a minute | Berth ÷ this |", "|---|---|---|", f"| Berth | {result['a_minute']:,.0f} | |",
             f"| all quota in use from Berth's start to the last | {bound:,.0f} | {result['a_minute'] / bound:.2f} |",
             f"| a plain loop makes the same writes, {IN_FLIGHT} at once | {result['loop_a_minute']:,.0f} | {result['a_minute'] / result['loop_a_minute']:.2f} |"]
    lines += [f"| Kueue on two cores, {how} | {rate:,} | {result['a_minute'] / rate:.1f} |" for how, rate in KUEUE_A_MINUTE.items()]
    lines += ["\n| written | for each Workload |", "|---|---|"]
    lines += [f"| {kind} | {number / count:.2f} |" for kind, number in result["wrote"].items()]
    lines.append(f"\nBetween two Workloads a unit of quota lies free for {free_ms:.0f} ms. "
                 f"Berth took {1000 * result['berth_cpu_s'] / max(1, result['admitted']):.1f} ms of CPU a Workload.")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part-of", type=int, default=1, help="an n-th of the Workloads (%(default)s)")
    parser.add_argument("--limit", type=float, default=600, metavar="SECONDS", help="give up after this (%(default)s)")
    options = parser.parse_args()
    found = measure(options.part_of, options.limit)
    json.dump(found, sys.stdout, indent=1)
    print("\n" + table(found))
