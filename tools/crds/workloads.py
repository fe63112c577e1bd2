"""Workload, WorkloadPriorityClass, AdmissionCheck and ProvisioningRequestConfig in v1beta2.

Source of names and bounds: https://kueue.sigs.k8s.io/docs/reference/kueue.v1beta2/.
"""

from __future__ import annotations

from .schema import (LABEL, LABEL_KEY, SUBDOMAIN, amounts, conditions, flag, free, items, name, number,  # noqa: A004
                     object, rule, strings, text, time, told, tolerations, words)  # fmt: skip

POD_SETS = 8
CHECK_NAME = text(316, 1)


def _pod_set_name(**more) -> dict:
    return text(63, pattern=LABEL, **more)


def topology_request() -> dict:
    key = text(317)
    layer = object({"topology": text(63), "size": number(1)}, "topology", "size")
    return object({
        "required": told("All pods within one domain of this level.", text(63)),
        "preferred": told("Within as few domains of this level as possible.", text(63)),
        "unconstrained": told("Anywhere, but only where there is room for all.", flag()),
        "podIndexLabel": key, "subGroupIndexLabel": key, "subGroupCount": number(),
        "podSetGroupName": told("Pod sets of one group get one flavor and one place.", text(256)),
        "podSetSliceRequiredTopology": told("Each slice of the pods within one domain of this level.", text(63)),
        "podSetSliceSize": told("So many pods are a slice.", number()),
        "podsetSliceRequiredTopologyConstraints": items(layer, 3),
    })  # fmt: skip


def _pod_set() -> dict:
    pod = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "required": ["containers"],
           "properties": {"containers": {"type": "array", "minItems": 1, "items": free()}}}  # fmt: skip
    template = object({"metadata": object({"labels": strings(), "annotations": strings()}), "spec": pod}, "spec")
    return object({
        "name": _pod_set_name(default="main"),
        "template": told("What each of the pods is like. The scheduler judges it.", template),
        "count": told("How many pods.", number(0, default=1)),
        "minCount": told("With so few it may start, too.", number(1)),
        "topologyRequest": topology_request(),
    }, "template", rules=(
        rule("!has(self.minCount) || self.minCount <= self.count", "minCount must not exceed count"),
    ))  # fmt: skip


def _priority_class() -> dict:
    return object({
        "group": words("kueue.x-k8s.io", "scheduling.k8s.io"),
        "kind": words("WorkloadPriorityClass", "PriorityClass"),
        "name": text(253, 1, pattern=SUBDOMAIN),
    }, "group", "kind", "name", rules=(
        rule("(self.group == 'kueue.x-k8s.io') == (self.kind == 'WorkloadPriorityClass')",
             "WorkloadPriorityClass is of kueue.x-k8s.io, PriorityClass of scheduling.k8s.io"),
    ))  # fmt: skip


def workload() -> dict:
    return object({
        "podSets": told("Sets of equal pods.", items(_pod_set(), POD_SETS, 1, keys=("name",), rules=(
            rule("self.filter(s, has(s.minCount)).size() <= 1", "at most one pod set may have a minCount"),
        ))),
        "queueName": told("The LocalQueue in which it waits.", name()),
        "priorityClassRef": told("Where its priority comes from.", _priority_class()),
        "priority": told("Who has more comes first, and may evict who has less.", number()),
        "active": told("false: it is evicted and waits for nothing.", flag(default=True)),
        "maximumExecutionTimeSeconds": told("It is made inactive after so long.", number(1)),
    }, "podSets", rules=(
        rule("!has(self.priorityClassRef) || has(self.priority)",
             "a priorityClassRef needs the priority that it means"),
    ))  # fmt: skip


def _topology_assignment() -> dict:
    most = 100000
    values = object({
        "prefix": told("What all values begin with.", text(63, 1)),
        "suffix": told("What all values end with.", text(63, 1)),
        "roots": told("What is between, for each domain.", items(text(63), most, 1)),
    }, "roots")  # fmt: skip
    either = rule("has(self.universal) != has(self.individual)", "either universal or individual")
    level = object({
        "universal": told("The value of all domains.", text(63, 1)),
        "individual": told("The values of the domains.", values),
    }, rules=(either,))  # fmt: skip
    counts = object({
        "universal": told("So many pods in every domain.", number(1)),
        "individual": told("So many pods in each domain.", items(number(1), most, 1)),
    }, rules=(either,))  # fmt: skip
    part = object({
        "domainCount": number(1, maximum=most),
        "valuesPerLevel": items(level, 16, 1),
        "podCounts": counts,
    }, "domainCount", "valuesPerLevel", "podCounts", rules=(
        rule("!has(self.podCounts.individual) || size(self.podCounts.individual) == self.domainCount",
             "one of the podCounts for each domain"),
        rule("self.valuesPerLevel.all(v, !has(v.individual) || size(v.individual.roots) == self.domainCount)",
             "one of the roots for each domain"),
    ))  # fmt: skip
    return object({"levels": items(text(317), 16, 1), "slices": items(part, 1000)}, "levels", "slices", rules=(
        rule("self.slices.all(s, size(s.valuesPerLevel) == size(self.levels))",
             "one of the valuesPerLevel for each level"),
    ))  # fmt: skip


def _admission() -> dict:
    flavors = {"type": "object", "additionalProperties": name()}
    assignment = object({
        "name": _pod_set_name(default="main"),
        "flavors": told("The flavor of each resource.", flavors),
        "resourceUsage": told("What all its pods take.", amounts()),
        "count": number(0),
        "topologyAssignment": _topology_assignment(),
        "delayedTopologyRequest": words("Pending", "Ready"),
    }, "name")  # fmt: skip
    return object({"clusterQueue": name(), "podSetAssignments": items(assignment, POD_SETS, keys=("name",))},
                  "clusterQueue", "podSetAssignments")  # fmt: skip


