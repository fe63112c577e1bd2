#!/usr/bin/env python3
"""`berth webhook` beside a real kube-apiserver, registered as deploy/webhook.yaml and deploy/crds/both say.

Both versions of Kueue's API from one store; Jobs and pods that name a queue; refusals and warnings; and what happens
to everybody else while the webhook is away, slow clients and large bodies come, or its certificate is renewed. Ends
with status 77 (skipped, for ctest) where the test servers or the program are not built.
"""

from __future__ import annotations

import copy
import json
import os
import socket
import sys
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.admission import GATE, JOBS, PODS, QUEUE, REACHING, USER, WithWebhook, job, pod  # noqa: E402
from harness.daemon import wait_until  # noqa: E402
from harness.kueue import (GPU, NEW, OLD, cases, convert_with, flavor, group, install, make, path_of,  # noqa: E402
                           quota, template)  # fmt: skip
from harness.suite import MERGE, main  # noqa: E402
from harness.webhook import KINDS, make_certificate, manifests  # noqa: E402

from cluster import ApiError  # noqa: E402


class Admission(WithWebhook):
    def test_a_job_that_names_a_queue_comes_back_suspended_and_berths(self) -> None:
        made = self.create(JOBS, job("queued", labels={QUEUE: "lq"}))
        self.assertIs(made["spec"]["suspend"], True)
        self.assertEqual(made["spec"]["template"]["spec"]["schedulerName"], "berth")
        plain = self.create(JOBS, job("plain"))
        self.assertIs(plain["spec"]["suspend"], False)
        self.assertEqual(plain["spec"]["template"]["spec"]["schedulerName"], "default-scheduler")

    def test_a_pod_that_names_a_queue_waits_at_the_gate(self) -> None:
        group_labels = {QUEUE: "lq", "kueue.x-k8s.io/pod-group-name": "g"}
        member = pod("member", labels=group_labels)
        member["metadata"]["annotations"] = {"kueue.x-k8s.io/pod-group-total-count": "2"}
        for one in (pod("queued", labels={QUEUE: "lq"}), member):
            made = self.create(PODS, one)
            self.assertEqual(made["spec"]["schedulingGates"], [{"name": GATE}])
            self.assertEqual(made["spec"]["schedulerName"], "berth")
            self.assertEqual(made["metadata"]["labels"]["kueue.x-k8s.io/managed"], "true")
        plain = self.create(PODS, pod("plain"))
        self.assertNotIn("schedulingGates", plain["spec"])

    def test_what_is_certainly_wrong_is_refused_with_the_way_out(self) -> None:
        self.assertIn("RFC 1123", self.refused(JOBS, job("j", labels={QUEUE: "My_Queue"})))
        self.assertIn("pod-group-total-count", self.refused(
            PODS, pod("p", labels={QUEUE: "lq", "kueue.x-k8s.io/pod-group-name": "g"})))  # fmt: skip
        self.assertIn("asks for 16 nvidia.com/gpu, and no node has more than 8", self.refused(
            PODS, pod("p", gpus=16, schedulerName="berth")))  # fmt: skip
        self.assertIn(GPU, self.refused(PODS, pod("p") | {"spec": {"containers": [
            {"name": "c", "image": "none", "resources": {"requests": {GPU: 1}, "limits": {GPU: 2}}}]}}))  # fmt: skip
        passed = self.api.call("POST", PODS + "?dryRun=All", pod("p", gpus=16))  # another scheduler's: not asked about
        self.assertEqual(passed["spec"]["schedulerName"], "default-scheduler")

    def test_who_reaches_for_gpus_is_warned(self) -> None:
        done = self.kubectl(pod("reaching", env=REACHING))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Warning: spec.containers[0]: NVIDIA_VISIBLE_DEVICES=all reaches for GPUs", done.stderr)
        self.assertNotIn("Warning", self.kubectl(pod("asking", env=REACHING, gpus=1)).stderr)

    def test_a_running_job_keeps_its_queue(self) -> None:
        self.create(JOBS, job("moving", labels={QUEUE: "lq"}))
        where = f"{JOBS}/moving"
        to = {"metadata": {"labels": {QUEUE: "other"}}}
        self.api.call("PATCH", where, to, content_type=MERGE)  # while it is suspended
        self.api.call("PATCH", where, {"spec": {"suspend": False}}, content_type=MERGE)
        with self.assertRaises(ApiError) as caught:
            self.api.call("PATCH", where, {"metadata": {"labels": {QUEUE: None}}}, content_type=MERGE)
        self.assertIn("suspend it first", str(caught.exception))

    def patch(self, path: str, name: str, **changes: object) -> dict:
        """A merge patch; `labels` and `annotations` are of the metadata, the rest of the spec."""
        metadata = {key: changes.pop(key) for key in ("labels", "annotations") if key in changes}
        return self.api.call("PATCH", f"{path}/{name}", {"metadata": metadata, "spec": changes}, content_type=MERGE)

    def user_is_kept(self, path: str, name: str, user: str | None, **more: object) -> None:
        with self.assertRaisesRegex(ApiError, "who submitted it stays as it was written") as caught:
            self.patch(path, name, annotations={USER: user}, **more)
        self.assertEqual(caught.exception.status, 422)

    def test_who_puts_a_job_into_a_queue_later_is_its_user(self) -> None:
        me = self.create(JOBS, job("known", labels={QUEUE: "lq"}))["metadata"]["annotations"][USER]
        late = job("late")
        late["metadata"]["annotations"] = {USER: "nobody-1"}
        late["spec"]["suspend"] = True
        self.assertEqual(self.create(JOBS, late)["metadata"]["annotations"][USER], "nobody-1")
        self.assertEqual(self.patch(JOBS, "late", labels={QUEUE: ""})["metadata"]["annotations"][USER], "nobody-1")
        made = self.patch(JOBS, "late", labels={QUEUE: "lq"}, annotations={USER: "nobody-2"})
        self.assertEqual(made["metadata"]["annotations"][USER], me)
        for user in ("nobody-3", "", None):
            self.user_is_kept(JOBS, "late", user)
        self.user_is_kept(JOBS, "late", "nobody-4", labels={QUEUE: None})  # nor on its way out
        # What Berth writes to Jobs goes through, while they wait and while they run.
        nodes = {"spec": {"nodeSelector": {"gpu": "h100"}}}
        made = self.patch(JOBS, "late", suspend=False, template=nodes, annotations={"berth.dev/other": "x"})
        self.assertEqual(made["spec"]["template"]["spec"]["nodeSelector"], {"gpu": "h100"})
        self.user_is_kept(JOBS, "late", "nobody-5")
        self.assertIs(self.patch(JOBS, "late", suspend=True)["spec"]["suspend"], True)

    def test_who_says_that_it_is_part_of_a_whole_is_its_user_too(self) -> None:
        part = job("part", labels={QUEUE: "lq"})
        part["metadata"]["annotations"] = {USER: "nobody-1"}
        part["metadata"]["ownerReferences"] = [{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
                                                "name": "none", "uid": "none", "controller": True}]  # fmt: skip
        made = self.create(JOBS, part)["metadata"]["annotations"]
        self.assertNotEqual(made[USER], "nobody-1", "anybody can say that it is part of a whole")
        self.user_is_kept(JOBS, "part", "nobody-2")
        alone = {"metadata": {"ownerReferences": None}}
        alone = self.api.call("PATCH", f"{JOBS}/part", alone, content_type=MERGE)
        self.assertEqual(alone["metadata"]["annotations"][USER], made[USER])
        # One that is given its queue later.
        late = job("late-part")
        late["metadata"] |= {"annotations": {USER: "nobody-1"}, "ownerReferences": part["metadata"]["ownerReferences"]}
        late["spec"]["suspend"] = True
        self.assertEqual(self.create(JOBS, late)["metadata"]["annotations"][USER], "nobody-1")
        self.assertEqual(self.patch(JOBS, "late-part", labels={QUEUE: "lq"})["metadata"]["annotations"][USER], made[USER])
        # A pod that says that it is a Job's, which the controller of Jobs has not made.
        forged = pod("forged", labels={QUEUE: "lq"})
        forged["metadata"] |= {"annotations": {USER: "nobody-1"}, "ownerReferences": [
            {"apiVersion": "batch/v1", "kind": "Job", "name": "none", "uid": "none", "controller": True}]}  # fmt: skip
        self.assertEqual(self.create(PODS, forged)["metadata"]["annotations"][USER], made[USER])

    def test_a_pod_keeps_its_user(self) -> None:
        named = {"annotations": {USER: "nobody-1", "kueue.x-k8s.io/pod-group-total-count": "2"}}
        first = pod("first", labels={QUEUE: "lq", "kueue.x-k8s.io/pod-group-name": "g"})
        first["metadata"] |= named
        me = self.create(PODS, first)["metadata"]["annotations"][USER]
        self.assertNotEqual(me, "nobody-1")
        for user in ("nobody-2", "", None):
            self.user_is_kept(PODS, "first", user)
        self.assertEqual(self.patch(PODS, "first", annotations={"x": "y"})["metadata"]["annotations"][USER], me)
        opened = self.patch(PODS, "first", schedulingGates=None, nodeSelector={"gpu": "h100"})
        self.assertNotIn("schedulingGates", opened["spec"])
        late = pod("late", schedulingGates=[{"name": GATE}])
        late["metadata"] |= {"annotations": {USER: "nobody-1"}}
        self.create(PODS, late)
        self.assertEqual(self.patch(PODS, "late", annotations={USER: "n"})["metadata"]["annotations"][USER], "n")
        made = self.patch(PODS, "late", labels={QUEUE: "lq", "kueue.x-k8s.io/managed": "true"})
        self.assertEqual(made["metadata"]["annotations"][USER], me)
        self.assertEqual(made["spec"]["schedulerName"], "default-scheduler")
        self.user_is_kept(PODS, "late", "nobody-2")

    def test_the_manifests_are_accepted_without_a_warning(self) -> None:
        restricted = "pod-security.kubernetes.io/warn=restricted"
        self.cluster.kubectl("label", "ns", "berth-system", restricted)
        self.addCleanup(self.cluster.kubectl, "label", "ns", "berth-system", restricted.split("=")[0] + "-")
        found = manifests(self.cluster)
        self.assertTrue(set(KINDS) < {one["kind"] for one in found})
        for one in found:
            one["metadata"]["name"] += "-whole"  # beside those that are in effect
            done = self.kubectl(one)
            self.assertEqual((done.returncode, done.stderr), (0, ""), one["kind"])


