"""Workloads that only hold quota, on a real kube-apiserver: how many Berth admits a minute. The shape is that of Kueue's
own performance test: 5 cohorts of 6 queues with 20 units each that may borrow 100, and in every queue 350 Workloads of 1 unit
that run for 200 ms, 100 of 5 for 500 ms and 50 of 20 for 1,000 ms, all submitted at once. A program that plays the
job controllers marks them finished.

    python3 bench/queues_live.py [--part-of 1] [--limit 600]
"""
from __future__ import annotations

import argparse
import heapq
import http.client
import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import servers
from servers import ROOT, Cluster, say

API = "/apis/kueue.x-k8s.io/v1beta2"
WORKLOADS = f"{API}/namespaces/default/workloads"
COHORTS, QUEUES, NOMINAL, BORROWING = 5, 6, 20, 100
CLASSES = ((350, 1, 0.2), (100, 5, 0.5), (50, 20, 1.0))  # how many in each queue, units, seconds
MERGE = "application/merge-patch+json"
WRITERS = 16
KUEUE_A_MINUTE = {"as shipped": 2225, "with its client limit lifted": 2800}  # seen on two cores


def queue_names():
    return [f"cohort-{c}-queue-{q}" for c in range(COHORTS) for q in range(QUEUES)]


def create_queues(api):
    api.call("POST", f"{API}/resourceflavors", {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor",
                                                "metadata": {"name": "units"}, "spec": {}})
    for name in queue_names():
        quota = {"name": "cpu", "nominalQuota": NOMINAL, "borrowingLimit": BORROWING}
        spec = {"cohortName": name.rsplit("-queue-", 1)[0], "namespaceSelector": {},
                "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
                "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "units", "resources": [quota]}]}]}
        api.call("POST", f"{API}/clusterqueues", {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue",
                                                  "metadata": {"name": name}, "spec": spec})
        api.call("POST", f"{API}/namespaces/default/localqueues",
                 {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue",
                  "metadata": {"name": name, "namespace": "default"}, "spec": {"clusterQueue": name}})


def workload(name, queue, units):
    template = {"spec": {"restartPolicy": "Never", "schedulerName": "berth",
                         "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": str(units)}}}]}}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": {"name": name, "namespace": "default"},
            "spec": {"active": True, "queueName": queue, "priority": 0,
                     "podSets": [{"name": "main", "count": 1, "template": template}]}}


