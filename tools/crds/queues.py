"""ResourceFlavor, Topology, ClusterQueue, Cohort and LocalQueue in v1beta2.

Source of names and bounds: https://kueue.sigs.k8s.io/docs/reference/kueue.v1beta2/.
"""

from __future__ import annotations

from .schema import (LABEL_KEY, amounts, conditions, items, label_selector, name, number, object,  # noqa: A004
                     quantity, rule, strings, taints, text, time, told, tolerations, words)  # fmt: skip

GROUPS, FLAVORS, RESOURCES = 16, 64, 64  # at most in a queue, a group, a flavor


def resource_flavor() -> dict:
    return object({
        "nodeLabels": told("Labels of the nodes of this flavor; pods that get it are sent there.",
                           strings(8, **{"x-kubernetes-map-type": "atomic"})),
        "nodeTaints": told("Taints of these nodes, which a pod must tolerate to get the flavor.", taints()),
        "tolerations": told("Tolerations that pods get with the flavor.", tolerations()),
        "topologyName": told("The Topology by which these nodes are arranged.", name()),
        "resourceWeights": told("What a unit of a resource counts for in fair shares; 1 where it says nothing.",
                                amounts(16)),
    }, rules=(
        rule("!has(self.topologyName) || (has(self.nodeLabels) && size(self.nodeLabels) >= 1)",
             "a flavor with a topology needs a node label by which its nodes are known"),
        rule("!has(oldSelf.topologyName) || self == oldSelf", "a flavor with a topology cannot be changed"),
    ))  # fmt: skip


def topology() -> dict:
    level = object({"nodeLabel": told("The node label whose value names the domain.",
                                      text(316, 1, pattern=LABEL_KEY))}, "nodeLabel")  # fmt: skip
    host = "kubernetes.io/hostname"
    return object({"levels": told("From the widest to the narrowest.", items(level, 16, 1, rules=(
        rule("self == oldSelf", "the levels of a topology cannot be changed"),
        rule("self.all(a, self.exists_one(b, b.nodeLabel == a.nodeLabel))", "each level has a label of its own"),
        rule(f"!self.exists(l, l.nodeLabel == '{host}') || self[size(self) - 1].nodeLabel == '{host}'",
             f"{host} can only be the lowest level"),
    )))}, "levels")  # fmt: skip


def _group() -> dict:
    resource = object({
        "name": text(316, 1),
        "nominalQuota": told("How much the queue has of its own.", quantity()),
        "borrowingLimit": told("How much more it may take of what its cohort leaves unused; without it any.",
                               quantity()),
        "lendingLimit": told("How much of its own it lends to its cohort; without it all.", quantity()),
    }, "name", "nominalQuota", rules=(
        rule("!has(self.lendingLimit) || "
             "quantity(string(self.lendingLimit)).compareTo(quantity(string(self.nominalQuota))) <= 0",
             "lendingLimit must not exceed nominalQuota: a queue lends of its own only"),
    ))  # fmt: skip
    flavor = object({"name": told("A ResourceFlavor.", name()),
                     "resources": items(resource, RESOURCES, 1, keys=("name",))}, "name", "resources")  # fmt: skip
    return object({
        "coveredResources": told("Resources that come from the same nodes.", items(text(316, 1), RESOURCES, 1)),
        "flavors": told("In the order in which they are tried.", items(flavor, FLAVORS, 1, keys=("name",))),
    }, "coveredResources", "flavors", rules=(
        rule("self.flavors.all(f, size(f.resources) == size(self.coveredResources))",
             "each flavor must give a quota for each of the coveredResources, and for no other"),
    ))  # fmt: skip


def _groups(above: str) -> dict:
    return told(f"Quota by resource and flavor; limits only below a {above}.", items(_group(), GROUPS))


def limits_need(field: str, what: str) -> dict:
    """The rule that borrowing and lending limits make sense only for members of a cohort."""
    return rule(f"has(self.{field}) || !has(self.resourceGroups) || self.resourceGroups.all(g, g.flavors.all(f, "
                "f.resources.all(r, !has(r.borrowingLimit) && !has(r.lendingLimit))))",
                f"borrowingLimit and lendingLimit need {what}: there is nobody to borrow from or lend to")  # fmt: skip


def _fair_sharing() -> dict:
    return told("Its weight when unused quota is shared out.", object({"weight": quantity(default=1)}))


def _stop_policy() -> dict:
    return told("Hold admits nobody any more; HoldAndDrain also evicts those who were.",
                words("None", "Hold", "HoldAndDrain", default="None"))  # fmt: skip