class Away(WithWebhook):
    """Each test takes the webhook away or maltreats it."""

    def setUp(self) -> None:
        if self.webhook.get("/readyz")[0] != 200:
            self.webhook.kill()
            self.webhook.start()

    def test_while_it_is_away_only_what_names_a_queue_is_held_up(self) -> None:
        self.webhook.kill()
        start = time.monotonic()
        for one in (pod("plain"), pod("reaching", env=REACHING), pod("mine", schedulerName="berth", gpus=16)):
            self.create(PODS, one)
        self.create(JOBS, job("plain"))
        self.assertLess(time.monotonic() - start, 20)
        self.assertIn("failed calling webhook", self.refused(JOBS, job("queued", labels={QUEUE: "lq"}), 500))
        with self.assertRaisesRegex(ApiError, "failed calling webhook"):
            self.api.call("PATCH", f"{JOBS}/plain", {"metadata": {"labels": {QUEUE: "lq"}}}, content_type=MERGE)
        self.api.call("PATCH", f"{JOBS}/plain", {"metadata": {"labels": {"x": "y"}}}, content_type=MERGE)
        self.webhook.start()
        self.create(JOBS, job("queued", labels={QUEUE: "lq"}))

    def test_large_deep_and_foreign_bodies_are_turned_away(self) -> None:
        before = self.webhook.memory_peak_bytes()
        status, why = self.webhook.post("/mutate", b"x" * (64 << 20))
        self.assertIn(status, (0, 413), why)  # 0: it hung up while we were still sending
        self.assertEqual(self.webhook.post("/convert", b"[" * 100)[0], 400)
        self.assertIn("deeper than 64", self.webhook.post("/validate", b"[" * 100)[1])
        self.assertEqual(self.webhook.post("/mutate", b"{}")[0], 400)
        self.assertEqual(self.webhook.get("/mutate")[0], 405)
        self.assertEqual(self.webhook.get("/secrets")[0], 404)
        self.assertLess(self.webhook.memory_peak_bytes() - before, 64 << 20)
        bad = 'berth_webhook_requests_total{path="validate",result="bad_request"'
        self.assertGreaterEqual(self.webhook.metric(bad), 1)
        self.create(JOBS, job("after", labels={QUEUE: "lq"}))

    def test_slow_clients_are_cut_off_and_hold_up_nobody(self) -> None:
        slow = [self.webhook.connect() for _ in range(50)]
        for connection in slow[:25]:
            connection.sendall(b"POST /mutate HTTP/1.1\r\nContent-Le")
        for connection in slow[25:]:
            connection.sendall(b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
        self.create(JOBS, job("meanwhile", labels={QUEUE: "lq"}))
        for connection in slow:
            connection.settimeout(20)
            try:
                self.assertEqual(connection.recv(100), b"")
            except OSError:
                pass  # reset: cut off, too
            connection.close()

    def test_sigterm_is_graceful(self) -> None:
        failed: list[str] = []
        stop = threading.Event()

        def ask() -> None:
            while not stop.is_set():
                status, why = self.webhook.post("/validate", b"{}")
                if status == 0:
                    return failed.append(why)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        self.webhook.ask_to_stop()
        wait_until("it says that it is going", lambda: self.webhook.get("/readyz")[0] == 503)
        time.sleep(0.3)
        self.assertEqual(failed, [])  # it is still there for those who have not heard
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual(self.webhook.status(), 0)
        self.assertEqual(self.webhook.log()[-1]["msg"], "stopped")

    def test_a_new_certificate_is_taken_up_without_a_lost_request(self) -> None:
        old = self.webhook.context()
        before = self.webhook.metric("berth_webhook_certificate_expiry")
        self.assertGreater(before, time.time())
        connection = self.webhook.connect()  # keeps the certificate that it began with
        make_certificate(self.webhook.folder)
        wait_until("new connections see the new certificate", lambda: self.webhook.get("/healthz")[0] == 200)
        self.assertNotEqual(old.get_ca_certs(), self.webhook.context().get_ca_certs())
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertIn(b"200 OK", connection.recv(1000))
        connection.close()
        (self.webhook.folder / "tls.crt").rename(self.webhook.folder / "away.crt")
        wait_until("it says that the file is gone", lambda: any("TLS file" in one["msg"] for one in self.webhook.log()))
        (self.webhook.folder / "away.crt").rename(self.webhook.folder / "tls.crt")
        self.assertEqual(self.webhook.get("/healthz")[0], 200)
        self.reregister()

    def reregister(self) -> None:
        """The API server learns the new certificate, as cert-manager would tell it."""
        for one in manifests(self.cluster):
            if one["kind"] in KINDS:
                path = f"/apis/admissionregistration.k8s.io/v1/{KINDS[one['kind']]}/{one['metadata']['name']}"
                self.api.call("DELETE", path)
        self.set_up_server()


class Watching(WithWebhook):
    """With --watch: what it sees of the cluster, with the rights that deploy/webhook.yaml gives."""

    @classmethod
    def set_up_server(cls) -> None:
        install(cls.cluster, "v1beta2")
        cls.queue("q")
        cls.webhook.kill()
        cls.webhook.watch(cls.kubeconfig()).start()
        super().set_up_server()
        wait_until("it has seen all", lambda: cls.webhook.metric("berth_webhook_cache_synced") == 4)

    @classmethod
    def kubeconfig(cls) -> Path:
        """The cluster as the ServiceAccount berth-webhook has it."""
        names = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding")
        wanted = [one for one in manifests(cls.cluster) if one["kind"] in names]
        assert len(wanted) == 3, wanted
        cls.cluster.kubectl("apply", "-f", "-", input=json.dumps(
            {"apiVersion": "v1", "kind": "List", "items": wanted}))  # fmt: skip
        token = cls.cluster.kubectl("create", "token", "-n", "berth-system", "berth-webhook").strip()
        config = json.loads(cls.cluster.kubectl("config", "view", "--raw", "--flatten", "-o", "json"))
        config["users"] = [{"name": one["name"], "user": {"token": token}} for one in config["users"]]
        path = cls.webhook.folder / "kubeconfig"
        path.write_text(json.dumps(config))
        return path

    @classmethod
    def queue(cls, name: str) -> None:
        one = make("LocalQueue", name, {"clusterQueue": "team"}, namespace="default")
        cls.api.call("POST", path_of(one), one)

    def why_refused(self, path: str, one: dict) -> str:
        try:
            self.api.call("POST", path + "?dryRun=All", one)
        except ApiError as error:
            return str(error)
        return ""

    def test_an_unknown_queue_is_refused_and_one_made_just_now_is_not(self) -> None:
        for path, one in ((JOBS, job("j", labels={QUEUE: "nope"})), (PODS, pod("p", labels={QUEUE: "nope"}))):
            # Once an answer was slow, on a busy machine, the server is not asked for ten seconds.
            why = wait_until("it is refused", lambda path=path, one=one: self.why_refused(path, one))
            self.assertIn("there is no LocalQueue of this name in namespace default", why)
        for i in range(20):
            self.queue(f"new-{i}")
            self.api.call("POST", JOBS + "?dryRun=All", job("j", labels={QUEUE: f"new-{i}"}))

    def test_a_job_that_names_no_queue_waits_in_the_default_one(self) -> None:
        made = lambda: self.api.call("POST", JOBS + "?dryRun=All", job("j"))  # noqa: E731
        self.assertNotIn(QUEUE, made()["metadata"].get("labels", {}))
        self.queue("default")
        wait_until("it is seen", lambda: made()["metadata"].get("labels", {}).get(QUEUE) == "default")
        self.assertTrue(made()["spec"]["suspend"])
        self.assertEqual(made()["spec"]["template"]["spec"]["schedulerName"], "berth")
        self.api.call("DELETE", path_of(make("LocalQueue", "default", {}, namespace="default")) + "/default")

        def is_unnamed() -> bool:
            try:
                return QUEUE not in made()["metadata"].get("labels", {})
            except ApiError as error:  # it went between the two webhooks
                self.assertIn("there is no LocalQueue of this name", str(error))
                return False

        wait_until("it is gone", is_unnamed)

    def test_a_queue_that_leads_nowhere_is_warned_of_until_it_does(self) -> None:
        one = job("j", labels={QUEUE: "q"})
        done = self.kubectl(one)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('there is no ClusterQueue "team", which LocalQueue "q" names', done.stderr)
        team = make("ClusterQueue", "team", {})
        self.create(path_of(team), team)
        wait_until("it leads somewhere", lambda: "Warning" not in self.kubectl(one).stderr)

    def test_a_job_over_its_quota_is_warned_of(self) -> None:
        hard = {"spec": {"hard": {f"requests.{GPU}": "3"}}}
        self.create("/api/v1/namespaces/default/resourcequotas", {
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "gpu-quota"}} | hard)  # fmt: skip
        one = job("j", labels={QUEUE: "q"})
        one["spec"] |= {"parallelism": 3, "completions": 3}
        one["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {GPU: 2}}
        wait_until("it is warned of", lambda: "exceeded quota: gpu-quota" in self.kubectl(one).stderr)
        done = self.kubectl(one)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 of 3 fit now; it is suspended", done.stderr)

    def test_without_the_api_server_it_passes_with_a_warning_and_at_once(self) -> None:
        config = json.loads(self.kubeconfig().read_text())
        config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
        away = self.webhook.folder / "away"
        away.write_text(json.dumps(config))
        self.webhook.kill()
        self.webhook.watch(away).start()
        self.addCleanup(lambda: (self.webhook.kill(), self.webhook.watch(self.webhook.folder / "kubeconfig").start()))
        start = time.monotonic()
        done = self.kubectl(job("j", labels={QUEUE: "nope"}))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("could not be found out", done.stderr)
        self.assertLess(time.monotonic() - start, 5)
        self.assertEqual(self.webhook.metric("berth_webhook_cache_synced"), 0)
        wait_until("it says so", lambda: {one.get("kind") for one in self.webhook.log() if "cannot be watched" in one[
            "msg"]} == {"localqueues", "clusterqueues", "resourcequotas", "limitranges"})  # fmt: skip


    def test_an_api_server_that_hangs_holds_up_one_request_and_not_for_long(self) -> None:
        config = json.loads(self.kubeconfig().read_text())
        relay = Relay(config["clusters"][0]["cluster"]["server"])
        self.addCleanup(relay.close)
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{relay.port}"
        slow = self.webhook.folder / "slow"
        slow.write_text(json.dumps(config))
        self.webhook.kill()
        self.webhook.watch(slow).start()
        self.addCleanup(lambda: (self.webhook.kill(), self.webhook.watch(self.webhook.folder / "kubeconfig").start()))
        wait_until("it has seen all", lambda: self.webhook.metric("berth_webhook_cache_synced") == 4)
        self.refused(JOBS, job("j", labels={QUEUE: "nope"}))
        relay.hang()
        start = time.monotonic()
        for _ in range(10):
            self.api.call("POST", JOBS + "?dryRun=All", job("j", labels={QUEUE: "nope"}))
        self.assertLess(time.monotonic() - start, 2)


class Relay:
    """A port that hands on all that comes to the server of a URL, until it hangs."""

    def __init__(self, url: str):
        host, port = url.removeprefix("https://").split(":")
        self._to, self._flows = (host, int(port)), threading.Event()
        self._flows.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._made: list[socket.socket] = []
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def hang(self) -> None:
        self._flows.clear()

    def close(self) -> None:
        self._flows.set()
        for one in [self._listener, *self._made]:
            one.close()

    def _accept(self) -> None:
        try:
            while True:
                near, far = self._listener.accept()[0], socket.create_connection(self._to)
                self._made += [near, far]
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._copy, args=pair, daemon=True).start()
        except OSError:
            pass  # closed

    def _copy(self, of: socket.socket, to: socket.socket) -> None:
        try:
            while data := of.recv(65536):
                self._flows.wait()
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # closed


