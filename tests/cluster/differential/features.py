"""Which features of Kubernetes a manifest uses, and which of them Berth looks at.

A verdict is compared once all that it could rest on is ENABLED; a feature is added here when Berth has it.
"""

from __future__ import annotations

# "feasible": simulate's JSON names the feasible nodes. "preemption": and the victims; verdicts have its tail.
ENABLED = frozenset({"ports", "inter-pod", "spread", "volumes", "feasible", "preemption"})


def _of_pod(pod: dict) -> set[str]:
    spec = pod["spec"]
    found = set()
    if any("ports" in container for container in spec["containers"]):
        found.add("ports")
    if {"podAffinity", "podAntiAffinity"} & set(spec.get("affinity", {})):
        found.add("inter-pod")
    if "topologySpreadConstraints" in spec:
        found.add("spread")
    if "volumes" in spec:
        found.add("volumes")
    return found


def features_of(objects: list[dict]) -> set[str]:
    """Of objects that are there together. Priorities are none: they matter to preemption alone."""
    return set().union(*(_of_pod(one) for one in objects if one["kind"] == "Pod"))
