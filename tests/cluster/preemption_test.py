#!/usr/bin/env python3
"""Preemption on a real kube-apiserver: who goes, how they go, who gets the room, and what stops it.

The test plays the kubelets, and the disruption controller, so that it decides when a victim is gone and how many pods a
budget lets go. Ends with status 77 (skipped, for ctest) where the test servers or the program are not built.
"""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.daemon import Berth, wait_until, write_kubeconfig  # noqa: E402
from harness.objects import BERTH, pod, unschedulable  # noqa: E402
from harness.suite import MERGE, WithBerth, main  # noqa: E402

from cluster import ApiError  # noqa: E402

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
GRACE_S = 30
PRIORITIES = {"low": 100, "mid": 500, "high": 1000}
PROTECTED = {"berth.dev/preemptible": "false"}


def on(node: str) -> dict:
    return {"nodeSelector": {"kubernetes.io/hostname": node}}


def tier(name: str, cls: str, gpus: int, **how) -> dict:
    return pod(name, gpus=gpus, priorityClassName=cls, **{"terminationGracePeriodSeconds": GRACE_S, **how})


class Preemption(WithBerth):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        for name, value in PRIORITIES.items():
            cls.priority_class(name, value)
        cls.priority_class("patient", PRIORITIES["high"], preemptionPolicy="Never")
        cls.priority_class("meek", PRIORITIES["mid"], preemptionPolicy="Never")

    @classmethod
    def priority_class(cls, name: str, value: int, **more) -> None:
        cls.api.call("POST", CLASSES, {"metadata": {"name": name}, "value": value, **more})
        cls.addClassCleanup(cls.api.call, "DELETE", f"{CLASSES}/{name}")

    def setUp(self) -> None:
        self.api.call("DELETE", BUDGETS)
        super().setUp()

    # -- short forms

    def fill(self, *pods: dict, namespace: str = "default") -> None:
        """Creates pods that fit and returns when they run."""
        self.create(*pods, namespace=namespace)
        for one in pods:
            self.bound(one["metadata"]["name"], namespace)
            path = f"/api/v1/namespaces/{namespace}/pods/{one['metadata']['name']}/status"
            self.patch(path, {"status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}})

    def leaving(self) -> set[str]:
        """The pods that are being deleted, of all namespaces."""
        items = self.api.call("GET", "/api/v1/pods")["items"]
        return {one["metadata"]["name"] for one in items if "deletionTimestamp" in one["metadata"]}

    def evicted(self, *names: str) -> None:
        """Returns when just these pods are being deleted, and no other is by the time Berth has seen it."""
        wait_until(lambda: f"{set(names)} leave: {self.leaving()} do", lambda: self.leaving() == set(names))
        self.settle()
        self.assertEqual(self.leaving(), set(names))

    def condition(self, name: str, kind: str) -> dict:
        conditions = self.get(name)["status"].get("conditions", [])
        return next((one for one in conditions if one["type"] == kind), {})

    def nominated(self, name: str) -> str:
        return wait_until(f"{name} is nominated", lambda: self.get(name)["status"].get("nominatedNodeName"))

    # -- who goes, and how

    def test_the_fewest_and_lowest_go_gracefully_and_the_room_waits_for_the_preemptor(self) -> None:
        self.node(3, gpus=4)
        self.fill(*(tier(f"small-{i}", "low", 1, **on("node-0")) for i in range(4)),
                  tier("large", "low", 4, **on("node-1")), tier("better", "mid", 4, **on("node-2")))  # fmt: skip
        before = self.berth.metrics()
        [boss] = self.create(tier("boss", "high", 4))
        self.evicted("large")

        victim = self.get("large")
        self.assertEqual(victim["metadata"]["deletionGracePeriodSeconds"], GRACE_S)
        mark = self.condition("large", "DisruptionTarget")
        self.assertEqual((mark["status"], mark["reason"], mark["message"]),
                         ("True", "PreemptionByScheduler",
                          f"{BERTH}: preempting to accommodate a higher priority pod"))  # fmt: skip
        event = wait_until("the victim is told", lambda: self.events_of("large", "Preempted"))[0]
        self.assertEqual((event["type"], event["action"], event["note"]),
                         ("Normal", "Preempting", f"Preempted by pod {boss} on node node-1"))  # fmt: skip
        self.assertEqual((event["regarding"]["uid"], event["related"]["uid"]), (victim["metadata"]["uid"], boss))

        self.assertEqual(self.nominated("boss"), "node-1")
        self.assertIn("Insufficient nvidia.com/gpu", unschedulable(self.get("boss")))
        self.create(tier("sneak", "meek", 4))  # would fit as soon as the victim is gone
        self.waiting("sneak")
        self.assertNotIn("nodeName", self.get("boss")["spec"])
        self.delete("large")
        self.assertEqual(self.bound("boss"), "node-1")
        self.assertNotIn("nominatedNodeName", self.get("boss")["status"])
        self.settle()
        self.assertNotIn("nodeName", self.get("sneak")["spec"])

        after = wait_until("metrics", self.berth.metrics)
        for name, by in (('berth_evictions_total{result="evicted"}', 1), ("scheduler_preemption_victims_sum", 1),
                         ("berth_preemptions_total", 1)):  # fmt: skip
            self.assertEqual(after[name] - before[name], by, name)

    def test_no_more_pods_go_than_must(self) -> None:
        self.node(1, gpus=4)
        self.fill(*(tier(f"low-{i}", "low", 1) for i in range(3)), tier("mid", "mid", 1))
        self.create(tier("boss", "high", 2))
        wait_until("two leave", lambda: len(self.leaving()) == 2)
        self.settle()
        leaving = self.leaving()
        self.assertEqual(len(leaving), 2)
        self.assertNotIn("mid", leaving)
        for name in leaving:
            self.delete(name)
        self.bound("boss")

    def test_many_preemptors_at_once_evict_one_pod_each(self) -> None:
        self.node(5, gpus=8)
        self.fill(*(tier(f"low-{i}", "low", 1) for i in range(40)))
        before = self.berth.metric("berth_evictions_total")
        self.create(*(tier(f"boss-{i}", "high", 1) for i in range(20)))
        wait_until(lambda: f"20 leave: {len(self.leaving())} do", lambda: len(self.leaving()) >= 20)
        for i in range(20):
            self.nominated(f"boss-{i}")
        self.settle()
        leaving = self.leaving()
        self.assertEqual(len(leaving), 20)
        for name in leaving:
            self.delete(name)
        for i in range(20):
            self.bound(f"boss-{i}")
        self.assertEqual(self.leaving(), set())
        self.assertEqual(self.berth.metric("berth_evictions_total") - before, 20)

    def test_the_message_names_the_scheduler_of_the_preemptor(self) -> None:
        self.node(1, gpus=4)
        self.fill(tier("victim", "low", 4))
        self.create(tier("boss", "high", 4, scheduler="berth-too"))
        self.evicted("victim")
        self.assertEqual(self.condition("victim", "DisruptionTarget")["message"],
                         "berth-too: preempting to accommodate a higher priority pod")  # fmt: skip
        self.delete("victim")
        self.bound("boss")

    def test_a_preemptor_that_is_deleted_leaves_no_claim_on_the_room(self) -> None:
        self.node(1, gpus=4)
        self.fill(tier("victim", "low", 4))
        self.create(tier("boss", "high", 4))
        self.evicted("victim")
        self.delete("boss")
        self.create(tier("next", "low", 4))
        self.delete("victim")
        self.bound("next")

    def test_equals_and_betters_stay(self) -> None:
        self.node(2, gpus=4)
        self.fill(tier("same", "mid", 4), tier("better", "high", 4))
        self.create(tier("boss", "mid", 4))
        self.waiting("boss")
        self.settle()
        self.assertEqual(self.leaving(), set())
        self.assertNotIn("nominatedNodeName", self.get("boss")["status"])

    # -- what stops it

    def test_a_pod_whose_class_never_preempts_waits(self) -> None:
        self.node(1, gpus=4)
        self.fill(tier("victim", "low", 4))
        self.create(tier("boss", "patient", 4))
        self.waiting("boss")
        self.settle()
        self.assertEqual(self.leaving(), set())
        self.assertNotIn("nominatedNodeName", self.get("boss")["status"])
        self.delete("victim")
        self.bound("boss")

    def test_a_budget_steers_to_others(self) -> None:
        self.node(2, gpus=4)
        self.fill(tier("guarded", "low", 4, labels={"app": "chat"}), tier("other", "mid", 4))
        self.budget("chat", {"app": "chat"}, allowed=0)
        self.settle()
        self.create(tier("boss", "high", 4))
        self.evicted("other")  # although it is more important

    def test_a_budget_that_allows_it_protects_nobody(self) -> None:
        self.node(2, gpus=4)
        self.fill(tier("guarded", "low", 4, labels={"app": "chat"}), tier("other", "mid", 4))
        self.budget("chat", {"app": "chat"}, allowed=1)
        self.settle()
        self.create(tier("boss", "high", 4))
        self.evicted("guarded")

    def test_a_budget_gives_way_where_there_is_no_choice(self) -> None:
        self.node(1, gpus=4)
        self.fill(tier("guarded", "low", 4, labels={"app": "chat"}))
        self.budget("chat", {}, allowed=0)
        self.settle()
        self.create(tier("boss", "high", 4))
        self.evicted("guarded")

    def test_protected_pods_stay_where_their_namespace_allows_it(self) -> None:
        self.allow_protection("team")
        self.node(2, gpus=4)
        self.fill(tier("serving", "low", 4, annotations=PROTECTED), namespace="team")
        self.fill(tier("pretender", "mid", 4, annotations=PROTECTED))
        self.settle()
        self.create(tier("boss", "high", 4))
        self.evicted("pretender")

    def test_nobody_goes_when_all_are_protected(self) -> None:
        self.allow_protection("default")
        self.node(1, gpus=4)
        self.fill(tier("serving", "low", 4, annotations=PROTECTED))
        self.create(tier("boss", "high", 4))
        self.waiting("boss")
        self.settle()
        self.assertEqual(self.leaving(), set())
        self.patch("/api/v1/namespaces/default",
                   {"metadata": {"annotations": {"berth.dev/allow-protected-pods": None}}})  # fmt: skip
        self.evicted("serving")

    def budget(self, name: str, labels: dict[str, str], allowed: int) -> None:
        spec = {"minAvailable": 1, "selector": {"matchLabels": labels}}
        self.api.call("POST", BUDGETS, {"metadata": {"name": name}, "spec": spec})
        status = {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
        self.patch(f"{BUDGETS}/{name}/status", {"status": status})

    def allow_protection(self, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}"
        self.patch(path, {"metadata": {"annotations": {"berth.dev/allow-protected-pods": "true"}}})
        self.addCleanup(self.patch, path, {"metadata": {"annotations": {"berth.dev/allow-protected-pods": None}}})

    # -- crashes

    def test_after_kill_9_the_same_preemptor_gets_the_room_and_nobody_else_goes(self) -> None:
        config = {"schedulerNames": ["crashes"], "verdictInterval": "200ms"}
        mine = {"scheduler": "crashes"}
        first = Berth(self.scratch, self.cluster.berth_kubeconfig, config=config).start()
        self.addCleanup(first.kill)
        self.node(2, gpus=4)
        self.fill(tier("large-0", "low", 4, **on("node-0"), **mine), tier("large-1", "low", 4, **on("node-1"), **mine))
        self.create(tier("boss", "high", 4, **mine))
        node = self.nominated("boss")
        victim, other = ("large-0", "large-1") if node == "node-0" else ("large-1", "large-0")
        self.evicted(victim)
        first.kill()

        self.create(tier("rival", "mid", 4, **mine))
        second = Berth(self.scratch, self.cluster.berth_kubeconfig, config=config).start()
        self.addCleanup(second.kill)
        # The rival is less important than the preemptor: it may only have the other node.
        wait_until(lambda: f"the rival has its own victim: {self.leaving()}", lambda: self.leaving() == {victim, other})
        self.assertEqual(second.said("evicting a pod for another", preemptor="default/boss"), [])
        self.assertEqual(self.get("boss")["status"]["nominatedNodeName"], node)
        self.delete(victim)
        self.assertEqual(self.bound("boss"), node)
        self.delete(other)
        self.bound("rival")
        self.assertEqual(second.said("evicting a pod for another", preemptor="default/boss"), [])

    # -- rights

    def limited(self, name: str, without: set[tuple[str, str]]) -> tuple[Berth, str]:
        """Berth with its own scheduler name and without some (resource, verb); its ClusterRole, to be amended."""
        rules = self.rules()
        for rule in rules:
            lost = {verb for resource, verb in without if resource in rule["resources"]}
            rule["verbs"] = [verb for verb in rule["verbs"] if verb not in lost]
        rules = [rule for rule in rules if rule["verbs"]]
        subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        about = {"metadata": {"name": name}}
        for path, body in (("/api/v1/namespaces/default/serviceaccounts", about),
                           (f"{RBAC}/clusterroles", {**about, "rules": rules}),
                           (f"{RBAC}/clusterrolebindings",
                            {**about, "roleRef": reference, "subjects": [subject]})):  # fmt: skip
            self.api.call("POST", path, body)
            self.addCleanup(self.api.call, "DELETE", f"{path}/{name}")
        token = self.api.call("POST", f"/api/v1/namespaces/default/serviceaccounts/{name}/token", {"spec": {}})
        config = write_kubeconfig(self.scratch / f"{name}.kubeconfig", self.cluster.server_url,
                                  {"token": token["status"]["token"]}, self.cluster.layout.pki / "ca.crt")  # fmt: skip
        berth = Berth(self.scratch, config, config={"schedulerNames": [name], "verdictInterval": "200ms"}).start()
        self.addCleanup(berth.kill)
        return berth, f"{RBAC}/clusterroles/{name}"

    def rules(self) -> list[dict]:
        return self.api.call("GET", f"{RBAC}/clusterroles/berth-scheduler")["rules"]

    def test_without_the_right_to_delete_pods_it_says_so_and_goes_on(self) -> None:
        berth, _role = self.limited("no-delete", {("pods", "delete")})
        self.node(1, gpus=4)
        self.fill(tier("victim", "low", 4, scheduler="no-delete"))
        self.create(tier("boss", "high", 4, scheduler="no-delete"))
        said = wait_until("it says what it needs", lambda: berth.said("a pod may not be evicted"))[0]
        self.assertIn("needs delete on pods", said["msg"])
        self.assertEqual(said["pod"], "default/victim")
        self.assertIn("cannot delete resource", said["error"])
        self.create(tier("small", "low", 0, scheduler="no-delete"))
        self.bound("small")
        time.sleep(3)  # long enough for thousands, were it to try without pause
        self.assertLessEqual(berth.metric("berth_evictions_total{result=\"refused\"}"), 3)
        self.assertEqual(self.leaving(), set())

    def test_without_the_right_to_read_budgets_nobody_goes_until_it_is_given(self) -> None:
        berth, role = self.limited("no-budgets", {("poddisruptionbudgets", verb) for verb in ("get", "list", "watch")})
        self.node(1, gpus=4)
        self.fill(tier("victim", "low", 4, scheduler="no-budgets"))
        self.create(tier("boss", "high", 4, scheduler="no-budgets"))
        self.assertEqual(len(berth.said("disruption budgets cannot be read")), 1)
        wait_until("boss waits", lambda: unschedulable(self.get("boss")))
        self.settle()
        self.assertEqual(self.leaving(), set())
        self.patch(role, {"rules": self.rules()}, MERGE)
        wait_until("the victim leaves", lambda: self.leaving() == {"victim"}, 90)

    def tearDown(self) -> None:
        with contextlib.suppress(ApiError):
            self.api.call("DELETE", BUDGETS)
        super().tearDown()


if __name__ == "__main__":
    main()