# Two versions, one store.
OLD_QUEUE = make("ClusterQueue", "team", {
    "cohort": "all", "queueingStrategy": "StrictFIFO", "namespaceSelector": {}, "admissionChecks": ["dws", "budget"],
    "resourceGroups": [group(flavor("h100", quota(nominal=8, lendingLimit="4")))], "stopPolicy": "None",
    "flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"},
    "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority",
                   "borrowWithinCohort": {"policy": "Never"}}}, version=OLD)  # fmt: skip
NEW_QUEUE = make("ClusterQueue", "fresh", {
    "cohortName": "all", "stopPolicy": "None", "queueingStrategy": "BestEffortFIFO",
    "resourceGroups": [group(flavor("h100", quota(nominal=8)))],
    "flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor",
                          "preference": "PreemptionOverBorrowing"},
    "concurrentAdmissionPolicy": {"migration": {"mode": "RetainFirstAdmission"}},
    "preemption": {"reclaimWithinCohort": "Never", "withinClusterQueue": "Never",
                   "borrowWithinCohort": {"policy": "Never"}}})  # fmt: skip
# A tutorial's objects. Its second flavor leaves out cpu and memory, and its Job names a priority class.
TUTORIAL = [
    make("ResourceFlavor", "a100-80gb", {
        "nodeLabels": {"accelerator": "nvidia-a100-80gb"},
        "tolerations": [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]}, version=OLD),
    make("ResourceFlavor", "h100-80gb", {"nodeLabels": {"accelerator": "nvidia-h100-80gb"}}, version=OLD),
    make("ClusterQueue", "ml-training-cluster", {
        "cohort": "ml-org", "queueingStrategy": "BestEffortFIFO", "fairSharing": {"weight": 1},
        "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
        "resourceGroups": [group(
            flavor("a100-80gb", quota(GPU, 64, borrowingLimit=16, lendingLimit=16), quota("cpu", 512),
                   quota("memory", "4Ti")),
            flavor("h100-80gb", quota(GPU, 32)), covers=("cpu", "memory", GPU))]}, version=OLD),
    make("LocalQueue", "team-a-training", {"clusterQueue": "ml-training-cluster"}, version=OLD, namespace="default"),
]  # fmt: skip