def fungibility() -> dict:
    return object({
        "whenCanBorrow": told("Whether to look at further flavors before borrowing.",
                              words("MayStopSearch", "TryNextFlavor", default="MayStopSearch")),
        "whenCanPreempt": told("Whether to look at further flavors before preempting.",
                               words("MayStopSearch", "TryNextFlavor", default="TryNextFlavor")),
        "preference": told("Which of the two is better where all flavors need one.",
                           words("BorrowingOverPreemption", "PreemptionOverBorrowing")),
    }, rules=(
        rule("!has(self.preference) || (self.whenCanBorrow == 'TryNextFlavor' && "
             "self.whenCanPreempt == 'TryNextFlavor')",
             "preference needs whenCanBorrow and whenCanPreempt to be TryNextFlavor"),
    ), default={})  # fmt: skip


def preemption() -> dict:
    borrow = object({"policy": words("Never", "LowerPriority", default="Never"),
                     "maxPriorityThreshold": told("Only workloads of at most this priority go.", number())},
                    default={})  # fmt: skip
    return object({
        "reclaimWithinCohort": told("Whom of the cohort it evicts to have its own quota back.",
                                    words("Never", "LowerPriority", "Any", default="Never")),
        "borrowWithinCohort": told("Whether it evicts others of the cohort even to borrow.", borrow),
        "withinClusterQueue": told("Whom of its own it evicts.",
                                   words("Never", "LowerPriority", "LowerOrNewerEqualPriority", default="Never")),
    }, rules=(
        rule("self.reclaimWithinCohort != 'Never' || !has(self.borrowWithinCohort) || "
             "self.borrowWithinCohort.policy == 'Never'",
             "borrowWithinCohort needs a reclaimWithinCohort other than Never"),
    ), default={})  # fmt: skip


def checks_strategy() -> dict:
    check = object({"name": text(316, 1), "onFlavors": items(name(), 64, kind="set")}, "name")
    return object({"admissionChecks": items(check, 64, 1, keys=("name",))}, "admissionChecks")


def cluster_queue() -> dict:
    migration = object({
        "mode": words("TryPreferredFlavors", "RetainFirstAdmission"),
        "constraints": object({"lastAcceptableFlavorName": name()}),
    }, "mode")  # fmt: skip
    return object({
        "resourceGroups": _groups("cohort"),
        "cohortName": told("The cohort with whose queues it shares unused quota.", name()),
        "queueingStrategy": told("StrictFIFO: nobody passes the first in the queue.",
                                 words("StrictFIFO", "BestEffortFIFO", default="BestEffortFIFO")),
        "namespaceSelector": told("Namespaces that may use it; {} is all, and without it none.", label_selector()),
        "flavorFungibility": fungibility(),
        "preemption": preemption(),
        "admissionChecksStrategy": told("AdmissionChecks that must be ready before a workload starts.",
                                        checks_strategy()),
        "stopPolicy": _stop_policy(),
        "fairSharing": _fair_sharing(),
        "admissionScope": object({"admissionMode": words("UsageBasedAdmissionFairSharing", "NoAdmissionFairSharing")},
                                 "admissionMode"),
        "concurrentAdmissionPolicy": object({"migration": migration}, "migration"),
    }, rules=(limits_need("cohortName", "a cohortName"),))  # fmt: skip


def cohort() -> dict:
    return object({
        "parentName": told("The cohort above; without it this is the root of its tree.", name()),
        "resourceGroups": _groups("parent"),
        "fairSharing": _fair_sharing(),
    }, rules=(limits_need("parentName", "a parentName"),))  # fmt: skip


def local_queue() -> dict:
    return object({
        "clusterQueue": told("The ClusterQueue whose quota its workloads use.",
                             {**name(), "x-kubernetes-validations": [
                                 rule("self == oldSelf", "the clusterQueue of a LocalQueue cannot be changed")]}),
        "stopPolicy": _stop_policy(),
        "fairSharing": _fair_sharing(),
    })  # fmt: skip


def _share() -> dict:
    consumed = object({"consumedResources": amounts(), "lastUpdate": time()}, "consumedResources", "lastUpdate")
    return object({"weightedShare": number(bits=64), "admissionFairSharingStatus": consumed}, "weightedShare")


def _usage(most: int, *, borrowed: bool) -> dict:
    resource = object({"name": text(), "total": quantity(), **({"borrowed": quantity()} if borrowed else {})}, "name")
    flavor = object({"name": name(), "resources": items(resource, most, keys=("name",))}, "name", "resources")
    return items(flavor, most, keys=("name",))


def _counts() -> dict:
    return {"pendingWorkloads": number(), "reservingWorkloads": number(), "admittedWorkloads": number()}


def cluster_queue_status() -> dict:
    return object({"conditions": conditions(), "flavorsReservation": _usage(64, borrowed=True),
                   "flavorsUsage": _usage(64, borrowed=True), **_counts(), "fairSharing": _share()})  # fmt: skip


def local_queue_status() -> dict:
    return object({"conditions": conditions(), **_counts(), "flavorsReservation": _usage(64, borrowed=False),
                   "flavorsUsage": _usage(64, borrowed=False), "fairSharing": _share()})  # fmt: skip


def cohort_status() -> dict:
    return object({"fairSharing": _share()})


