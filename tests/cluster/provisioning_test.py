#!/usr/bin/env python3
"""Nodes that are made for what waits in queues, on a real kube-apiserver; the test plays the cluster's autoscaler, which
answers ProvisioningRequests in their status, with a definition of its own.

Ends with status 77 (skipped, for ctest) where the test servers or the program are not built.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.daemon import wait_until  # noqa: E402
from harness.kueue import DEFINITIONS, GPU, make  # noqa: E402
from harness.suite import main  # noqa: E402
from queues_test import JOBS, QueueSuite, job  # noqa: E402

GROUP = "autoscaling.x-k8s.io"
REQUESTS = f"/apis/{GROUP}/v1/namespaces/default/provisioningrequests"
TEMPLATES = "/api/v1/namespaces/default/podtemplates"
CONSUMES = f"{GROUP}/consume-provisioning-request"
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TEXTS = {"type": "object", "additionalProperties": {"type": "string", "maxLength": 255}}
POD_SETS = {"type": "array", "minItems": 1, "maxItems": 32, "items": {
    "type": "object", "required": ["podTemplateRef", "count"],
    "properties": {"podTemplateRef": {"type": "object", "properties": {"name": {"type": "string"}}},
                   "count": {"type": "integer", "minimum": 1}}}}  # fmt: skip
SPEC = {"type": "object", "required": ["podSets", "provisioningClassName"],
        "properties": {"podSets": POD_SETS, "provisioningClassName": {"type": "string"}, "parameters": TEXTS},
        "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "Value is immutable"}]}  # fmt: skip
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": f"provisioningrequests.{GROUP}",
                 "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/autoscaler/pull/5848"}},
    "spec": {"group": GROUP, "scope": "Namespaced",
             "names": {"kind": "ProvisioningRequest", "plural": "provisioningrequests",
                       "singular": "provisioningrequest", "listKind": "ProvisioningRequestList"},
             "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                           "schema": {"openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": {
                               "spec": SPEC, "status": OPEN}}}}]}}  # fmt: skip


class Provisioning(QueueSuite):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.define()

    @classmethod
    def define(cls) -> None:
        cls.api.call("POST", DEFINITIONS, DEFINITION)
        watch = f"{REQUESTS}?watch=true&timeoutSeconds=1"
        wait_until("requests can be watched", lambda: cls.api.raw("GET", watch)[0] == 200)

    def setUp(self) -> None:
        super().setUp()
        self.api.call("DELETE", self.of_kind("provisioningrequestconfigs"))
        wait_until("no requests are left", lambda: not self.requests())

    def provisioned(self, **spec) -> None:
        """A queue whose workloads need nodes of the pool `made`, and the check that sees to them."""
        parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": "config"}
        self.apply(make("ProvisioningRequestConfig", "config", {"provisioningClassName": "queued", **spec}),
                   make("AdmissionCheck", "nodes", {"controllerName": "kueue.x-k8s.io/provisioning-request",
                                                    "parameters": parameters}))  # fmt: skip
        self.queues(checks=("nodes",), flavors=(("gpus", {"nodeLabels": {"pool": "made"}}),), red=4)
        wait_until("the check is active", lambda: self.active().get("status") == "True")

    def active(self) -> dict:
        conditions = self.status("admissionchecks", "nodes").get("conditions", [])
        return next((one for one in conditions if one["type"] == "Active"), {})

    def requests(self) -> list[dict]:
        return self.api.call("GET", REQUESTS)["items"]

    def templates(self) -> list[dict]:
        return self.api.call("GET", TEMPLATES)["items"]

    def request(self, attempt: int = 1) -> dict:
        """The one that is asked for in this attempt."""
        def found() -> dict | None:
            all_of = [one for one in self.requests() if one["metadata"]["name"].endswith(f"-nodes-{attempt}")]
            return all_of[0] if all_of else None

        return wait_until(lambda: f"nodes are asked for: {self.workload('train')}", found)

    def answer(self, request: dict, details: dict | None = None, **conditions: tuple[str, str]) -> None:
        """What the autoscaler says of it: status and message of each condition."""
        told = [{"type": kind, "status": status, "reason": "Said", "message": message,
                 "lastTransitionTime": "2026-01-01T00:00:00Z"} for kind, (status, message) in conditions.items()]  # fmt: skip
        self.patch(f"{REQUESTS}/{request['metadata']['name']}/status",
                   {"status": {"conditions": told, "provisioningClassDetails": details or {}}})  # fmt: skip

    def check_says(self, state: str, message: str) -> dict:
        def says() -> dict | None:
            checks = (self.workload("train") or {}).get("status", {}).get("admissionChecks", [])
            return checks[0] if checks and checks[0]["state"] == state and message in checks[0]["message"] else None

        return wait_until(lambda: f"the check says {state}, {message}: {self.workload('train')}", says)

    def restart(self) -> None:
        self.berth.kill()
        self.berth.start()
        self.settle()

    def test_nodes_are_made_for_what_has_quota(self) -> None:
        selector = [{"key": "group", "valueFromProvisioningClassDetail": "NodeGroup"}]
        self.provisioned(parameters={"zone": "a"}, managedResources=[GPU], podSetUpdates={"nodeSelector": selector})
        train = job("train", "red", 2, pods=2)
        train["metadata"]["annotations"] = {"provreq.kueue.x-k8s.io/ValidUntilSeconds": "600"}
        self.apply(train)
        asked = self.request()
        name, workload = asked["metadata"]["name"], self.workload("train")
        self.assertEqual(name, f"{workload['metadata']['name']}-nodes-1")
        self.assertEqual(asked["metadata"]["ownerReferences"][0]["uid"], workload["metadata"]["uid"])
        self.assertEqual(asked["spec"]["parameters"], {"zone": "a", "ValidUntilSeconds": "600"})
        pods = asked["spec"]["podSets"]
        self.assertEqual([(one["podTemplateRef"]["name"], one["count"]) for one in pods], [(f"ppt-{name}-main", 2)])
        made = self.templates()[0]["template"]["spec"]
        self.assertEqual(made["nodeSelector"], {"pool": "made"})
        self.assertEqual(made["containers"][0]["resources"]["requests"], {GPU: "2"}, "as the pods will ask for")
        self.restart()
        self.check_says("Pending", f"ProvisioningRequest {name} is not accepted yet")
        self.assertEqual([one["metadata"]["uid"] for one in self.requests()], [asked["metadata"]["uid"]])
        self.answer(asked, Accepted=("True", "looked into"), Provisioned=("False", "expected at 12:00"))
        self.check_says("Pending", "expected at 12:00")
        self.answer(asked, {"NodeGroup": "one"}, Accepted=("True", ""), Provisioned=("True", "made"))
        self.check_says("Ready", "made")
        self.assertTrue(self.job("train")["spec"]["suspend"], "there is no place yet")
        self.node(1, gpus=4, labels={"pool": "made", "group": "one"})
        self.runs("train", 2)
        for one in self.pods_of("train"):
            self.assertEqual(one["metadata"]["annotations"][CONSUMES], name)
            self.assertEqual(one["metadata"]["annotations"][f"{GROUP}/provisioning-class-name"], "queued")
            self.assertEqual(one["spec"]["nodeSelector"], {"pool": "made", "group": "one"})
        self.answer(asked, Provisioned=("True", "made"), BookingExpired=("True", "they are used"))
        self.restart()
        self.assertEqual(len(self.pods_of("train")), 2)
        self.api.call("DELETE", f"{JOBS}/train", {"propagationPolicy": "Background"})
        wait_until("what it asked for goes with it", lambda: not self.requests() and not self.templates())

    def test_what_fails_is_tried_again_and_given_up_in_the_end(self) -> None:
        self.provisioned(retryStrategy={"backoffLimitCount": 1, "backoffBaseSeconds": 1, "backoffMaxSeconds": 2})
        self.apply(job("train", "red", 4))
        self.answer(self.request(), Failed=("True", "none to be had"))
        self.assertIn("At least one admission check is false", self.has_been("train", "Evicted")["message"])
        self.restart()
        second = self.request(2)
        self.assertEqual(len(self.requests()), 2, "what failed is the count of attempts")
        self.check_says("Pending", "is not accepted yet")
        self.answer(second, Accepted=("True", ""), BookingExpired=("True", "nobody came"))
        wait_until("it is not active any more", lambda: not self.workload("train")["spec"]["active"])
        self.is_now("train", "Evicted", reason="DeactivatedDueToAdmissionCheck")
        wait_until("nothing is asked for any more", lambda: not self.requests() and not self.templates())
        self.patch(f"{self.of_kind('workloads')}/{self.workload('train')['metadata']['name']}", {"spec": {"active": True}})
        self.request(1)

    def test_who_has_no_quota_any_more_asks_for_nothing(self) -> None:
        self.provisioned()
        self.apply(job("train", "red", 4))
        first = self.request()
        queue = f"{self.of_kind('clusterqueues')}/red"
        self.patch(queue, {"spec": {"stopPolicy": "HoldAndDrain"}})
        wait_until("it is taken back", lambda: not self.requests() and not self.templates())
        self.patch(queue, {"spec": {"stopPolicy": "None"}})
        self.assertNotEqual(self.request()["metadata"]["uid"], first["metadata"]["uid"])
        self.answer(self.request(), Provisioned=("True", ""))
        self.node(1, gpus=4, labels={"pool": "made"})
        self.runs("train")
        self.answer(self.request(), Provisioned=("True", ""), CapacityRevoked=("True", "maintenance"))
        self.is_now("train", "Evicted", reason="DeactivatedDueToAdmissionCheck")
        wait_until("its pods are gone", lambda: not self.pods_of("train"))

    def test_without_the_autoscalers_definition_the_check_says_so(self) -> None:
        self.provisioned()
        self.api.call("DELETE", f"{DEFINITIONS}/{DEFINITION['metadata']['name']}")
        wait_until(lambda: f"the check is not active: {self.active()}", lambda: self.active().get("status") == "False")
        self.assertEqual(self.active()["reason"], "NoProvisioningRequests")
        self.assertIn("the API server has no provisioningrequests", self.active()["message"])
        self.node(1, gpus=8)
        self.apply(job("train", "red", 4))
        self.is_now("train", "QuotaReserved", "False", "Suspended")
        wait_until("the queue says why", lambda: "AdmissionCheckInactive" in str(self.status("clusterqueues", "red")))
        self.apply(make("ClusterQueue", "blue", {
            "namespaceSelector": {}, "resourceGroups": [{"coveredResources": [GPU], "flavors": [
                {"name": "plain", "resources": [{"name": GPU, "nominalQuota": 4}]}]}]}),
            make("ResourceFlavor", "plain", {}), make("LocalQueue", "blue", {"clusterQueue": "blue"}, namespace="default"),
            job("other", "blue", 4))  # fmt: skip
        self.runs("other")
        self.restart()
        self.assertEqual(len(self.pods_of("other")), 1)
        wait_until("the definition is gone", lambda: self.api.raw("GET", REQUESTS)[0] == 404)
        self.define()
        wait_until(lambda: f"the check is active: {self.active()}", lambda: self.active().get("status") == "True")
        self.request()


if __name__ == "__main__":
    main()
