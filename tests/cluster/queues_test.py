#!/usr/bin/env python3
"""Jobs in queues on a real kube-apiserver, with the real Job controller: they wait suspended, are admitted with quota and
a place, borrow, are reclaimed and preempted, and a Berth that is killed in the middle goes on where it was.

Ends with status 77 (skipped, for ctest) where the test servers or the program are not built.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.daemon import berth_binary, wait_until  # noqa: E402
from harness.kueue import GPU, flavor, group, install, make, path_of, quota  # noqa: E402
from harness.objects import BERTH, pod  # noqa: E402
from harness.suite import WithBerth, main, shared_cluster  # noqa: E402

JOBS = "/apis/batch/v1/namespaces/default/jobs"
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads"
QUEUE = "kueue.x-k8s.io/queue-name"
KINDS = ("workloads", "localqueues", "clusterqueues", "cohorts", "resourceflavors", "workloadpriorityclasses",
         "admissionchecks")  # fmt: skip


def job(name: str, queue: str, gpus: int, pods: int = 1, runs: str = "1h", priority: str = "", **spec) -> dict:
    """A Job of so many pods at a time, each of which runs for so long once it is bound."""
    container = {"name": "main", "image": "none", "resources": {"limits": {GPU: str(gpus)}}}
    template = {"metadata": {"annotations": {"pod-complete.stage.kwok.x-k8s.io/delay": runs}},
                "spec": {"schedulerName": BERTH, "restartPolicy": "Never", "containers": [container]}}  # fmt: skip
    labels = {QUEUE: queue, **({"kueue.x-k8s.io/priority-class": priority} if priority else {})}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": labels},
            "spec": {"suspend": True, "parallelism": pods, "completions": pods, "template": template, **spec}}  # fmt: skip


def waiting_pod(name: str, queue: str, gpus: int, group: str = "", total: int = 0, runs: str = "1h") -> dict:
    """A pod as the webhook leaves it, by itself or of a group of so many."""
    labels = {QUEUE: queue, "kueue.x-k8s.io/managed": "true"}
    annotations = {"pod-complete.stage.kwok.x-k8s.io/delay": runs}
    if group:
        labels["kueue.x-k8s.io/pod-group-name"] = group
        annotations["kueue.x-k8s.io/pod-group-total-count"] = str(total)
    return pod(name, gpus=gpus, labels=labels, annotations=annotations, restartPolicy="Never",
               schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])  # fmt: skip


def offline(*arguments: str, given: str) -> str:
    """What the program says of the manifests, without a cluster."""
    done = subprocess.run([berth_binary(), *arguments], input=given, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3), done.stderr  # 3: something waits
    return done.stdout


class QueueSuite(WithBerth):
    COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")

    @classmethod
    def setUpClass(cls) -> None:
        cluster = shared_cluster(cls.COMPONENTS)
        install(cluster, "v1beta2")
        for plural in KINDS:  # a definition that has just been established answers 429 for a while
            path = f"/apis/kueue.x-k8s.io/v1beta2/{plural}?watch=true&timeoutSeconds=1"
            wait_until(f"{plural} can be watched", lambda p=path: cluster.api.raw("GET", p)[0] == 200)
        super().setUpClass()

    def setUp(self) -> None:
        super().setUp()
        for plural in KINDS:
            self.api.call("DELETE", self.of_kind(plural))
            wait_until(f"no {plural} are left", lambda p=plural: not self.api.call("GET", self.of_kind(p))["items"])

    def of_kind(self, plural: str) -> str:
        spaced = "namespaces/default/" if plural in ("workloads", "localqueues") else ""
        return f"/apis/kueue.x-k8s.io/v1beta2/{spaced}{plural}"

    def apply(self, *objects: dict) -> None:
        for one in objects:
            self.api.call("POST", path_of(one) if one["apiVersion"].startswith("kueue") else JOBS, one)

    def queues(self, preemption: dict | None = None, flavors: tuple = (("gpus", {}),), checks: tuple = (),
               **nominal: int) -> None:  # fmt: skip
        """ClusterQueues of one cohort with a LocalQueue of the same name each."""
        for name, spec in flavors:
            self.apply(make("ResourceFlavor", name, spec))
        for name, amount in nominal.items():
            spec = {"cohortName": "all", "namespaceSelector": {}, **({"preemption": preemption} if preemption else {}),
                    "resourceGroups": [group(*(flavor(one, quota(nominal=amount)) for one, _ in flavors))]}  # fmt: skip
            if checks:
                spec["admissionChecksStrategy"] = {"admissionChecks": [{"name": one} for one in checks]}
            self.apply(make("ClusterQueue", name, spec),
                       make("LocalQueue", name, {"clusterQueue": name}, namespace="default"))  # fmt: skip

    def may_start(self, name: str) -> bool:
        return self.api.raw("PATCH", f"{JOBS}/{name}?dryRun=All", b'{"spec":{"suspend":false}}',
                            {"Content-Type": "application/merge-patch+json"})[0] == 200  # fmt: skip

    def forbid_start(self, name: str) -> None:
        """The server refuses to have the Job started, which is not there yet."""
        policy = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
                  "metadata": {"name": "no-start"},
                  "spec": {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [
                      {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["jobs"]}]},
                      "validations": [{"expression": f"object.metadata.name != '{name}' || object.spec.suspend",
                                       "message": f"{name} must not run"}]}}  # fmt: skip
        binding = {**policy, "kind": "ValidatingAdmissionPolicyBinding",
                   "spec": {"policyName": "no-start", "validationActions": ["Deny"]}}  # fmt: skip
        for one, plural in ((policy, "validatingadmissionpolicies"), (binding, "validatingadmissionpolicybindings")):
            path = f"/apis/admissionregistration.k8s.io/v1/{plural}"
            self.api.call("POST", path, one)
            self.addCleanup(self.api.raw, "DELETE", f"{path}/no-start")
        self.apply(job(name, "none", 0))
        wait_until("the policy holds", lambda: not self.may_start(name))
        self.api.call("DELETE", f"{JOBS}/{name}", {"propagationPolicy": "Background"})
        wait_until("the probe is gone", lambda: not self.workload(name))

    def allow_start(self, name: str) -> None:
        self.api.call("DELETE", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/no-start")
        wait_until("the policy has gone", lambda: self.may_start(name))

    def activates(self, check: str) -> None:
        active = {"type": "Active", "status": "True", "reason": "Up", "message": "",
                  "lastTransitionTime": "2026-01-01T00:00:00Z"}  # fmt: skip
        self.patch(f"{self.of_kind('admissionchecks')}/{check}/status", {"status": {"conditions": [active]}})

    def says(self, name: str, state: str, **more) -> None:
        """What the check's controller writes of a Job's Workload."""
        path = f"{WORKLOADS}/{self.workload(name)['metadata']['name']}/status"
        told = {"name": "budget", "state": state, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z", **more}
        self.patch(path, {"status": {"admissionChecks": [told]}})

    def annotate(self, queue: str, annotations: dict) -> None:
        self.api.call("PATCH", f"{self.of_kind('clusterqueues')}/{queue}", {"metadata": {"annotations": annotations}},
                      content_type="application/merge-patch+json")  # fmt: skip

    def budget(self, queue: str) -> dict:
        conditions = self.status("clusterqueues", queue).get("conditions", [])
        return next((one for one in conditions if one["type"] == "berth.dev/WithinBudget"), {})

    def ends(self, name: str) -> None:
        wait_until(f"{name} has ended", lambda: self.job(name).get("status", {}).get("completionTime"))

    def status(self, plural: str, name: str) -> dict:
        return self.api.call("GET", f"{self.of_kind(plural)}/{name}").get("status", {})

    def workload(self, name: str) -> dict | None:
        found = [one for one in self.api.call("GET", WORKLOADS)["items"]
                 if one["metadata"].get("ownerReferences", [{}])[0].get("name") == name]  # fmt: skip
        self.assertLess(len(found), 2, f"{name} has two Workloads")
        return found[0] if found else None

    def condition(self, name: str, kind: str) -> dict:
        workload = self.workload(name) or {}
        conditions = workload.get("status", {}).get("conditions", [])
        return next((one for one in conditions if one["type"] == kind), {})

    def is_now(self, name: str, kind: str, status: str = "True", reason: str = "") -> dict:
        def holds() -> dict | None:
            one = self.condition(name, kind)
            return one if one.get("status") == status and reason in ("", one["reason"]) else None

        return wait_until(lambda: f"{name} is {kind}={status} {reason}: {self.condition(name, kind)}", holds)

    def has_been(self, name: str, kind: str) -> dict:
        """For what may be over before anybody looks: the condition holds, or did before it had its quota again."""
        def holds() -> dict | None:
            one = self.condition(name, kind)
            return one if one.get("status") == "True" or one.get("message", "").startswith("Previously: ") else None

        return wait_until(lambda: f"{name} has been {kind}: {self.condition(name, kind)}", holds)

    def job(self, name: str) -> dict:
        return self.api.call("GET", f"{JOBS}/{name}")

    def pods_of(self, name: str) -> list[dict]:
        return [one for one in self.pods() if one["metadata"].get("labels", {}).get("job-name") == name]

    def runs(self, name: str, pods: int = 1) -> list[str]:
        """The names of its pods once so many run."""
        def running() -> list[str]:
            return [one["metadata"]["name"] for one in self.pods_of(name) if one["status"].get("phase") == "Running"]

        wait_until(lambda: f"{name} runs with {pods}: {self.condition(name, 'QuotaReserved')}",
                   lambda: len(running()) == pods)  # fmt: skip
        return running()

    def is_running(self, name: str) -> dict:
        def running() -> dict | None:
            found = [one for one in self.pods() if one["metadata"]["name"] == name]
            return found[0] if found and found[0]["status"].get("phase") == "Running" else None

        return wait_until(f"pod {name} runs", running)


class Queues(QueueSuite):
    def test_a_job_waits_for_quota_and_then_runs(self) -> None:
        self.node(2, gpus=8)
        self.queues(red=8)
        self.apply(job("first", "red", 4, pods=2))
        self.runs("first", 2)
        self.apply(job("second", "red", 4, pods=2, runs="1s"))
        waits = self.is_now("second", "QuotaReserved", "False", "WaitingForQuota")
        self.assertIn("insufficient unused quota", waits["message"])
        self.assertTrue(self.job("second")["spec"]["suspend"])
        self.assertEqual(self.pods_of("second"), [])
        holds = {"name": "gpus", "resources": [{"name": GPU, "total": "8", "borrowed": "0"}]}
        wait_until("the queue says so", lambda: self.status("clusterqueues", "red").get("pendingWorkloads") == 1)
        self.assertEqual(self.status("clusterqueues", "red")["flavorsReservation"], [holds])
        self.assertEqual(self.status("localqueues", "red")["conditions"][0]["status"], "True")
        self.assertEqual(self.berth.metric('kueue_admitted_active_workloads{cluster_queue="red"}'), 1)
        self.assertEqual(self.berth.metric('kueue_pending_workloads{cluster_queue="red",status="inadmissible"}'), 1)
        admission = self.workload("first")["status"]["admission"]
        self.assertEqual(admission["clusterQueue"], "red")
        given = {"name": "main", "flavors": {GPU: "gpus"}, "resourceUsage": {GPU: "8"}, "count": 2}
        self.assertEqual(admission["podSetAssignments"], [given])
        self.api.call("DELETE", f"{JOBS}/first", {"propagationPolicy": "Foreground"})
        done = self.is_now("second", "Finished")
        self.assertEqual(done["reason"], "Succeeded")
        self.is_now("second", "Admitted")

    def test_quota_without_a_place_waits(self) -> None:
        self.node(1, gpus=4)
        self.queues(red=8)
        self.apply(job("large", "red", 8))
        waits = self.is_now("large", "QuotaReserved", "False", "WaitingForPlace")
        self.assertIn("Insufficient nvidia.com/gpu", waits["message"])
        self.node(1, prefix="more-", gpus=8)
        self.runs("large")

    def test_what_waits_for_a_place_has_a_node_cut(self) -> None:
        """The test is the agent: both GPUs are cut, and the Job asks for a whole one."""
        slices = "nvidia.com/mig-1g.5gb"
        self.node(1, prefix="dgx-", gpus=2, labels={
            "berth.dev/mig-policy": "dynamic", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB",
            "nvidia.com/gpu.count": "2", "nvidia.com/mig.strategy": "mixed"})  # fmt: skip

        def tell(whole: set[int]) -> None:
            devices = [{"uuid": f"GPU-{one}"} if one in whole else {"uuid": f"GPU-{one}", "mig": {"enabled": True, "instances": [
                {"uuid": f"MIG-{one}-{start}", "profile": "1g.5gb", "start": start} for start in range(7)]}}
                for one in range(2)]  # fmt: skip
            self.patch("/api/v1/nodes/dgx-0", {"metadata": {"annotations": {
                "berth.dev/devices": json.dumps({"version": "v1", "devices": devices})}}})  # fmt: skip
            amounts = {GPU: str(len(whole)), slices: str(7 * (2 - len(whole)))}
            self.patch("/api/v1/nodes/dgx-0/status", {"status": {"capacity": amounts, "allocatable": amounts}})

        def wanted() -> dict | None:
            text = self.api.call("GET", "/api/v1/nodes/dgx-0")["metadata"]["annotations"].get("berth.dev/mig-desired")
            return json.loads(text) if text and json.loads(text)["state"] == "wanted" else None

        tell(set())
        self.queues(team=4)
        self.apply(job("train", "team", 1))
        self.is_now("train", "QuotaReserved", "False", "WaitingForPlace")
        desired = wait_until("the node is to be cut", wanted)
        self.assertEqual(desired["resources"], {GPU: 1, slices: 7})
        tell({number for number, one in enumerate(desired["devices"]) if not one["mig"]["enabled"]})
        self.runs("train")

    def test_what_others_borrowed_is_reclaimed(self) -> None:
        self.node(2, gpus=4, labels={"pool": "a"})
        self.queues({"reclaimWithinCohort": "Any"}, (("gpus", {"nodeLabels": {"pool": "a"}}),), red=4, blue=4)
        before = self.api.call("POST", JOBS, job("borrower", "blue", 4, pods=2))["spec"]["template"]
        self.runs("borrower", 2)
        self.assertEqual(self.pods_of("borrower")[0]["spec"]["nodeSelector"], {"pool": "a"})
        self.apply(job("owner", "red", 4, runs="8s"))
        evicted = self.is_now("borrower", "Evicted", reason="Preempted")
        self.assertIn("preemptor path: /all/red; preemptee path: /all/blue", evicted["message"])
        self.assertEqual(self.is_now("borrower", "Preempted")["reason"], "InCohortReclamation")
        told = wait_until(
            "it says so", lambda: self.job("borrower")["metadata"].get("annotations", {}).get("berth.dev/evicted"))  # fmt: skip
        self.assertIn(evicted["message"] + ", for Job default/", told)
        self.runs("owner")
        self.is_now("borrower", "QuotaReserved", "False")
        self.assertTrue(self.job("borrower")["spec"]["suspend"])
        self.assertEqual(self.job("borrower")["spec"]["template"], before, "the template is as it was")
        self.is_now("owner", "Finished")
        self.runs("borrower", 2)
        self.is_now("borrower", "Evicted", "False")

    def test_protected_serving_keeps_what_it_borrowed(self) -> None:
        namespace = "/api/v1/namespaces/default"
        self.node(1, gpus=8)
        self.queues({"reclaimWithinCohort": "Any"}, red=8, blue=0)
        self.patch(namespace, {"metadata": {"annotations": {"berth.dev/allow-protected-pods": "true"}}})
        serving = job("serving", "blue", 8)
        serving["spec"]["template"]["metadata"]["annotations"]["berth.dev/preemptible"] = "false"
        self.apply(serving)
        before = self.runs("serving")
        self.apply(job("owner", "red", 8))
        self.is_now("owner", "QuotaReserved", "False", "WaitingForQuota")
        self.assertEqual(self.runs("serving"), before)
        self.patch(namespace, {"metadata": {"annotations": {"berth.dev/allow-protected-pods": None}}})
        self.is_now("serving", "Evicted", reason="Preempted")
        self.runs("owner")

    def test_the_important_one_goes_first(self) -> None:
        self.node(1, gpus=4)
        self.queues({"withinClusterQueue": "LowerPriority"}, red=4)
        self.apply(make("WorkloadPriorityClass", "urgent", value=1000))
        self.apply(job("calm", "red", 4))
        self.runs("calm")
        self.apply(job("hurry", "red", 4, runs="2s", priority="urgent"))
        self.assertIn("due to InClusterQueue", self.has_been("calm", "Preempted")["message"])
        self.is_now("hurry", "Finished")
        self.runs("calm")

    def test_a_berth_that_is_killed_goes_on_where_it_was(self) -> None:
        self.node(2, gpus=4)
        self.queues({"reclaimWithinCohort": "Any"}, red=4, blue=4)
        self.apply(job("borrower", "blue", 4, pods=2))
        pods = self.runs("borrower", 2)
        self.apply(job("next", "blue", 4))
        self.is_now("next", "QuotaReserved", "False")
        self.berth.kill()
        self.berth.start()
        self.settle()
        self.assertEqual(sorted(self.runs("borrower", 2)), sorted(pods), "nothing is evicted by a restart")
        self.assertEqual(self.pods_of("next"), [])
        self.apply(job("owner", "red", 4))
        self.is_now("borrower", "Evicted", reason="Preempted")
        self.berth.kill()
        self.berth.start()
        self.runs("owner")
        self.is_now("borrower", "QuotaReserved", "False")
        wait_until("one of both has what is left", lambda: len(self.pods_of("next")) == 1, timeout_s=20)


    def test_a_spent_budget_stays_spent_when_berth_is_killed(self) -> None:
        self.node(1, gpus=4)
        self.queues(team=4)
        self.annotate("team", {"berth.dev/budget-gpu-hours": "0.001"})  # 3.6 seconds of one GPU
        self.apply(job("first", "team", 2, runs="2s"))
        self.ends("first")
        wait_until("the budget is spent", lambda: self.budget("team").get("status") == "False")
        wait_until("nobody spends", lambda: not self.budget("team")["message"].endswith("GPUs"))
        before = self.budget("team")["message"]
        self.berth.kill()
        self.apply(job("second", "team", 1, runs="1s"))
        self.berth.start()
        said = self.is_now("second", "QuotaReserved", "False", "BudgetSpent")["message"]
        self.assertRegex(said, r"^ClusterQueue team has spent its 0.001 GPU-hours of this month; the next begins at "
                               r"20..-..-01T00:00:00Z$")  # fmt: skip
        amount = lambda text: float(text.split(" of ")[0])  # noqa: E731
        self.assertEqual(amount(self.budget("team")["message"]), amount(before), "what has ended is counted once")
        self.annotate("team", {"berth.dev/budget-gpu-hours": "10"})
        self.ends("second")
        self.assertGreater(amount(self.budget("team")["message"]), amount(before))

    def test_a_group_of_pods_starts_whole_and_goes_when_its_quota_is_wanted_back(self) -> None:
        self.node(2, gpus=4, labels={"pool": "a"})
        self.queues({"reclaimWithinCohort": "Any"}, (("gpus", {"nodeLabels": {"pool": "a"}}),), red=4, blue=4)
        self.create(waiting_pod("leader", "blue", 4, "train", 2))
        wait_until("it hears of the rest", lambda: self.events_of("leader", "ErrWorkloadCompose"))
        self.create(waiting_pod("worker", "blue", 2, "train", 2))
        self.is_running("leader")
        worker = self.is_running("worker")
        self.assertEqual(worker["spec"]["nodeSelector"], {"pool": "a"})
        self.assertNotIn("schedulingGates", worker["spec"])
        group = self.api.call("GET", f"{WORKLOADS}/train")
        self.assertEqual(sorted(one["count"] for one in group["spec"]["podSets"]), [1, 1])
        self.assertEqual(len(group["metadata"]["ownerReferences"]), 2)
        self.apply(job("owner", "red", 4))
        self.runs("owner")
        wait_until("both have gone", lambda: not {"leader", "worker"} & {one["metadata"]["name"] for one in self.pods()})
        # Its Workload outlasts its pods, which were its owners, and is that of those that come in their place.
        time.sleep(3)  # for the garbage collector
        now = self.api.call("GET", f"{WORKLOADS}/train")
        self.assertEqual((now["metadata"]["uid"], now["metadata"].get("ownerReferences", [])), (group["metadata"]["uid"], []))
        why = {one["type"]: one["reason"] for one in now["status"]["conditions"]}
        self.assertEqual((why["QuotaReserved"], why["Evicted"]), ("WaitingForReplacementPods", "Preempted"))
        self.api.call("DELETE", f"{JOBS}/owner", {"propagationPolicy": "Background"})
        self.create(waiting_pod("new-leader", "blue", 4, "train", 2), waiting_pod("new-worker", "blue", 2, "train", 2))
        self.is_running("new-leader")
        self.is_running("new-worker")
        self.assertEqual(self.api.call("GET", f"{WORKLOADS}/train")["metadata"]["uid"], group["metadata"]["uid"])

    def test_a_pod_by_itself_waits_for_quota(self) -> None:
        self.node(1, gpus=8)
        self.queues(red=4)
        self.create(waiting_pod("first", "red", 4, runs="2s"))
        wait_until("the first has its place", lambda: self.condition("first", "Admitted"))
        self.create(waiting_pod("second", "red", 4))  # of one and the same second any could be the first
        self.is_running("second")
        wait_until("the first has finished", lambda: self.condition("first", "Finished").get("reason") == "Succeeded")

    def test_a_dump_of_the_cluster_says_offline_what_the_cluster_says(self) -> None:
        self.node(2, gpus=8)
        self.queues(red=8, blue=4)
        self.apply(job("runs", "red", 4, pods=2))
        self.runs("runs", 2)
        self.create(waiting_pod("leader", "blue", 2, "train", 2), waiting_pod("worker", "blue", 1, "train", 2))
        self.is_running("worker")
        self.create(waiting_pod("alone", "blue", 2))
        self.apply(job("waits", "red", 4), job("ended", "red", 0, runs="1s"))
        self.is_now("ended", "Finished")
        told = {name: self.is_now(name, "QuotaReserved", "False", "WaitingForQuota")["message"] for name in ("waits", "alone")}
        lists = ["/api/v1/nodes", "/api/v1/pods", "/apis/batch/v1/jobs", *(self.of_kind(plural) for plural in KINDS)]
        dump = {"apiVersion": "v1", "kind": "List", "items": []}
        for path in lists:
            found = self.api.call("GET", path)
            kind = {"apiVersion": found["apiVersion"], "kind": found["kind"].removesuffix("List")}
            dump["items"] += [{**kind, **one} for one in found["items"]]
        seen = json.loads(offline("simulate", "-o", "json", "-f", "-", given=json.dumps(dump)))
        states = {one["name"]: one["state"] for one in seen["workloads"]}
        self.assertEqual(states, {"runs": "Admitted", "train": "Admitted", "waits": "Pending", "alone": "Pending"})
        self.assertEqual({one["name"]: one["message"] for one in seen["workloads"] if one["state"] == "Pending"}, told)
        used = {one["name"]: [held["used"] for held in one["held"]] for one in seen["queues"]}
        self.assertEqual(used, {"red": ["8"], "blue": ["3"]})
        where = {one["metadata"]["name"]: one["spec"].get("nodeName") for one in self.pods()}
        self.assertEqual({one["name"]: one["node"] for one in seen["pods"]}, where)

    def test_an_admission_check_has_its_say(self) -> None:
        self.node(1, gpus=4)
        self.apply(make("AdmissionCheck", "budget", {"controllerName": "example.com/budget"}))
        self.queues(checks=("budget",), red=4)
        self.apply(job("train", "red", 4))
        wait_until("the queue waits for its check", lambda: "AdmissionCheckInactive" in str(self.status("clusterqueues", "red")))
        self.activates("budget")
        self.is_now("train", "Admitted", "False", "UnsatisfiedChecks")
        self.assertEqual(self.workload("train")["status"]["admissionChecks"][0]["state"], "Pending")
        self.assertTrue(self.job("train")["spec"]["suspend"])
        self.says("train", "Retry", message="later", requeueAfterSeconds=1)
        self.assertIn("At least one admission check is false", self.has_been("train", "Evicted")["message"])
        self.is_now("train", "Evicted", "False")
        wait_until("it has its quota again", lambda: self.condition("train", "QuotaReserved").get("status") == "True")
        self.says("train", "Ready", podSetUpdates=[{"name": "main", "labels": {"budget": "granted"}}])
        self.runs("train")
        self.assertEqual(self.pods_of("train")[0]["metadata"]["labels"]["budget"], "granted")
        self.berth.kill()
        self.berth.start()
        self.settle()
        self.says("train", "Rejected", message="spent")
        wait_until("it is not active any more", lambda: not self.workload("train")["spec"]["active"])
        wait_until("its pods are gone", lambda: not self.pods_of("train"))


class FairQueues(QueueSuite):
    CONFIG = {**QueueSuite.CONFIG, "fairSharing": {"preemptionStrategies": ["LessThanInitialShare"]}}

    def test_a_cohort_says_by_how_much_it_borrows(self) -> None:
        self.node(2, gpus=8)
        own = {"resourceGroups": [group(flavor("gpus", quota(nominal=12)))]}
        self.apply(make("Cohort", "company", own), make("Cohort", "all", {"parentName": "company"}))
        self.queues(red=4)
        share = lambda name: self.status("cohorts", name).get("fairSharing")  # noqa: E731
        wait_until("it borrows nothing", lambda: share("all") == share("company") == {"weightedShare": 0})
        self.apply(job("large", "red", 4, pods=2))
        self.runs("large", 2)
        wait_until("4 of 16 are borrowed", lambda: share("all") == {"weightedShare": 250})
        red = lambda: self.status("clusterqueues", "red").get("fairSharing")  # noqa: E731
        metric = lambda: self.berth.metric('kueue_cohort_weighted_share{cohort="all"}')  # noqa: E731
        wait_until("so does its queue", lambda: red() == {"weightedShare": 250})
        wait_until("and the metric says so", lambda: metric() == 250)
        self.assertEqual(share("company"), {"weightedShare": 0})
        self.patch(f"{self.of_kind('cohorts')}/company", {"spec": {"parentName": "all"}})
        wait_until("nothing is said of a circle", lambda: not share("all") and not share("company"))
        wait_until("but why", lambda: "CohortCycle" in str(self.status("clusterqueues", "red")))


class ByHand(QueueSuite):
    EXPECTED_ERRORS = ("an object was set aside: it cannot be understood",)

    def test_a_workload_that_is_edited_while_it_waits_gains_nothing(self) -> None:
        self.node(3, gpus=8)
        self.queues(red=8)
        self.apply(job("first", "red", 8))
        self.runs("first")
        self.apply(job("second", "red", 8))
        self.is_now("second", "QuotaReserved", "False", "WaitingForQuota")
        before = self.workload("second")
        path = f"{WORKLOADS}/{before['metadata']['name']}"
        for edited in ({"count": 0}, {"template": job("second", "red", 0)["spec"]["template"]}):
            self.patch(path, {"spec": {"podSets": [before["spec"]["podSets"][0] | edited]}})
            wait_until("it is as its Job", lambda: self.workload("second")["spec"] == before["spec"])
            self.assertEqual(self.condition("second", "QuotaReserved")["status"], "False")
            self.assertEqual(self.pods_of("second"), [])


    def test_a_quota_that_cannot_be_understood_stops_its_queue_and_nobody_in_it(self) -> None:
        self.node(1, gpus=8)
        self.queues(red=8)
        self.apply(job("runs", "red", 4))
        before = self.runs("runs")
        active = lambda name: next((one for one in self.status("clusterqueues", name).get("conditions", [])  # noqa: E731
                                    if one["type"] == "Active"), {})  # fmt: skip
        groups = lambda amount: {"resourceGroups": [group(flavor("gpus", quota(nominal=amount)))]}  # noqa: E731
        self.patch(f"{self.of_kind('clusterqueues')}/red", {"spec": groups("1e400")})
        self.apply(make("ClusterQueue", "new", {"namespaceSelector": {}, **groups("99999999999E")}))
        for name in ("red", "new"):
            wait_until(f"{name} says why", lambda n=name: active(n).get("reason") == "InvalidSpec")
        self.assertIn("1e400", active("red")["message"])
        self.apply(job("waits", "red", 4))
        self.assertIn("1e400", self.is_now("waits", "QuotaReserved", "False", "Suspended")["message"])
        self.assertEqual(self.runs("runs"), before)
        self.patch(f"{self.of_kind('clusterqueues')}/red", {"spec": groups("8")})
        self.runs("waits")


class ReadyInTime(QueueSuite):
    """With waitForPodsReady: whose pods are not ready in time leaves."""

    CONFIG = {**QueueSuite.CONFIG, "waitForPodsReady": {"timeout": "5s", "requeuingStrategy": {"backoffBaseSeconds": 2}}}

    def test_who_is_not_ready_in_time_makes_way(self) -> None:
        self.node(1, gpus=4)
        self.queues(red=4)
        never = job("never", "red", 4)
        never["spec"]["template"]["spec"]["schedulingGates"] = [{"name": "example.com/closed"}]
        self.apply(never)
        self.is_now("never", "PodsReady", "False", "WaitForStart")
        self.apply(job("next", "red", 4))
        self.is_now("never", "Evicted", reason="PodsReadyTimeout")
        self.is_now("next", "PodsReady", reason="Started")
        self.assertEqual(self.workload("never")["status"]["requeueState"]["count"], 1)
        self.berth.kill()
        self.berth.start()
        self.settle()
        self.is_now("next", "Admitted")
        self.assertEqual(len(self.runs("next")), 1)


if __name__ == "__main__":
    main()
