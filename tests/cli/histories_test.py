#!/usr/bin/env python3
"""histories_test.py BERTH [FIRST [COUNT]]: random histories of small fleets come to an end, and sell nothing twice.

Nodes of whole GPUs and of ones that may be cut anew, queues of all policies in one cohort, Jobs and pods of all kinds and
priorities. Of each history the simulator's report is added up anew: what of a node's GPUs, processors and pods is in use
at any time is no more than it has. One that does not end is ended by the time limit of the test.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from typing import Any

BERTH = sys.argv[1]
KUEUE = "kueue.x-k8s.io/v1beta2"
PROFILES = ["1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb"]
PRIORITIES = {"low": (-10, "Never"), "mid": (5, "PreemptLowerPriority"), "high": (10, "PreemptLowerPriority"),
              "patient": (10, "Never")}
ONCE_WRONG = [1248]  # seeds
Object = dict[str, Any]


class History:
    """The manifests of one history, by seed."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.mig = self.rng.random() < 0.6
        self.gpus = self.rng.choice([1, 2, 4]) if self.mig else self.rng.choice([2, 4, 8])
        self.objects: list[Object] = []
        self.queues = self.rng.randint(1, 3)
        self.resources = ["cpu", "nvidia.com/gpu"] + ([f"nvidia.com/mig-{p}" for p in PROFILES] if self.mig else [])
        nodes = self.rng.randint(1, 3)
        for n in range(nodes):
            self.add_node(n)
        self.objects.append({"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "default"}})
        for q in range(self.queues):
            self.add_queue(q, nodes * self.gpus)
        for name, (value, policy) in PRIORITIES.items():
            self.objects.append({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
                                 "value": value, "preemptionPolicy": policy})
        self.longest, self.declare = self.rng.choice([5, 20, 40]), self.rng.choice([0, 0.5, 1])
        self.fair = self.rng.random() < 0.4
        at = 0
        for i in range(self.rng.randint(20, 60)):
            self.add_work(i, at)
            at += self.rng.randint(1, 120)

    def add_node(self, n: int) -> None:
        labels = {}
        if self.mig and self.rng.random() < 0.85:
            labels = {"berth.dev/mig-policy": "dynamic", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB",
                      "nvidia.com/gpu.count": str(self.gpus)}
        capacity = {"cpu": self.rng.choice([10, 4 * self.gpus, 10 * self.gpus]), "memory": "512Gi",
                    "pods": self.rng.choice([8, 110]), "nvidia.com/gpu": self.gpus}
        self.objects.append({"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{n}", "labels": labels},
                             "status": {"capacity": capacity}})

    def add_queue(self, q: int, gpus: int) -> None:
        whole = {"cpu": 10 * gpus, "nvidia.com/gpu": gpus}
        quotas = [{"name": name, "nominalQuota": int(whole.get(name, 7 * gpus) * self.rng.choice([0, 0.25, 0.5, 1]))}
                  for name in self.resources]
        preemption = {
            "withinClusterQueue": self.rng.choice(["Never", "LowerPriority", "LowerOrNewerEqualPriority"]),
            "reclaimWithinCohort": self.rng.choice(["Never", "LowerPriority", "Any", "Any"])}
        spec = {"cohortName": "all", "namespaceSelector": {}, "preemption": preemption,
                "queueingStrategy": self.rng.choice(["BestEffortFIFO", "BestEffortFIFO", "StrictFIFO"]),
                "resourceGroups": [{"coveredResources": self.resources,
                                    "flavors": [{"name": "default", "resources": quotas}]}]}
        self.objects.append({"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": f"c{q}"}, "spec": spec})
        self.objects.append({"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": {"name": f"q{q}", "namespace": "default"},
                             "spec": {"clusterQueue": f"c{q}"}})

    def add_work(self, i: int, at: int) -> None:
        rng, minutes = self.rng, self.rng.randint(1, self.longest)
        annotations = {"berth.dev/simulated-runtime": f"{minutes}m"}
        if rng.random() < self.declare:
            annotations["berth.dev/runtime-estimate"] = f"{rng.choice([minutes, minutes, 2 * minutes])}m"
        limits: dict[str, int] = {}
        if self.mig and rng.random() < 0.6:
            limits = {f"nvidia.com/mig-{rng.choice(PROFILES)}": rng.choice([1, 1, 1, 2])}
        elif rng.random() < 0.2:
            annotations["berth.dev/gpu-fraction"] = rng.choice(["0.5", "0.25", "0.3"])
        elif rng.random() < 0.8:
            limits = {"nvidia.com/gpu": rng.choice([self.gpus, rng.randint(1, max(1, self.gpus // 2))])}
        cpu = rng.choice([1, 1, 5, 10])
        spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": rng.choice([0, 30, 30, 120]),
                "containers": [{"name": "m", "image": "i", "resources": {"limits": limits, "requests": {"cpu": cpu}}}]}
        if rng.random() < 0.6:
            spec["priorityClassName"] = rng.choice(list(PRIORITIES))
        arrival = {"berth.dev/simulated-arrival": f"{at}s"}
        if rng.random() < 0.4:
            metadata = {"name": f"s{i}", "annotations": {**annotations, **arrival}}
            self.objects.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
            return
        pods = rng.choice([1, 1, 2, 3])
        if pods > 1 and rng.random() < 0.4:
            arrival["kueue.x-k8s.io/job-min-parallelism"] = "1"
        labels = {"kueue.x-k8s.io/queue-name": f"q{rng.randrange(self.queues)}"}
        self.objects.append({"apiVersion": "batch/v1", "kind": "Job",
                             "metadata": {"name": f"s{i}", "labels": labels, "annotations": arrival},
                             "spec": {"parallelism": pods, "completions": pods * rng.choice([1, 1, 2]),
                                      "template": {"metadata": {"annotations": annotations}, "spec": spec}}})

    def over_use(self, report: Object) -> str:
        """Where more is in use than a node has; empty: nowhere."""
        has = {o["metadata"]["name"]: o["status"]["capacity"] for o in self.objects if o["kind"] == "Node"}
        specs = {o["metadata"]["name"]: o["spec"] if o["kind"] == "Pod" else o["spec"]["template"]["spec"]
                 for o in self.objects if o["kind"] in ("Pod", "Job")}
        changes: dict[tuple[str, str], list[tuple[float, int]]] = {}
        for pod in report["pods"]:
            if pod["node"] is None or pod["started_s"] is None:
                continue
            asked = specs[pod["name"].split("-")[0]]["containers"][0]["resources"]
            end = pod["finished_s"] if pod["finished_s"] is not None else float("inf")
            for name, amount in {**asked["limits"], **asked["requests"], "pods": 1}.items():
                if name in has[pod["node"]]:
                    changes.setdefault((pod["node"], name), []).extend([(pod["started_s"], amount), (end, -amount)])
        for (node, name), all_changes in changes.items():
            used = 0
            for at, amount in sorted(all_changes):  # who leaves at a time comes before who comes
                used += amount
                if used > has[node][name]:
                    return f"{used} of {has[node][name]} {name} of {node} are in use at {at} s"
        return ""


def play(seed: int) -> str:
    """What is wrong with a history; empty: nothing."""
    history = History(seed)
    manifests = "\n---\n".join(json.dumps(each) for each in history.objects)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
        config.write("apiVersion: berth.dev/v1alpha1\nkind: BerthConfiguration\n" + "fairSharing: {}\n" * history.fair)
        config.flush()
        run = subprocess.run([BERTH, "simulate", "-f", "-", "-o", "json", "--config", config.name], input=manifests,
                             capture_output=True, text=True, check=False)
    if run.returncode not in (0, 3):
        return f"exit {run.returncode}: {run.stderr[-500:]}"
    return history.over_use(json.loads(run.stdout))


def main() -> None:
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 600 if os.environ.get("BERTH_LONG") else 60
    for seed in [*ONCE_WRONG, *range(first, first + count)]:
        if wrong := play(seed):
            sys.exit(f"history {seed}: {wrong}")
    print(f"{count} histories have ended")


main()
