"""The engine itself on the nodes and pods of public traces, as manifests for `berth simulate`. For run.py.

Pods of a list, all of them and then others drawn from it until they ask for 1.3 times the GPUs of the nodes, come in a
random order, one second after the other or all at once. docs/traces.md says where the traces are.
"""
import csv
import json
import os
import random
import statistics
import subprocess
import tempfile

from servers import BIN, say

INFLATE = 1.3
SEEDS = (1, 2, 3)
LISTS = ("default", "multigpu40", "gpushare60")
WEIGHTS = {"default weights": {}, "`fragmentation-aware: 5`": {"fragmentation-aware": 5},
           "that alone, without `pack` and `spread`": {"fragmentation-aware": 5, "pack": 0, "spread": 0}}
SET_WORK = 3_000_000
NODES = "openb_node_list_gpu_node.csv"


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def node_manifest(row):
    amounts = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi", "pods": "1000"}
    if int(row["gpu"]):
        amounts["nvidia.com/gpu"] = row["gpu"]
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": row["sn"], "labels": {"kubernetes.io/hostname": row["sn"], "nvidia.com/gpu.product": row["model"]}},
            "status": {"allocatable": amounts, "capacity": amounts}}


def pod_manifest(row, number, arrival_s):
    gpus, milli = int(row["num_gpu"]), int(row["gpu_milli"])
    requests = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi"}
    annotations = {"berth.dev/simulated-arrival": f"{arrival_s}s"}
    if gpus == 1 and milli < 1000:
        annotations["berth.dev/gpu-fraction"] = str(milli / 1000)
    elif gpus:
        requests["nvidia.com/gpu"] = str(gpus)
    spec = {"containers": [{"name": "main", "image": "main", "resources": {"requests": requests, "limits": requests}}]}
    models = [model for model in (row.get("gpu_spec") or "").split("|") if model]
    if models:
        term = {"matchExpressions": [{"key": "nvidia.com/gpu.product", "operator": "In", "values": models}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": f"pod-{number}", "namespace": "default", "annotations": annotations}, "spec": spec}


def gpus_of(row):
    return int(row["num_gpu"]) * int(row["gpu_milli"]) / 1000


def cluster(nodes, pods, seed, apart_s):
    """Manifests of the nodes in a random order and of pods that come so many seconds apart; what each pod asks for; all GPUs."""
    draw = random.Random(seed)
    fleet = sum(int(node["gpu"]) for node in nodes)
    arriving = draw.sample(pods, len(pods))
    asked = sum(map(gpus_of, arriving))
    while asked < INFLATE * fleet:
        arriving.append(draw.choice(pods))
        asked += gpus_of(arriving[-1])
    items = [node_manifest(node) for node in draw.sample(nodes, len(nodes))]
    items += [pod_manifest(pod, number, number * apart_s) for number, pod in enumerate(arriving)]
    return {"apiVersion": "v1", "kind": "List", "items": items}, {f"pod-{n}": gpus_of(pod) for n, pod in enumerate(arriving)}, fleet


def allocated(nodes, pods, seed, apart_s, weights, sets):
    """GPUs allocated in the end, in per cent of all, and how many pods have a place."""
    manifests, asked, fleet = cluster(nodes, pods, seed, apart_s)
    config = {"apiVersion": "berth.dev/v1alpha1", "kind": "BerthConfiguration", "scores": weights}
    if sets:
        config["setPacking"] = {"enabled": True, "maxWork": SET_WORK}
        config["cycleMaxWork"] = 10 * SET_WORK
    with tempfile.TemporaryDirectory() as folder:
        for name, content in (("cluster.json", manifests), ("berth.yaml", config)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                json.dump(content, file)
        run = subprocess.run([os.path.join(BIN, "berth"), "simulate", "-f", os.path.join(folder, "cluster.json"), "--config",
                              os.path.join(folder, "berth.yaml"), "-o", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if run.returncode not in (0, 3):
        raise SystemExit(f"bench: berth simulate failed: {run.stderr[-2000:]}")
    placed = [pod["name"] for pod in json.loads(run.stdout)["pods"] if pod["node"]]
    return 100 * sum(asked[name] for name in placed) / fleet, len(placed)


def by_policy(folder, name, policy):
    """What `berth simulate --trace` allocates by a policy of its own, in per cent: the mean of the seeds."""
    reached = []
    for seed in SEEDS:
        run = subprocess.run([os.path.join(BIN, "berth"), "simulate", "--trace", "openb", "--nodes", os.path.join(folder, NODES),
                              "--pods", os.path.join(folder, f"openb_pod_list_{name}.csv"), "--seed", str(seed), "--policy", policy,
                              "-o", "json"], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        reached.append(list(json.loads(run.stdout)["gpu_allocation_percent"].values())[-1])
    return statistics.mean(reached)


def measure(folder, names, apart_s, weights, ways):
    """For each list, weights and way (as a set or not): GPUs allocated in per cent, and pods placed, means of the seeds."""
    nodes = read(os.path.join(folder, NODES))
    out = []
    for name in names:
        pods = read(os.path.join(folder, f"openb_pod_list_{name}.csv"))
        for weight in weights:
            for sets in ways:
                say(f"{name}, {weight}{', as a set' if sets else ''}")
                runs = [allocated(nodes, pods, seed, apart_s, WEIGHTS[weight], sets) for seed in SEEDS]
                out.append({"list": name, "weights": weight, "as_a_set": sets, "allocated": statistics.mean(run[0] for run in runs),
                            "placed": statistics.mean(run[1] for run in runs)})
    return out
