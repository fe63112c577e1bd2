"""The pods of a Case, in the order in which they come, and those that ran before."""

from __future__ import annotations

from . import constraints
from .draw import Draw
from .nodes import FPGA, GPU
from .world import NAMESPACES, POLITE

# How often a pod has a feature where its case puts no emphasis on it, and where it does.
USUAL, EMPHASISED = 0.06, 0.6


def _requests(draw: Draw, emphasis: frozenset[str]) -> dict[str, str]:
    """What a container asks for; a large share of a node where room is what the case is about."""
    if draw.chance(0.1):
        return {}
    large = bool(emphasis & {"capacity", "preemption"})
    asks = {"cpu": draw.pick(("500m", "1", "2", "3") if large else ("100m", "250m", "1"))}
    if draw.chance(0.5):
        asks["memory"] = draw.pick(("256Mi", "1Gi", "3Gi") if large else ("64Mi", "256Mi"))
    if draw.chance(0.2):
        asks[GPU] = draw.pick(("1", "1", "2", "4"))
    if draw.chance(0.04):
        asks[FPGA] = "1"
    if draw.chance(0.03):
        asks["ephemeral-storage"] = draw.pick(("512Mi", "20Gi"))
    if draw.chance(0.01):
        asks["example.com/none-has-it"] = "1"
    return asks


def _container(draw: Draw, emphasis: frozenset[str], name: str) -> dict:
    asks = _requests(draw, emphasis)
    extended = {resource: amount for resource, amount in asks.items() if "/" in resource}
    if asks and draw.chance(0.1):  # requests are taken from limits
        return {"name": name, "image": "none", "resources": {"limits": asks}}
    resources = {"requests": asks, **({"limits": extended} if extended else {})}
    return {"name": name, "image": "none", "resources": resources if asks else {}}


def _ports(draw: Draw) -> list[dict]:
    found = []
    for port in draw.some((80, 8080, 9090), draw.pick((1, 1, 2))):
        one: dict = {"containerPort": port, "hostPort": port}
        if draw.chance(0.3):
            one["protocol"] = "UDP"
        if draw.chance(0.3):
            one["hostIP"] = draw.pick(("127.0.0.1", "10.0.0.1", "0.0.0.0"))
        found.append(one)
    return found


def _spec(draw: Draw, emphasis: frozenset[str], nodes: list[str]) -> dict:
    """What a pod asks for, its priority and its volumes excepted."""

    def has(feature: str, usual: float = USUAL) -> bool:
        return draw.chance(EMPHASISED if feature in emphasis else usual)

    spec: dict = {"containers": [_container(draw, emphasis, "main")]}
    if draw.chance(0.08):
        spec["containers"].append(_container(draw, emphasis, "second"))
    if draw.chance(0.08):
        init = _container(draw, emphasis, "init")
        spec["initContainers"] = [{**init, "restartPolicy": "Always"} if draw.chance(0.5) else init]
    if has("ports", 0.0):
        spec["containers"][0]["ports"] = _ports(draw)
    if has("taints"):
        spec["tolerations"] = constraints.tolerations(draw)
    if has("affinity", 0.3 if "spread" in emphasis else USUAL) and draw.chance(0.5):
        spec["nodeSelector"] = constraints.node_selector(draw)
    affinity: dict = {}
    if has("affinity"):
        affinity["nodeAffinity"] = constraints.node_affinity(draw, nodes)
    if has("inter-pod", 0.0):
        affinity.update(constraints.pod_affinity(draw))
    if affinity:
        spec["affinity"] = affinity
    if has("spread", 0.0):
        spec["topologySpreadConstraints"] = constraints.spread(draw)
    return spec


def _priority(draw: Draw, late: bool) -> str | None:
    """The early pods fill the nodes, the late ones want their places."""
    if not late:
        return draw.pick((None, "scavenger", "scavenger", "normal", "normal", "high"))
    return draw.pick((None, "normal", "high", "high", "critical", "critical", POLITE))


def pod(draw: Draw, number: int, count: int, emphasis: frozenset[str], nodes: list[str]) -> dict:
    labels = {"app": draw.pick(constraints.OFTEN_WEB)}
    if draw.chance(0.6):
        labels["version"] = draw.pick(constraints.VERSIONS)
    if draw.chance(0.15):
        labels["tier"] = "front"
    spec = _spec(draw, emphasis, nodes)
    if "preemption" in emphasis:
        priority = _priority(draw, late=number * 2 >= count)
        if priority is not None:
            spec["priorityClassName"] = priority
        if priority == "high" and draw.chance(0.2):
            spec["preemptionPolicy"] = "PreemptLowerPriority"  # what its class says anyway
    namespace = draw.pick(("alpha", "alpha", "alpha", "beta", "gamma"))
    metadata = {"name": f"p{number}", "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def running(draw: Draw, number: int, emphasis: frozenset[str], nodes: list[str]) -> dict:
    """A pod that was there before all others, put on its node past any scheduler: nothing says that it fits there."""
    one = pod(draw, number, 1_000_000, emphasis, nodes)
    one["metadata"]["name"] = f"r{number}"
    one["spec"]["nodeName"] = draw.pick(nodes)
    return one


def disruption_budget(draw: Draw, number: int) -> dict:
    """With the status that a controller would have written: how many more of its pods may go."""
    namespace = draw.pick(("alpha", "alpha", *NAMESPACES))
    selector = draw.pick(({"matchLabels": {"app": draw.pick(constraints.APPS)}}, {"matchLabels": {"app": "web"}},
                          {}, {"matchExpressions": [{"key": "version", "operator": "Exists"}]}))  # fmt: skip
    allowed = draw.pick((0, 0, 1, 2))
    return {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": f"budget-{number}", "namespace": namespace},
        "spec": {"selector": selector, "minAvailable": 1},
        "status": {"disruptionsAllowed": allowed, "currentHealthy": 1 + allowed, "desiredHealthy": 1,
                   "expectedPods": 1 + allowed, "observedGeneration": 1},
    }  # fmt: skip
