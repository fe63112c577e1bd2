#!/usr/bin/env python3
"""`berth scheduler` on a real kube-apiserver: what it binds, what it says, and what it leaves alone.

kube-scheduler runs beside it with pods of its own; texts and events are compared with what it says of the same pods.
Ends with status 77 (skipped, for ctest) where the test servers or the program are not built.
"""

from __future__ import annotations

import copy
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.daemon import wait_until  # noqa: E402
from harness.objects import BERTH, pod, unschedulable  # noqa: E402
from harness.suite import EVENTS, OTHER, PODS, WithBerth, main  # noqa: E402

from cluster import ApiError  # noqa: E402

TAIL = " no new claims to deallocate, preemption:"  # what preemption could do, after the reasons
A100 = {"nvidia.com/gpu.product": "A100"}
DEDICATED = [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]


def affinity(key: str, operator: str, *values: str, field: bool = False) -> dict:
    term = {"key": key, "operator": operator, "values": list(values)}
    terms = [{"matchFields" if field else "matchExpressions": [term]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def reaching(name: str, **how) -> dict:
    """A pod that names all GPUs, and requests none unless `how` says so."""
    one = pod(name, **how)
    one["spec"]["containers"][0]["env"] = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    return one


class BesideKubeScheduler(WithBerth):
    COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")


class Placement(BesideKubeScheduler):
    def test_gpu_pods_from_kubectl_are_bound_to_the_nodes_that_fit(self) -> None:
        self.node(1, prefix="a100-", gpus=8, labels=A100)
        self.node(1, prefix="t4-", gpus=2, labels={"nvidia.com/gpu.product": "T4"})
        self.node(1, prefix="dedicated-", gpus=8, taints=DEDICATED)
        self.node(1, prefix="cpu-", gpus=0)
        tolerations = [{"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}]
        self.kubectl_apply(
            pod("selects", gpus=1, nodeSelector=A100),
            pod("prefers-nothing", gpus=1, affinity=affinity("nvidia.com/gpu.product", "In", "T4")),
            pod("tolerates", gpus=8, tolerations=tolerations),
            pod("by-field", gpus=1, affinity=affinity("metadata.name", "In", "t4-0", field=True)),
            pod("no-gpu", requests={"cpu": "1"}),
        )
        where = {name: self.bound(name) for name in ("selects", "prefers-nothing", "tolerates", "by-field", "no-gpu")}
        self.assertEqual(where, {"selects": "a100-0", "prefers-nothing": "t4-0", "tolerates": "dedicated-0",
                                 "by-field": "t4-0", "no-gpu": "cpu-0"})  # fmt: skip

    def test_without_the_definitions_of_queues_nothing_waits(self) -> None:
        self.node(1, gpus=8)
        template = {"metadata": {"annotations": {"pod-complete.stage.kwok.x-k8s.io/delay": "1h"}},
                    "spec": pod("main", gpus=1)["spec"] | {"restartPolicy": "Never"}}  # fmt: skip
        self.api.call("POST", "/apis/batch/v1/namespaces/default/jobs", {
            "apiVersion": "batch/v1", "kind": "Job", "spec": {"template": template},
            "metadata": {"name": "train", "labels": {"kueue.x-k8s.io/queue-name": "red"}}})  # fmt: skip
        wait_until("its pod runs", lambda: self.pods() and self.pods()[0]["status"].get("phase") == "Running")
        time.sleep(2)
        self.assertFalse(self.api.call("GET", "/apis/batch/v1/namespaces/default/jobs/train")["spec"]["suspend"])

    def test_gpu_pods_pack(self) -> None:
        self.node(4, gpus=8)
        names = [f"pack-{i}" for i in range(8)]
        self.create(*(pod(name, gpus=1) for name in names))
        self.assertEqual(len({self.bound(name) for name in names}), 1)

    def test_a_pod_without_gpus_uses_a_gpu_node_only_when_no_other_fits(self) -> None:
        self.node(2, prefix="gpu-", gpus=8)
        self.node(1, prefix="cpu-", gpus=0, cpu="2")
        self.create(*(pod(f"small-{i}", requests={"cpu": "1"}) for i in range(2)))
        self.assertEqual({self.bound(f"small-{i}") for i in range(2)}, {"cpu-0"})
        self.create(pod("third", requests={"cpu": "1"}))
        self.assertRegex(self.bound("third"), "^gpu-")

    def test_the_placement_annotation_of_a_pod_spreads_it(self) -> None:
        self.node(4, gpus=8)
        names = [f"spread-{i}" for i in range(4)]
        self.create(*(pod(name, gpus=1, annotations={"berth.dev/placement": "spread"}) for name in names))
        self.assertEqual(len({self.bound(name) for name in names}), 4)

    def test_a_placement_that_cannot_be_meant_is_told_and_the_default_holds(self) -> None:
        self.node(gpus=8)
        self.create(pod("odd", gpus=1, annotations={"berth.dev/placement": "banana"}))
        self.bound("odd")
        told = wait_until("an event", lambda: self.events_of("odd", "InvalidAnnotation"))
        self.assertIn("'banana' is neither pack nor spread", told[0]["note"])

    def test_a_pod_that_reaches_for_gpus_is_told_and_scheduled(self) -> None:
        self.node(gpus=8)
        self.create(reaching("odd"))
        self.bound("odd")
        told = wait_until("an event", lambda: self.events_of("odd", "UnrequestedGpus"))
        self.assertIn("spec.containers[0]: NVIDIA_VISIBLE_DEVICES=all reaches for GPUs", told[0]["note"])
        self.assertEqual(len(told), 1)

    def test_a_placement_of_a_namespace_that_cannot_be_meant_is_told_once_for_each_change(self) -> None:
        def annotate(name: str, value: str) -> None:
            self.patch("/api/v1/namespaces/wrong", {"metadata": {"annotations": {name: value}}})

        def notes() -> list[str]:
            return [one["note"] for one in self.events_of("wrong", "InvalidAnnotation")]

        meta = {"name": "wrong", "annotations": {"berth.dev/placement": "Spread"}}
        self.api.call("POST", "/api/v1/namespaces", {"metadata": meta})
        told = wait_until("an event", lambda: self.events_of("wrong", "InvalidAnnotation"))
        self.assertEqual(told[0]["regarding"]["kind"], "Namespace")
        self.assertEqual(told[0]["metadata"]["namespace"], "default")
        self.assertIn("'Spread' is neither pack nor spread", told[0]["note"])
        annotate("unrelated", "change")
        annotate("berth.dev/placement", "banana")
        wait_until("the new value", lambda: any("'banana'" in note for note in notes()))
        told = self.events_of("wrong", "InvalidAnnotation")
        self.assertEqual([one.get("series") for one in told], [None, None])

    def test_the_placement_annotation_of_a_namespace_takes_effect_while_berth_runs(self) -> None:
        self.node(4, gpus=8)
        try:
            self.api.call("POST", "/api/v1/namespaces", {"metadata": {"name": "team"}})
        except ApiError as error:
            self.assertEqual(error.reason, "AlreadyExists")
        self.create(*(pod(f"pack-{i}", gpus=1) for i in range(4)), namespace="team")
        self.assertEqual(len({self.bound(f"pack-{i}", "team") for i in range(4)}), 1)
        self.patch("/api/v1/namespaces/team", {"metadata": {"annotations": {"berth.dev/placement": "spread"}}})
        self.addCleanup(self.patch, "/api/v1/namespaces/team",
                        {"metadata": {"annotations": {"berth.dev/placement": None}}})  # fmt: skip
        for i in range(4):
            self.api.call("DELETE", f"/api/v1/namespaces/team/pods/pack-{i}", {"gracePeriodSeconds": 0})
        wait_until("their room is free", lambda: self.berth.metric('berth_gpus{state="used"}') == 0)
        self.create(*(pod(f"spread-{i}", gpus=1) for i in range(4)), namespace="team")
        self.assertEqual(len({self.bound(f"spread-{i}", "team") for i in range(4)}), 4)

    def test_only_pods_with_a_served_scheduler_name_are_touched(self) -> None:
        self.node(1)
        self.create(pod("foreign", gpus=1, scheduler="somebody-else"), pod("mine", gpus=1))
        self.create(pod("mine-too", gpus=1, scheduler=OTHER))
        self.bound("mine")
        self.bound("mine-too")
        foreign = self.get("foreign")
        self.assertNotIn("nodeName", foreign["spec"])
        self.assertFalse(foreign["status"].get("conditions"))
        self.assertEqual(self.events_of("foreign", "FailedScheduling"), [])

    def test_room_that_another_scheduler_gave_away_counts(self) -> None:
        self.node(2, gpus=4)
        self.create(*(pod(f"theirs-{i}", gpus=2, scheduler="default-scheduler") for i in range(3)))
        for i in range(3):
            self.bound(f"theirs-{i}")
        self.create(pod("two", gpus=2), pod("four", gpus=4, priority=None))
        self.bound("two")
        self.assertEqual(self.waiting("four").split(TAIL)[0], "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.")
        self.delete("theirs-0")
        self.delete("theirs-1")
        self.delete("theirs-2")
        self.bound("four")

    def test_a_gated_pod_is_left_alone_until_its_gate_goes(self) -> None:
        self.node(1)
        self.create(pod("gated", gpus=1, schedulingGates=[{"name": "example.com/quota"}]), pod("free", gpus=1))
        self.bound("free")
        wait_until("it counts as gated", lambda: self.berth.metric('scheduler_pending_pods{queue="gated"}') == 1)
        gated = self.get("gated")
        self.assertNotIn("nodeName", gated["spec"])
        self.assertEqual([one["reason"] for one in gated["status"]["conditions"]], ["SchedulingGated"])
        self.patch(f"{PODS}/gated", {"spec": {"schedulingGates": None}})
        self.bound("gated")

    def test_preferred_affinity_decides_among_equals(self) -> None:
        self.node(3, labels=lambda i: {"zone": f"z{i}"})
        term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z2"]}]}
        soft = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": term}]}
        self.create(pod("prefers", gpus=1, affinity={"nodeAffinity": soft}))
        self.assertEqual(self.bound("prefers"), "node-2")


class Denied(WithBerth):
    """Pods that reach for GPUs wait, whether a watch brings them or a list."""

    CONFIG = {**WithBerth.CONFIG, "unrequestedGpus": "deny"}

    def test_a_pod_that_reaches_for_gpus_waits_and_hears_why(self) -> None:
        self.node(gpus=8)
        self.create(reaching("odd"), reaching("asks", gpus=1))
        self.bound("asks")
        self.assertIn("NVIDIA_VISIBLE_DEVICES=all reaches for GPUs that it does not request", self.waiting("odd"))
        self.berth.kill()
        self.berth.start()
        self.create(pod("after"))
        self.bound("after")
        self.settle()
        self.assertNotIn("nodeName", self.get("odd")["spec"])
        self.assertEqual(self.events_of("odd", "UnrequestedGpus"), [])


class Room(BesideKubeScheduler):
    """What takes room, what gives it back, and who is woken by it."""

    def fill(self, **how) -> None:
        self.node(1, gpus=1)
        self.create(pod("first", gpus=1, **how))
        self.bound("first")
        self.create(pod("second", gpus=1))
        self.assertEqual(self.waiting("second").split(TAIL)[0], "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")

    def test_a_new_node_wakes_waiting_pods(self) -> None:
        self.create(pod("early", gpus=1))
        self.waiting("early")
        self.node(1)
        self.assertEqual(self.bound("early"), "node-0")

    def test_a_deleted_pod_frees_its_room(self) -> None:
        self.fill()
        self.delete("first")
        self.bound("second")

    def test_a_terminating_pod_holds_its_room_until_it_is_gone(self) -> None:
        self.fill(finalizers=["example.com/hold"])
        self.delete("first")
        self.create(pod("third", gpus=1))
        self.waiting("third")
        self.assertIn("deletionTimestamp", self.get("first")["metadata"])
        self.assertNotIn("nodeName", self.get("second")["spec"])
        self.patch(f"{PODS}/first", {"metadata": {"finalizers": None}})
        self.bound("second")

    def test_a_pod_whose_limits_no_machine_has_still_holds_its_gpus(self) -> None:
        self.node(1, gpus=8)
        huge = pod("huge", scheduler="nobody", nodeName="node-0")
        huge["spec"]["containers"][0]["resources"] = {
            "requests": {"memory": "1Gi"}, "limits": {"memory": "100E", "nvidia.com/gpu": "8"}}  # fmt: skip
        self.create(huge, pod("one", gpus=8))
        self.assertEqual(self.waiting("one").split(TAIL)[0], "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
        self.assertEqual(self.berth.metric("berth_quarantined_objects_total"), 0)
        self.delete("huge")
        self.bound("one")

    def test_a_completed_pod_frees_its_room(self) -> None:
        self.fill(restartPolicy="Never", annotations={"pod-complete.stage.kwok.x-k8s.io/delay": "2s"})
        self.bound("second")
        self.assertEqual(self.get("first")["status"]["phase"], "Succeeded")

    def test_a_failed_pod_frees_its_room(self) -> None:
        self.fill(restartPolicy="Never", annotations={"pod-fail.stage.kwok.x-k8s.io/delay": "2s"})
        self.bound("second")

    def test_a_cordoned_node_takes_nothing_until_it_is_uncordoned(self) -> None:
        self.node(1)
        self.cluster.kubectl("cordon", "node-0")
        self.create(pod("waits", gpus=1))
        self.message_of_nodes("waits", "1 node(s) were unschedulable")
        self.cluster.kubectl("uncordon", "node-0")
        self.bound("waits")

    def test_a_job_of_twenty_pods_completes_on_eight_gpus(self) -> None:
        self.node(1, gpus=8)
        delay = {"pod-complete.stage.kwok.x-k8s.io/delay": "300ms"}
        template = pod("", gpus=1, restartPolicy="Never", annotations=delay)
        template = {"metadata": {"annotations": template["metadata"]["annotations"]}, "spec": template["spec"]}
        self.kubectl_apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "twenty"},
                            "spec": {"completions": 20, "parallelism": 20, "template": template}})  # fmt: skip
        self.cluster.kubectl("wait", "--for=condition=Complete", "job/twenty", "--timeout=90s")

    def test_a_pod_resized_in_place_counts_with_the_most_of_wanted_and_actual(self) -> None:
        self.node(1, gpus=0, cpu="4")
        self.create(pod("grows", requests={"cpu": "1", "memory": "1Gi"}))
        self.bound("grows")
        wait_until("it runs", lambda: self.get("grows")["status"].get("phase") == "Running")

        def resize(cpu: str) -> None:
            body = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}}
            self.cluster.kubectl("patch", "pod", "grows", "--subresource", "resize", "-p", json.dumps(body))

        def kubelet_says(cpu: str) -> None:
            has = {"cpu": cpu, "memory": "1Gi"}
            status = self.get("grows")["status"]["containerStatuses"][0]
            status |= {"resources": {"requests": has}, "allocatedResources": has}
            self.patch(f"{PODS}/grows/status", {"status": {"containerStatuses": [status]}})

        kubelet_says("1")
        resize("3")
        self.settle()
        self.create(pod("second", requests={"cpu": "2"}))
        self.assertEqual(self.waiting("second").split(TAIL)[0], "0/1 nodes are available: 1 Insufficient cpu.")
        kubelet_says("3")
        resize("1")
        self.settle()
        self.assertNotIn("nodeName", self.get("second")["spec"])  # it still has what it wants no more
        kubelet_says("1")
        self.bound("second")

    def test_pods_that_the_kubelet_rejects_are_not_replaced_in_a_hot_loop(self) -> None:
        for reason in ("UnexpectedAdmissionError", "OutOfnvidia.com/gpu"):
            with self.subTest(reason):
                self.wipe()
                self.reject_for_a_while(reason)

    def reject_for_a_while(self, reason: str) -> None:
        self.node(1, gpus=8)
        self.patch("/api/v1/nodes/node-0", {"metadata": {"annotations": {"kwok.x-k8s.io/node": None}}})
        labels = {"app": "refused"}
        template = {"metadata": {"labels": labels}, "spec": pod("", gpus=1)["spec"]}
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        sets = "/apis/apps/v1/namespaces/default/replicasets"
        self.api.call("POST", sets, {"metadata": {"name": "refused"}, "spec": spec})
        end, rejected = time.monotonic() + 8, set()
        while time.monotonic() < end:  # as a kubelet whose device plugin is broken
            for one in self.pods():
                if one["spec"].get("nodeName") and one["status"]["phase"] in ("Pending", "Running"):
                    status = {"phase": "Failed", "reason": reason, "message": "Pod was rejected"}
                    self.patch(f"{PODS}/{one['metadata']['name']}/status", {"status": status})
                    rejected.add(one["metadata"]["uid"])
            time.sleep(0.02)
        self.assertGreaterEqual(len(rejected), 2)
        self.assertLessEqual(len(rejected), 8, "a ReplicaSet replaces a pod at once: only Berth slows it down")
        self.api.call("DELETE", f"{sets}/refused")


