#!/usr/bin/env python3
"""Kueue's API on a real kube-apiserver from deploy/crds alone: what it accepts, and what it refuses with which words.

Recorded cases are read from $BERTH_CASES where it is set. Ends with status 77 (skipped, for ctest) where the test
servers or the program are not built.
"""

from __future__ import annotations

import copy
import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.kueue import (GPU, GROUP, NEW, cases, flavor, group, install, make, path_of, quota,  # noqa: E402
                           template)  # fmt: skip
from harness.suite import CORE, MERGE, Cluster, main  # noqa: E402

from cluster import ApiError  # noqa: E402

NOW = "2026-01-02T03:04:05Z"
QUEUE = {"cohortName": "all", "namespaceSelector": {}, "resourceGroups": [
    group(flavor("h100", quota(nominal=8, lendingLimit="4", borrowingLimit=2), quota("cpu", "500m")),
          flavor("a100", quota(nominal="1k"), quota("cpu", 12)), covers=(GPU, "cpu"))]}  # fmt: skip
WORK = {"queueName": "lq", "podSets": [{"name": "main", "count": 4, "minCount": 2, "template": template()}]}
EXAMPLES = [
    make("ResourceFlavor", "h100", {"nodeLabels": {"gpu": "h100"}, "topologyName": "racks",
                                    "nodeTaints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}],
                                    "tolerations": [{"key": "gpu", "operator": "Exists"}, {"operator": "Exists"}],
                                    "resourceWeights": {GPU: "2.5"}}),
    make("ResourceFlavor", "plain"),
    make("Topology", "racks", {"levels": [{"nodeLabel": "topology.example.com/block"},
                                          {"nodeLabel": "topology.example.com/rack"},
                                          {"nodeLabel": "kubernetes.io/hostname"}]}),
    make("ClusterQueue", "team", QUEUE),
    make("ClusterQueue", "empty", {}),
    make("ClusterQueue", "all", {
        "queueingStrategy": "StrictFIFO", "stopPolicy": "HoldAndDrain", "fairSharing": {"weight": "1500m"},
        "namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "b"]}]},
        "flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor",
                              "preference": "PreemptionOverBorrowing"},
        "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerOrNewerEqualPriority",
                       "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 100}},
        "admissionChecksStrategy": {"admissionChecks": [{"name": "dws", "onFlavors": ["h100"]}, {"name": "budget"}]},
        "admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"},
        "concurrentAdmissionPolicy": {"migration": {"mode": "TryPreferredFlavors",
                                                    "constraints": {"lastAcceptableFlavorName": "a100"}}}}),
    make("Cohort", "root", {"resourceGroups": [group(flavor("h100", quota()))]}),
    make("Cohort", "leaf", {"parentName": "root", "fairSharing": {"weight": 0},
                            "resourceGroups": [group(flavor("h100", quota(lendingLimit=8, borrowingLimit=0)))]}),
    make("LocalQueue", "lq", {"clusterQueue": "team", "stopPolicy": "Hold"}, namespace="default"),
    make("Workload", "train", WORK, namespace="default"),
    make("Workload", "more", {
        "priority": 7, "priorityClassRef": {"group": GROUP, "kind": "WorkloadPriorityClass", "name": "high"},
        "maximumExecutionTimeSeconds": 60, "active": False,
        "podSets": [{"name": "driver", "template": template(0), "topologyRequest": {"required": "rack"}},
                    {"name": "worker", "count": 0, "template": template(8)}]}, namespace="default"),
    make("WorkloadPriorityClass", "high", value=1000, description="for what cannot wait"),
    make("AdmissionCheck", "dws", {
        "controllerName": "kueue.x-k8s.io/provisioning-request",
        "parameters": {"apiGroup": GROUP, "kind": "ProvisioningRequestConfig", "name": "dws"}}),
    make("ProvisioningRequestConfig", "dws", {"provisioningClassName": "queued", "parameters": {"zone": "a"},
                                              "managedResources": [GPU], "retryStrategy": {"backoffLimitCount": 1}}),
]  # fmt: skip
SLICES = [{"domainCount": 2, "valuesPerLevel": [{"individual": {"prefix": "rack-", "roots": ["1", "2"]}}],
           "podCounts": {"individual": [3, 1]}}]  # fmt: skip