class TwoVersions(WithWebhook):
    @classmethod
    def set_up_server(cls) -> None:
        super().set_up_server()
        install(cls.cluster, "v1beta2")
        cls.earlier = make("Cohort", "earlier", {"parentName": "root"})
        cls.api.call("POST", path_of(cls.earlier), cls.earlier)
        plurals = install(cls.cluster, "both")
        convert_with(cls.cluster, plurals, cls.webhook.url + "/convert", cls.webhook.certificate)
        wait_until("the older version is served", lambda: cls.api.raw(
            "GET", f"/apis/{OLD}/cohorts/earlier")[0] == 200)  # fmt: skip

    def get(self, one: dict, version: str) -> dict:
        return self.api.call("GET", f"{path_of(one | {'apiVersion': version})}/{one['metadata']['name']}")

    def test_the_older_version_is_stored_as_the_newer_and_comes_back_as_it_was(self) -> None:
        self.create(path_of(OLD_QUEUE), OLD_QUEUE)
        stored = self.cluster.stored("kueue.x-k8s.io/clusterqueues/team")
        self.assertEqual((stored["apiVersion"], stored["spec"]["cohortName"]), (NEW, "all"))
        self.assertNotIn("cohort", stored["spec"])
        self.assertEqual(self.get(OLD_QUEUE, OLD)["spec"], OLD_QUEUE["spec"])
        newer = self.get(OLD_QUEUE, NEW)["spec"]
        self.assertEqual(newer["admissionChecksStrategy"], {"admissionChecks": [{"name": "dws"}, {"name": "budget"}]})
        self.assertEqual(set(newer["flavorFungibility"].values()), {"MayStopSearch"})

    def test_while_it_is_away_the_newer_version_is_as_ever(self) -> None:
        self.webhook.kill()
        try:
            one = make("Cohort", "meanwhile", {"parentName": "root"})
            self.create(path_of(one), one)
            self.assertEqual(self.get(one, NEW)["spec"], one["spec"])
            self.assertEqual(self.api.call("GET", path_of(OLD_QUEUE | {"apiVersion": NEW}))["kind"], "ClusterQueueList")
            with self.assertRaises(ApiError) as caught:
                self.get(one, OLD)
            self.assertIn("conversion webhook", str(caught.exception))
        finally:
            self.webhook.start()
        self.assertEqual(self.get(one, OLD)["spec"], one["spec"])

    def test_a_burst_is_answered_whole(self) -> None:
        labels = {QUEUE: "lq"}
        with ThreadPoolExecutor(max_workers=64) as pool:
            made = list(pool.map(lambda i: self.api.call(
                "POST", JOBS + "?dryRun=All", job(f"many-{i}", labels=labels)), range(640)))  # fmt: skip
        self.assertTrue(all(one["spec"]["suspend"] for one in made))
        self.assertEqual(self.webhook.metric('berth_webhook_requests_total{path="mutate",result="error"'), 0)

    def test_what_was_stored_before_the_webhook_came_is_served_in_both(self) -> None:
        self.assertEqual(self.get(self.earlier, OLD)["spec"], {"parentName": "root"})

    def test_an_older_client_does_not_lose_what_it_does_not_see(self) -> None:
        self.create(path_of(NEW_QUEUE), NEW_QUEUE)
        seen = self.get(NEW_QUEUE, OLD)
        self.assertNotIn("concurrentAdmissionPolicy", seen["spec"])
        self.assertNotIn("preference", seen["spec"]["flavorFungibility"])
        seen["spec"]["cohort"] = "others"
        self.api.call("PUT", f"/apis/{OLD}/clusterqueues/fresh", seen)
        changed = copy.deepcopy(NEW_QUEUE["spec"])
        changed["cohortName"] = "others"
        found = self.get(NEW_QUEUE, NEW)
        self.assertEqual(found["spec"], changed)
        self.assertNotIn("berth.dev/kept-v1beta2", found["metadata"].get("annotations", {}))

    def test_status_and_lists_are_converted_too(self) -> None:
        pod_sets = [{"name": "main", "count": 1, "template": template()}]
        work = make("Workload", "w", {"queueName": "lq", "podSets": pod_sets}, namespace="default")
        self.create(path_of(work), work)
        slices = [{"domainCount": 2, "valuesPerLevel": [{"individual": {"prefix": "rack-", "roots": ["1", "2"]}}],
                   "podCounts": {"individual": [1, 3]}}]  # fmt: skip
        assignment = {"name": "main", "topologyAssignment": {"levels": ["rack"], "slices": slices}}
        status = {"admission": {"clusterQueue": "team", "podSetAssignments": [assignment]},
                  "accumulatedPastExecutionTimeSeconds": 5}  # fmt: skip
        self.api.call("PATCH", f"{path_of(work)}/w/status", {"status": status}, content_type=MERGE)
        older = self.api.call("GET", path_of(work | {"apiVersion": OLD}))["items"][0]
        self.assertEqual(older["apiVersion"], OLD)
        self.assertEqual(older["status"]["accumulatedPastExexcutionTimeSeconds"], 5)
        self.assertEqual(older["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"]["domains"],
                         [{"values": ["rack-1"], "count": 1}, {"values": ["rack-2"], "count": 3}])  # fmt: skip
        self.api.call("PUT", f"{path_of(work | {'apiVersion': OLD})}/w/status", older)
        self.assertEqual(self.get(work, NEW)["status"], status)
        self.assertIn("kueue.x-k8s.io/w", self.cluster.kubectl("get", "workloads.v1beta1.kueue.x-k8s.io", "-o", "name"))

    def test_a_tutorials_objects_are_accepted_or_told_what_is_wrong(self) -> None:
        for one in TUTORIAL:
            if one["kind"] == "ClusterQueue":
                self.assertIn("each flavor must give a quota for each of the coveredResources",
                              self.refused(path_of(one), one))  # fmt: skip
                one = copy.deepcopy(one)
                h100 = one["spec"]["resourceGroups"][0]["flavors"][1]
                h100["resources"] += [quota("cpu", 256), quota("memory", "2Ti")]
            made = self.create(path_of(one), one)
            self.assertEqual(made["apiVersion"], OLD)
        queued = job("llama", labels={QUEUE: "team-a-training", "kueue.x-k8s.io/priority-class": "high-priority"})
        self.assertIs(self.create(JOBS, queued)["spec"]["suspend"], True)

    def test_what_the_schemas_cannot_say_the_webhook_does(self) -> None:
        groups = [group(flavor("a", quota())), group(flavor("b", quota()))]
        twice = make("ClusterQueue", "twice", {"resourceGroups": groups})
        told = self.refused(path_of(twice), twice)
        self.assertIn("spec.resourceGroups[1].coveredResources[0]: Duplicate value", told)

    def test_pod_sets_stay_while_there_is_quota_for_them(self) -> None:
        sets = [{"name": "main", "count": 1, "template": template()}]
        work = make("Workload", "kept", {"queueName": "lq", "podSets": sets}, namespace="default")
        self.create(path_of(work), work)
        path, more = f"{path_of(work)}/kept", {"spec": {"podSets": [{**sets[0], "count": 2}]}}
        reserved = {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z"}  # fmt: skip
        self.api.call("PATCH", f"{path}/status", {"status": {"conditions": [reserved]}}, content_type=MERGE)
        with self.assertRaisesRegex(ApiError, "spec.podSets: cannot be changed while quota is reserved"):
            self.api.call("PATCH", path, more, content_type=MERGE)
        self.api.call("PATCH", path, {"spec": {"active": False}}, content_type=MERGE)
        self.api.call("PATCH", f"{path}/status", {"status": {"conditions": [{**reserved, "status": "False"}]}},
                      content_type=MERGE)  # fmt: skip
        self.api.call("PATCH", path, more, content_type=MERGE)

    @unittest.skipUnless(os.environ.get("BERTH_CASES"), "BERTH_CASES names no folder with recorded cases")
    def test_recorded_cases_pass_and_convert(self) -> None:
        for name, objects in cases(Path(os.environ["BERTH_CASES"])).items():
            with self.subTest(name):
                text = "\n---\n".join(objects)
                self.cluster.kubectl("create", "--dry-run=server", "-f", "-", input=text)
        self.assertEqual(self.webhook.metric('berth_webhook_requests_total{path="convert",result="failed"'), 0)


if __name__ == "__main__":
    main()