class Texts(BesideKubeScheduler):
    """kube-scheduler and Berth are shown the same pod, and must say the same."""

    def compare(self, what: str, **spec) -> str:
        with self.subTest(what):
            for scheduler in ("default-scheduler", BERTH):
                self.create(pod(f"{what}-{scheduler}", scheduler=scheduler, **copy.deepcopy(spec)))
            theirs = self.waiting(f"{what}-default-scheduler")
            self.assertEqual(self.waiting(f"{what}-{BERTH}"), theirs)
            return theirs.split(TAIL)[0]
        return ""

    def test_without_nodes(self) -> None:
        self.assertEqual(self.compare("none", gpus=1), "no nodes available to schedule pods")

    def test_verdicts_are_those_of_kube_scheduler(self) -> None:
        self.node(2, prefix="a100-", gpus=8, labels=A100)
        self.node(1, prefix="tainted-", gpus=8, taints=DEDICATED)
        self.node(1, prefix="evicts-", gpus=8, taints=[{"key": "broken", "effect": "NoExecute"}])
        self.node(1, prefix="cpu-", gpus=0, cpu="4", memory="8Gi")
        self.node(1, prefix="cordoned-", gpus=8)
        self.patch("/api/v1/nodes/cordoned-0", {"spec": {"unschedulable": True}})
        self.node(1, prefix="full-", gpus=8, pods=1)
        self.create(pod("takes-the-slot", nodeName="full-0"))
        self.create(pod("takes-port-0", nodeName="a100-0", ports=[8080]),
                    pod("takes-port-1", nodeName="a100-1", ports=[8080]))  # fmt: skip
        # the controller manager taints the cordoned node; both schedulers must see that before the comparison
        wait_until("it is tainted", lambda: self.api.call("GET", "/api/v1/nodes/cordoned-0")["spec"].get("taints"))
        a100 = dict(A100)
        self.compare("gpus", gpus=9)
        self.compare("cpu", requests={"cpu": "500"})
        self.compare("mixed", gpus=9, requests={"cpu": "500", "memory": "2Ti", "ephemeral-storage": "9Ti"})
        self.compare("selector", nodeSelector={"no": "such"})
        self.compare("selector-and-gpus", gpus=9, nodeSelector=a100)
        self.compare("affinity", affinity=affinity("nvidia.com/gpu.product", "In", "H100"))
        self.compare("match-fields", affinity=affinity("metadata.name", "In", "nowhere", field=True))
        self.compare("match-fields-one", gpus=9, affinity=affinity("metadata.name", "In", "a100-0", field=True))
        self.compare("ports", ports=[8080], nodeSelector=a100)
        self.compare("ports-and-gpus", ports=[8080], gpus=9)
        self.compare("tolerates-one", gpus=9, tolerations=[{"key": "dedicated", "operator": "Exists"}])
        self.compare("tolerates-all", gpus=9, tolerations=[{"operator": "Exists"}])
        self.compare("too-many-pods", nodeSelector={"kubernetes.io/hostname": "full-0"})
        self.compare("unschedulable", nodeSelector={"kubernetes.io/hostname": "cordoned-0"})
        self.compare("tainted", nodeSelector={"kubernetes.io/hostname": "tainted-0"})

    def test_the_text_follows_the_nodes(self) -> None:
        self.node(1, gpus=1)
        self.create(pod("large", gpus=2))
        self.assertEqual(self.waiting("large").split(TAIL)[0], "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
        first = self.get("large")["status"]["conditions"][0]["lastTransitionTime"]
        self.node(1, prefix="tainted-", taints=DEDICATED)
        self.message_of_nodes("large", "0/2 nodes are available: ")
        self.assertIn("1 node(s) had untolerated taint(s)", unschedulable(self.get("large")))
        self.api.call("DELETE", "/api/v1/nodes/tainted-0")
        self.message_of_nodes("large", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
        self.assertEqual(self.get("large")["status"]["conditions"][0]["lastTransitionTime"], first)

    def test_events_have_the_fields_of_kube_schedulers(self) -> None:
        self.node(1, gpus=1)
        for reason, gpus in (("Scheduled", 0), ("FailedScheduling", 2)):
            seen = {}
            for scheduler in (BERTH, "default-scheduler"):
                name = f"{reason.lower()}-{scheduler}"
                self.create(pod(name, gpus=gpus, scheduler=scheduler))
                events = wait_until(f"{reason} of {name}", lambda n=name, r=reason: self.events_of(n, r))
                self.assertEqual(len(events), 1)
                event = events[0]
                self.assertEqual(event["regarding"]["uid"], self.get(name)["metadata"]["uid"])
                self.assertTrue(event["metadata"]["name"].startswith(name + "."))
                self.assertEqual(event["reportingController"], scheduler)
                self.assertTrue(event["reportingInstance"].startswith(scheduler + "-"), event["reportingInstance"])
                self.assertNotIn("related", event)
                event["note"] = event["note"].replace(scheduler, "?")
                fields = {key: event.get(key) for key in ("type", "reason", "action", "note")}
                about = {key: event["regarding"].get(key) for key in ("apiVersion", "kind", "namespace")}
                seen[scheduler] = (fields, about)
            self.assertEqual(seen[BERTH], seen["default-scheduler"])

    def test_a_refused_bind_is_told_as_kube_scheduler_tells_it(self) -> None:
        api = "/apis/admissionregistration.k8s.io/v1"
        self.api.call("POST", f"{api}/validatingadmissionpolicies", {
            "metadata": {"name": "no-binds"}, "spec": {
                "failurePolicy": "Fail", "validations": [{"expression": "false", "message": "not today"}],
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                    "resources": ["pods/binding"]}]}}})  # fmt: skip
        self.api.call("POST", f"{api}/validatingadmissionpolicybindings", {
            "metadata": {"name": "no-binds"}, "spec": {"policyName": "no-binds", "validationActions": ["Deny"]}})  # fmt: skip
        for kind in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
            self.addCleanup(self.api.call, "DELETE", f"{api}/{kind}/no-binds")
        probe = {"metadata": {"name": "no-such-pod"}, "target": {"kind": "Node", "name": "n"}}

        def denied() -> bool:
            try:
                self.api.call("POST", f"{PODS}/no-such-pod/binding", probe)
            except ApiError as error:
                return "not today" in str(error)
            return False

        wait_until("the policy holds", denied)
        self.node(1)
        self.create(pod("ours"), pod("theirs", scheduler="default-scheduler"))

        def told(name: str) -> dict | None:
            conditions = self.get(name)["status"].get("conditions", [])
            found = [one for one in conditions if one["type"] == "PodScheduled" and one["status"] == "False"]
            return {key: found[0].get(key) for key in ("reason", "message")} if found else None

        theirs = wait_until("kube-scheduler's pod is told", lambda: told("theirs"))
        ours = wait_until("Berth's pod is told", lambda: told("ours"))
        same = json.loads(json.dumps(theirs).replace("theirs", "ours"))
        self.assertEqual(ours["reason"], same["reason"])
        self.assertEqual(ours["message"].replace("berth-system:berth", "?"), same["message"].replace(
            "system:kube-scheduler", "?"))  # fmt: skip
        event = wait_until("it has an event", lambda: self.events_of("ours", "FailedScheduling"))[0]
        self.assertEqual(event["note"], ours["message"])
        for name in ("ours", "theirs"):
            self.delete(name)

    def test_fifty_equal_pods_get_one_event_each_while_their_node_keeps_changing(self) -> None:
        self.node(1, gpus=1)
        self.create(pod("first", gpus=2))
        self.message_of_nodes("first", "0/1 nodes are available: ")  # nodes and pods come by watches of their own
        names = [f"equal-{i}" for i in range(50)]
        self.create(*(pod(name, gpus=2) for name in names))
        for name in names:
            self.waiting(name)
        for i in range(20):
            self.patch("/api/v1/nodes/node-0", {"metadata": {"labels": {"turn": str(i)}}})
            time.sleep(0.1)
        time.sleep(1)
        found = [one for one in self.api.call("GET", EVENTS)["items"] if one["regarding"]["name"] in names]
        self.assertEqual(sorted(one["regarding"]["name"] for one in found), sorted(names))
        self.assertEqual([one for one in found if one.get("series")], [])


if __name__ == "__main__":
    main()