STATUS = {
    "conditions": [{"type": "QuotaReserved", "status": "True", "lastTransitionTime": NOW, "reason": "QuotaReserved",
                    "message": "ok", "observedGeneration": 1}],
    "admission": {"clusterQueue": "team", "podSetAssignments": [
        {"name": "main", "count": 4, "flavors": {GPU: "h100"}, "resourceUsage": {GPU: "4"},
         "topologyAssignment": {"levels": ["rack"], "slices": SLICES}}]},
    "requeueState": {"count": 1, "requeueAt": NOW}, "reclaimablePods": [{"name": "main", "count": 1}],
    "accumulatedPastExecutionTimeSeconds": 12,
    "admissionChecks": [{"name": "dws", "state": "Ready", "lastTransitionTime": NOW, "message": "",
                         "podSetUpdates": [{"name": "main", "nodeSelector": {"zone": "a"}}]}],
}  # fmt: skip


def changed(one: dict, at: str, value: object) -> dict:
    """A copy with another value at a path like spec.podSets.0.count; None takes the member away."""
    out = copy.deepcopy(one)
    here, *way = out, *at.split(".")
    for step in way[:-1]:
        here = here[int(step)] if isinstance(here, list) else here.setdefault(step, {})
    last = int(way[-1]) if isinstance(here, list) else way[-1]
    if value is None:
        del here[last]
    else:
        here[last] = value
    return out


def example(name: str) -> dict:
    return copy.deepcopy(next(one for one in EXAMPLES if one["metadata"]["name"] == name))


FIRST = "spec.resourceGroups.0.flavors.0.resources.0."
# What is wrong, the object, a part of what the server says.
REFUSED = [
    ("more is lent than there is", changed(example("team"), FIRST + "lendingLimit", "9"),
     "lendingLimit must not exceed nominalQuota"),
    ("more is lent than there is, in other units", changed(example("team"), FIRST + "lendingLimit", "8001m"),
     "lendingLimit must not exceed nominalQuota"),
    ("a negative quota", changed(example("team"), FIRST + "nominalQuota", "-1"), "nominalQuota"),
    ("a negative quota, as a number", changed(example("team"), FIRST + "nominalQuota", -1),
     "nominalQuota in body should be greater than or equal to 0"),
    ("a quota that is no quantity", changed(example("team"), FIRST + "nominalQuota", "eight"), "nominalQuota"),
    ("a negative borrowing limit", changed(example("team"), FIRST + "borrowingLimit", "-2"), "borrowingLimit"),
    ("a quota of nothing", changed(example("team"), FIRST + "nominalQuota", None), "nominalQuota: Required value"),
    ("limits without a cohort", changed(example("team"), "spec.cohortName", None),
     "borrowingLimit and lendingLimit need a cohortName"),
    ("a flavor that leaves a resource out",
     changed(example("team"), "spec.resourceGroups.0.flavors.1.resources.1", None),
     "each flavor must give a quota for each of the coveredResources"),
    ("a flavor twice", changed(example("team"), "spec.resourceGroups.0.flavors.1.name", "h100"), "Duplicate value"),
    ("a cohort that is no name", changed(example("team"), "spec.cohortName", "All of us"), "cohortName"),
    ("no such strategy", changed(example("all"), "spec.queueingStrategy", "LIFO"), "Unsupported value: \"LIFO\""),
    ("no such policy", changed(example("all"), "spec.preemption.withinClusterQueue", "Any"), "Unsupported value"),
    ("a word of v1beta1", changed(example("all"), "spec.flavorFungibility.whenCanBorrow", "Borrow"),
     "Unsupported value: \"Borrow\""),
    ("a preference between things that are not compared",
     changed(example("all"), "spec.flavorFungibility.whenCanBorrow", "MayStopSearch"), "preference needs"),
    ("borrowing evicts without reclaim", changed(example("all"), "spec.preemption.reclaimWithinCohort", "Never"),
     "borrowWithinCohort needs a reclaimWithinCohort"),
    ("a check twice", changed(example("all"), "spec.admissionChecksStrategy.admissionChecks.1.name", "dws"),
     "Duplicate value"),
    ("a negative weight", changed(example("all"), "spec.fairSharing.weight", "-1"), "weight"),
    ("a root with limits", changed(example("leaf"), "spec.parentName", None), "need a parentName"),
    ("a topology without labels", changed(example("h100"), "spec.nodeLabels", None), "needs a node label"),
    ("no such effect", changed(example("h100"), "spec.nodeTaints.0.effect", "Never"), "effect is NoSchedule"),
    ("a toleration of nothing", changed(example("h100"), "spec.tolerations.1.operator", "Equal"), "must be Exists"),
    ("levels below the host", changed(example("racks"), "spec.levels.0.nodeLabel", "kubernetes.io/hostname"),
     "each level has a label of its own"),
    ("the host in between", changed(example("racks"), "spec.levels.2.nodeLabel", "a/b") | {"spec": {"levels": [
        {"nodeLabel": "kubernetes.io/hostname"}, {"nodeLabel": "a/b"}]}}, "can only be the lowest level"),
    ("no levels", changed(example("racks"), "spec.levels", []), "levels"),
    ("no pod sets", changed(example("train"), "spec.podSets", []), "podSets"),
    ("a pod set without containers", changed(example("train"), "spec.podSets.0.template.spec.containers", []),
     "containers"),
    ("more are enough than are wanted", changed(example("train"), "spec.podSets.0.minCount", 5),
     "minCount must not exceed count"),
    ("a negative count", changed(example("train"), "spec.podSets.0.count", -1), "greater than or equal to 0"),
    ("minCount twice", changed(example("train"), "spec.podSets", [
        {"name": name, "count": 2, "minCount": 1, "template": template()} for name in ("a", "b")]),
     "at most one pod set may have a minCount"),
    ("a priority class without a priority", changed(example("more"), "spec.priority", None),
     "needs the priority that it means"),
    ("a class of another group", changed(example("more"), "spec.priorityClassRef.group", "scheduling.k8s.io"),
     "PriorityClass of scheduling.k8s.io"),
    ("no time at all", changed(example("more"), "spec.maximumExecutionTimeSeconds", 0), "greater than or equal to 1"),
    ("a class without a value", changed(example("high"), "value", None), "value: Required value"),
    ("a check of nobody", changed(example("dws"), "spec.controllerName", None), "controllerName: Required value"),
]  # fmt: skip
# What cannot be changed: the example, the patch of it, a part of what the server says.
FIXED = [
    ("racks", {"spec": {"levels": [{"nodeLabel": "a/b"}]}}, "the levels of a topology cannot be changed"),
    ("lq", {"spec": {"clusterQueue": "other"}}, "the clusterQueue of a LocalQueue cannot be changed"),
    ("h100", {"spec": {"nodeLabels": {"gpu": "b200"}}}, "a flavor with a topology cannot be changed"),
    ("dws", {"spec": {"controllerName": "me"}}, "the controllerName of a check cannot be changed"),
]