def _check_state() -> dict:
    update = object({"name": _pod_set_name(), "labels": strings(), "annotations": strings(), "nodeSelector": strings(),
                     "tolerations": tolerations()}, "name")  # fmt: skip
    return object({
        "name": CHECK_NAME,
        "state": words("Pending", "Ready", "Retry", "Rejected"),
        "lastTransitionTime": time(),
        "message": text(32768),
        "podSetUpdates": items(update, POD_SETS),
        "requeueAfterSeconds": number(0),
        "retryCount": number(0),
    }, "name", "state", "lastTransitionTime", "message")  # fmt: skip


def workload_status() -> dict:
    eviction = object({"reason": text(316), "underlyingCause": text(316), "count": number(0)},
                      "reason", "underlyingCause", "count")  # fmt: skip
    return object({
        "conditions": conditions(),
        "admission": told("What it was given, while it has quota.", _admission()),
        "requeueState": object({"count": number(0), "requeueAt": time()}),
        "reclaimablePods": told("So many pods of a set are done and need nothing any more.",
                                items(object({"name": _pod_set_name(), "count": number(0)}, "name", "count"),
                                      POD_SETS, keys=("name",))),
        "admissionChecks": items(_check_state(), 64, keys=("name",)),
        "resourceRequests": items(object({"name": _pod_set_name(), "resources": amounts()}, "name"),
                                  POD_SETS, keys=("name",)),
        "accumulatedPastExecutionTimeSeconds": number(),
        "schedulingStats": object({"evictions": items(eviction, 256, keys=("reason", "underlyingCause"))}),
        "nominatedClusterNames": items(text(256), 10),
        "clusterName": text(256),
        "unhealthyNodes": items(object({"name": text(253)}, "name"), 8, keys=("name",)),
    }, rules=(
        rule("!has(oldSelf.clusterName) || !has(self.clusterName) || oldSelf.clusterName == self.clusterName",
             "clusterName cannot be changed"),
        rule("!has(self.clusterName) || !has(self.nominatedClusterNames) || size(self.nominatedClusterNames) == 0",
             "either clusterName or nominatedClusterNames"),
    ))  # fmt: skip


def _holds(condition: str, whose: str) -> str:
    return (f"(has({whose}.status) && has({whose}.status.conditions) && "
            f"{whose}.status.conditions.exists(c, c.type == '{condition}' && c.status == 'True'))")  # fmt: skip


def workload_rules() -> tuple:
    """Of the whole object: what stays as it is while quota is reserved."""
    reserved, still = _holds("QuotaReserved", "oldSelf"), _holds("QuotaReserved", "self")
    admitted = f"{_holds('Admitted', 'oldSelf')} && {_holds('Admitted', 'self')}"
    limit = "has({0}.spec.maximumExecutionTimeSeconds) ? {0}.spec.maximumExecutionTimeSeconds : 0"
    return (
        rule(f"!({still} && has(self.status.admission)) || "
             "size(self.spec.podSets) == size(self.status.admission.podSetAssignments)",
             "podSetAssignments must have one entry for each pod set"),
        rule(f"!({reserved} && {still} && has(oldSelf.spec.queueName) && has(self.spec.queueName)) || "
             "oldSelf.spec.queueName == self.spec.queueName",
             "queueName cannot be changed while quota is reserved"),
        rule(f"!{reserved} || has(oldSelf.spec.priorityClassRef) == has(self.spec.priorityClassRef)",
             "priorityClassRef cannot come or go while quota is reserved"),
        rule(f"!({admitted}) || ({limit.format('oldSelf')}) == ({limit.format('self')})",
             "maximumExecutionTimeSeconds cannot be changed while the workload is admitted"),
    )  # fmt: skip


def workload_priority_class() -> dict:
    """Its members stand beside metadata."""
    return {"value": told("The priority of workloads that name this class.", number()),
            "description": told("When to use it.", text(2048))}  # fmt: skip


def admission_check() -> dict:
    parameters = object({
        "apiGroup": name(),
        "kind": text(63, pattern="^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$"),
        "name": text(63, pattern=LABEL),
    }, "apiGroup", "kind", "name")  # fmt: skip
    return object({
        "controllerName": told("Who carries the check out.", text(253, 1, **{"x-kubernetes-validations": [
            rule("self == oldSelf", "the controllerName of a check cannot be changed")]})),
        "parameters": told("An object with what this controller wants to know.", parameters),
    }, "controllerName")  # fmt: skip


def admission_check_status() -> dict:
    return object({"conditions": conditions()})


def provisioning_request_config() -> dict:
    selector = object({"key": text(317, 1, pattern=LABEL_KEY),
                       "valueFromProvisioningClassDetail": text(32768, 1)},
                      "key", "valueFromProvisioningClassDetail")  # fmt: skip
    retry = {"backoffLimitCount": 3, "backoffBaseSeconds": 60, "backoffMaxSeconds": 1800}
    return object({
        "provisioningClassName": told("The class of the ProvisioningRequests that are made.",
                                      text(253, 1, pattern=SUBDOMAIN)),
        "parameters": {"type": "object", "maxProperties": 100, "additionalProperties": text(255)},
        "managedResources": told("Only pod sets that ask for one of these are provisioned; without it all.",
                                 items(text(), 100, kind="set")),
        "retryStrategy": object({key: number(default=value) for key, value in retry.items()}, default=retry),
        "podSetUpdates": object({"nodeSelector": items(selector, 8, keys=("key",))}),
        "podSetMergePolicy": words("IdenticalPodTemplates", "IdenticalWorkloadSchedulingRequirements"),
    }, "provisioningClassName")  # fmt: skip