def condition(kind, reason):
    return {"type": kind, "status": "True", "reason": reason, "message": f"the bench says {reason}",
            "lastTransitionTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}


def plain_loop(api, count):
    """Writes a second: the status that an admission writes, to Workloads of a queue that is not there."""
    with ThreadPoolExecutor(WRITERS) as pool:
        names = [f"plain-{i}" for i in range(count)]
        list(pool.map(lambda name: api.call("POST", WORKLOADS, workload(name, "nobodys", 1)), names))
        given = {"clusterQueue": "nobodys", "podSetAssignments": [
            {"name": "main", "count": 1, "flavors": {"cpu": "units"}, "resourceUsage": {"cpu": "1"}}]}
        body = {"status": {"admission": given, "conditions": [condition("QuotaReserved", "QuotaReserved"), condition("Admitted", "Admitted")]}}
        began = time.monotonic()
        list(pool.map(lambda name: api.call("PATCH", f"{WORKLOADS}/{name}/status", body, content_type=MERGE), names))
        rate = count / (time.monotonic() - began)
        list(pool.map(lambda name: api.call("DELETE", f"{WORKLOADS}/{name}"), names))
    return rate


class Controller:
    """Watches Workloads, and marks each as finished when it has run for its time."""

    def __init__(self, cluster, seconds_of, pool):
        self.api, self.seconds_of, self.pool = cluster.api, seconds_of, pool
        self.admitted: dict[str, float] = {}  # when each was first
        self.running: dict[str, list] = {}    # with their conditions
        self.finished: set[str] = set()
        self.ending: list[tuple[float, str]] = []
        self.lock = threading.Condition()
        self.connect = lambda: http.client.HTTPSConnection("127.0.0.1", cluster.api._port, context=cluster.api._tls, timeout=60)
        self.stopped = False
        for target in (self.watch, self.end_in_time):
            threading.Thread(target=target, daemon=True).start()

    def watch(self):
        while not self.stopped:  # the server ends a watch that is slow to read; the next begins with all that is there
            connection = self.connect()
            connection.request("GET", f"{WORKLOADS}?watch=true")
            answer = connection.getresponse()
            while not self.stopped and (line := answer.readline()):
                one = json.loads(line)["object"]
                if one["metadata"].get("name") in self.seconds_of:
                    self.see(one["metadata"]["name"], one.get("status", {}).get("conditions", []))
            connection.close()

    def see(self, name, conditions):
        holds = {each["type"] for each in conditions if each["status"] == "True"}
        with self.lock:
            if "Admitted" not in holds or "Evicted" in holds or "Finished" in holds:
                self.running.pop(name, None)
                return
            is_new = name not in self.running and name not in self.finished
            self.running[name] = conditions
            now = time.monotonic()
            self.admitted.setdefault(name, now)
            if is_new:
                heapq.heappush(self.ending, (now + self.seconds_of[name], name))
                self.lock.notify()

    def end_in_time(self):
        while not self.stopped:
            with self.lock:
                wait = self.ending[0][0] - time.monotonic() if self.ending else 0.5
                if wait > 0:
                    self.lock.wait(wait)
                    continue
                _, name = heapq.heappop(self.ending)
                conditions = self.running.pop(name, None)
                if conditions is not None:
                    self.finished.add(name)
                    self.pool.submit(self.end, name, conditions)

    def end(self, name, conditions):
        body = {"status": {"conditions": [*conditions, condition("Finished", "Succeeded")]}}
        self.api.call("PATCH", f"{WORKLOADS}/{name}/status", body, content_type=MERGE)


def measure(part_of=1, limit_s=600):
    """With `part_of` n, an n-th of the Workloads."""
    with Cluster(components=servers.SERVERS) as cluster:
        cluster.kubectl("apply", "--server-side", "-f", f"{ROOT}/deploy/crds/v1beta2")
        deadline = time.monotonic() + 60
        while cluster.api.raw("GET", f"{WORKLOADS}?watch=true&timeoutSeconds=1")[0] != 200 and time.monotonic() < deadline:
            time.sleep(0.5)
        cluster.nodes(40, gpus=0, cpu="100", pods=1000)
        create_queues(cluster.api)
        loop = plain_loop(cluster.api, 3000 // part_of)
        say(f"queues_live: a plain loop writes {loop:.0f} statuses a second")
        todo = [(f"{queue}-{units}-{i}", queue, units, seconds) for count, units, seconds in CLASSES
                for i in range(count // part_of) for queue in queue_names()]
        with servers.berth_running(cluster) as (process, port), ThreadPoolExecutor(WRITERS) as pool, ThreadPoolExecutor(WRITERS) as enders:
            while servers.http_get(port, "/readyz") is None:
                time.sleep(0.1)
            controller = Controller(cluster, {name: seconds for name, _, _, seconds in todo}, enders)
            began = time.monotonic()
            list(pool.map(lambda one: cluster.api.call("POST", WORKLOADS, workload(*one[:3])), todo))
            submitted = time.monotonic() - began
            while len(controller.finished) < len(todo) and time.monotonic() - began < limit_s:
                time.sleep(0.2)
            controller.stopped = True
            cpu = servers.cpu_seconds(process.pid)
        took = max(controller.admitted.values(), default=began) - began
    units_s = sum(units * seconds for _, _, units, seconds in todo)
    return {"workloads": len(todo), "admitted": len(controller.admitted), "finished": len(controller.finished), "loop_a_second": loop,
            "submitted_s": submitted, "took_s": took, "a_minute": 60 * len(controller.admitted) / took if took else 0,
            "least_s": units_s / (COHORTS * QUEUES * NOMINAL), "berth_cpu_s": cpu}


def table(result):
    bound = 60 * result["workloads"] / result["least_s"]
    loop = 60 * result["loop_a_second"]
    lines = [f"{result['workloads']:,} Workloads, {result['admitted']:,} admitted, {result['finished']:,} finished; submitted within "
             f"{result['submitted_s']:.0f} s.\n",
             "| | a minute | Berth ÷ this |", "|---|---|---|", f"| Berth | {result['a_minute']:,.0f} | |",
             f"| all queues full from the first second to the last | {bound:,.0f} | {result['a_minute'] / bound:.2f} |",
             f"| the same server takes such statuses from a plain loop | {loop:,.0f} | {result['a_minute'] / loop:.2f} |"]
    lines += [f"| Kueue on two cores, {how} | {rate:,} | {result['a_minute'] / rate:.1f} |" for how, rate in KUEUE_A_MINUTE.items()]
    lines.append(f"\nBerth took {1000 * result['berth_cpu_s'] / max(1, result['admitted']):.1f} ms of CPU a Workload.")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part-of", type=int, default=1, help="an n-th of the Workloads (%(default)s)")
    parser.add_argument("--limit", type=float, default=600, metavar="SECONDS", help="give up after this (%(default)s)")
    options = parser.parse_args()
    found = measure(options.part_of, options.limit)
    json.dump(found, sys.stdout, indent=1)
    print("\n" + table(found))