class Definitions(unittest.TestCase):
    """One version, no webhook."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.cluster = Cluster(components=CORE).__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)
        cls.api = cls.cluster.api
        cls.plurals = install(cls.cluster, "v1beta2")

    def create(self, one: dict, *, dry_run: bool = False) -> dict:
        query = "?fieldValidation=Strict" + ("&dryRun=All" if dry_run else "")
        return self.api.call("POST", path_of(one) + query, one)

    def refused(self, what: str, call, *arguments) -> None:
        with self.assertRaises(ApiError) as caught:
            call(*arguments)
        self.assertIn(what, str(caught.exception))
        self.assertEqual(caught.exception.status, 422)

    def keep(self, one: dict) -> dict:
        """Creates it until the end of the test."""
        made = self.create(one)
        self.addCleanup(self.api.call, "DELETE", f"{path_of(one)}/{one['metadata']['name']}")
        return made

    def test_nine_kinds_are_served_in_one_version(self) -> None:
        self.assertEqual(len(self.plurals), 9)
        self.assertEqual([one["groupVersion"] for one in self.api.call("GET", f"/apis/{GROUP}")["versions"]], [NEW])

    def test_every_kind_has_an_example_that_is_accepted_and_loses_nothing(self) -> None:
        self.assertEqual(len({one["kind"] for one in EXAMPLES}), 9)
        for one in EXAMPLES:
            with self.subTest(one["kind"] + " " + one["metadata"]["name"]):
                made = self.create(one, dry_run=True)
                self.assert_kept(one.get("spec", {}), made.get("spec", {}))

    def assert_kept(self, given: object, got: object, at: str = "spec") -> None:
        """All that was given is still there; defaults may have come."""
        if isinstance(given, dict):
            for key, value in given.items():
                self.assertIn(key, got, at)
                self.assert_kept(value, got[key], f"{at}.{key}")
        elif isinstance(given, list):
            self.assertEqual(len(given), len(got), at)
            for index, value in enumerate(given):
                self.assert_kept(value, got[index], f"{at}[{index}]")
        else:
            self.assertEqual(given, got, at)

    def test_what_is_left_out_gets_kueues_defaults(self) -> None:
        made = self.create(example("empty"), dry_run=True)["spec"]
        self.assertEqual(made, {
            "queueingStrategy": "BestEffortFIFO", "stopPolicy": "None",
            "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
            "preemption": {"reclaimWithinCohort": "Never", "withinClusterQueue": "Never",
                           "borrowWithinCohort": {"policy": "Never"}}})  # fmt: skip
        driver = self.create(example("more"), dry_run=True)["spec"]["podSets"][0]
        self.assertEqual(driver["count"], 1)

    def test_what_is_wrong_is_refused_with_the_reason(self) -> None:
        for what, one, message in REFUSED:
            with self.subTest(what):
                self.refused(message, lambda o=one: self.create(o, dry_run=True))

    def test_an_unknown_field_is_told(self) -> None:
        one = changed(example("team"), "spec.cohort", "all")
        with self.assertRaises(ApiError) as caught:
            self.create(one, dry_run=True)
        self.assertIn('unknown field "spec.cohort"', str(caught.exception))

    def test_what_is_fixed_cannot_be_changed(self) -> None:
        for name, patch, message in FIXED:
            with self.subTest(name):
                one = example(name)
                self.keep(one)
                where = f"{path_of(one)}/{name}"
                self.refused(message, lambda w=where, p=patch: self.api.call("PATCH", w, p, content_type=MERGE))

    def test_a_status_is_written_apart_and_binds_what_was_admitted(self) -> None:
        self.keep(example("train") | {"status": STATUS})
        where = f"{path_of(example('train'))}/train"
        self.assertNotIn("status", self.api.call("GET", where))
        both = {"status": STATUS, "spec": {"priority": 9}}
        written = self.api.call("PATCH", f"{where}/status", both, content_type=MERGE)
        self.assertEqual(written["status"], STATUS)
        self.assertNotIn("priority", written["spec"])
        self.refused("queueName cannot be changed while quota is reserved", lambda: self.api.call(
            "PATCH", where, {"spec": {"queueName": "other"}}, content_type=MERGE))  # fmt: skip
        assignments = {"status": {"admission": {"podSetAssignments": []}}}
        self.refused("podSetAssignments must have one entry for each pod set", lambda: self.api.call(
            "PATCH", f"{where}/status", assignments, content_type=MERGE))  # fmt: skip
        uneven = copy.deepcopy(STATUS["admission"])
        uneven["podSetAssignments"][0]["topologyAssignment"]["slices"][0]["podCounts"] = {"individual": [3]}
        self.refused("one of the podCounts for each domain", lambda: self.api.call(
            "PATCH", f"{where}/status", {"status": {"admission": uneven}}, content_type=MERGE))  # fmt: skip

    def test_kubectl_knows_short_names_and_columns(self) -> None:
        self.keep(example("team"))
        self.keep(example("train"))
        self.keep(example("high"))
        self.assertRegex(self.cluster.kubectl("get", "cq"), r"NAME +COHORT +PENDING WORKLOADS\nteam +all")
        columns = r"NAME +QUEUE +RESERVED IN +ADMITTED +FINISHED +AGE\ntrain +lq"
        self.assertRegex(self.cluster.kubectl("get", "wl"), columns)
        self.assertRegex(self.cluster.kubectl("get", "workloadpriorityclasses"), r"high +1000")
        self.assertIn("lends to its cohort", self.cluster.kubectl(
            "explain", "cq.spec.resourceGroups.flavors.resources.lendingLimit"))  # fmt: skip

    @unittest.skipUnless(os.environ.get("BERTH_CASES"), "BERTH_CASES names no folder with recorded cases")
    def test_recorded_cases_are_accepted(self) -> None:
        found = cases(Path(os.environ["BERTH_CASES"]))
        self.assertGreater(len(found), 50)
        for name, objects in found.items():
            with self.subTest(name):
                text = "\n---\n".join(objects)
                self.cluster.kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", input=text)


if __name__ == "__main__":
    main()
