#!/usr/bin/env python3
"""`berth scheduler` before an API server that sends what no real one would: objects, answers and bodies out of shape.

Needs no test servers. Ends with status 77 (skipped, for ctest) where the program is not built.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.daemon import Berth, berth_binary, wait_until, write_kubeconfig  # noqa: E402
from harness.fake_server import FakeServer  # noqa: E402
from harness.objects import pod  # noqa: E402


def field(number: int, value: bytes | str) -> bytes:
    """A string or a message in protobuf, of less than 128 bytes."""
    data = value.encode() if isinstance(value, str) else value
    return bytes([*([number << 3 | 2] if number < 16 else [number << 3 & 0x7F | 0x82, number >> 4]), len(data)]) + data


class HostileServer(unittest.TestCase):
    """An API server that sends what no real one would; nothing of Kubernetes runs here."""

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)
        self.server = self.enterContext(FakeServer())
        self.kubeconfig = write_kubeconfig(self.scratch / "kubeconfig", self.server.url, {"token": "t"})
        self.put_node("good")

    def start(self, *, ready: bool = True, config: dict | None = None) -> Berth:
        berth = Berth(self.scratch, self.kubeconfig, config=config)
        self.addCleanup(berth.kill)
        return berth.start(ready=ready)

    def put_node(self, name: str, **allocatable) -> None:
        allocatable = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": "64", **allocatable}
        metadata = {"name": name, "uid": f"uid-{name}"}
        self.server.put("nodes", {"metadata": metadata, "status": {"allocatable": allocatable}})

    def put_pod(self, name: str, **fields) -> None:
        one = pod(name, gpus=1)
        one["metadata"] |= {"namespace": "default", "uid": f"uid-{name}", "creationTimestamp": "2026-01-01T00:00:00Z"}
        one["spec"] |= fields
        one["status"] = {"phase": "Pending"}
        self.server.put("pods", one)

    def bound(self) -> dict[str, str]:
        return {one["metadata"]["uid"]: one["target"]["name"] for one in self.server.bindings}

    def wait_for(self, *names: str) -> None:
        uids = {f"uid-{name}" for name in names}
        wait_until(lambda: f"{uids} are bound: {self.bound()}", lambda: uids <= set(self.bound()))

    def assert_quarantined(self, berth: Berth, kind: str, name: str) -> None:
        metric = f'berth_quarantined_objects_total{{kind="{kind}"}}'
        wait_until("it is counted", lambda: berth.metric(metric) >= 1)
        about = lambda: [one for one in self.server.events if one["reason"] == "Quarantined"  # noqa: E731
                         and one["regarding"]["name"] == name and one["regarding"]["kind"] == kind]  # fmt: skip
        self.assertEqual(wait_until("it has an event", about)[0]["type"], "Warning")

    def test_malformed_objects_of_a_list_are_set_aside_and_the_others_bound(self) -> None:
        self.put_node("bad", **{"nvidia.com/gpu": "many"})
        self.put_pod("bad", priority="high")
        self.put_pod("one")
        self.put_pod("two")
        berth = self.start()
        self.wait_for("one", "two")
        self.assert_quarantined(berth, "Pod", "bad")
        self.assert_quarantined(berth, "Node", "bad")
        self.assertEqual(self.bound(), {"uid-one": "good", "uid-two": "good"})
        aside = lambda: berth.get("/readyz?verbose")[1].splitlines()[1:]  # noqa: E731
        self.assertEqual(aside()[0], "2 objects are set aside because they cannot be understood")
        self.assertIn("Node bad: status.allocatable[nvidia.com/gpu]: 'many' is not a quantity", aside()[1])
        self.assertIn("Pod default/bad: spec.priority: expected an integer", aside()[2])
        self.put_pod("bad")  # mended
        self.wait_for("bad")
        self.assertEqual([line.split(":")[0] for line in aside()[1:]], ["Node bad"])
        self.put_node("bad")
        wait_until("the node is mended too", lambda: aside()[1:] == [])

    def test_malformed_objects_of_a_watch_are_set_aside_and_the_others_bound(self) -> None:
        berth = self.start()
        self.put_pod("one")
        self.wait_for("one")
        self.put_node("good-too")
        malformed = [{"tolerations": 7}, {"nodeSelector": ["a"]}, {"containers": None, "overhead": 1}]
        for number, fields in enumerate(malformed):
            self.put_pod(f"bad-{number}", **fields)
        self.put_pod("two")
        self.wait_for("two")
        for number in range(3):
            self.assert_quarantined(berth, "Pod", f"bad-{number}")
        self.put_node("good-too", cpu="1e400")
        self.assert_quarantined(berth, "Node", "good-too")
        self.put_pod("three")
        self.wait_for("three")
        self.assertEqual(self.bound()["uid-three"], "good")

    def nowhere(self, berth: Berth, name: str) -> None:
        """One pod waits, and its node is found unfit."""
        self.put_pod(name)
        wait_until(f"{name} waits", lambda: berth.metric('scheduler_pending_pods{queue="unschedulable"}') == 1)

    def check_that_its_node_is_closed_until_it_is_mended(self, berth: Berth) -> None:
        self.nowhere(berth, "one")
        self.assertIn("and node good takes no new work meanwhile", berth.get("/readyz?verbose")[1])
        self.put_node("second", **{"nvidia.com/gpu": "1"})
        self.wait_for("one")
        self.assertEqual(self.bound()["uid-one"], "second")
        self.nowhere(berth, "two")
        self.put_pod("foreign", nodeName="good")
        self.wait_for("two")
        self.assertEqual(self.bound()["uid-two"], "good")

    def test_a_node_with_a_pod_of_a_list_that_cannot_be_understood_takes_no_new_work(self) -> None:
        self.put_pod("foreign", nodeName="good", tolerations=7)
        self.check_that_its_node_is_closed_until_it_is_mended(self.start())

    def test_a_node_with_a_pod_of_a_list_in_protobuf_that_cannot_be_understood_takes_no_new_work(self) -> None:
        metadata = field(1, "foreign") + field(3, "default") + field(5, "uid-foreign")
        foreign = field(1, metadata) + field(2, field(10, "good") + field(22, b"\x0b"))  # a group for a toleration
        body = b"k8s\0" + field(1, field(2, "PodList")) + field(2, field(1, field(2, "1")) + field(2, foreign))
        self.server.answers = lambda _m, path: (
            (200, {}, body) if "/pods?limit" in path and "labelSelector" not in path else None
        )
        berth = self.start()
        self.assert_quarantined(berth, "Pod", "foreign")
        self.assertIn("Pod default/foreign: spec.tolerations has a field of a kind", berth.get("/readyz?verbose")[1])
        self.check_that_its_node_is_closed_until_it_is_mended(berth)

    def test_a_node_with_a_pod_of_a_watch_that_cannot_be_understood_takes_no_new_work(self) -> None:
        berth = self.start()
        self.put_pod("foreign", nodeName="good", tolerations=7)
        self.assert_quarantined(berth, "Pod", "foreign")
        self.put_node("good", cpu="65")  # does not open it
        self.check_that_its_node_is_closed_until_it_is_mended(berth)

    def test_a_pod_that_becomes_malformed_goes_on_counting_for_what_it_was_known_to_hold(self) -> None:
        self.put_node("good", **{"nvidia.com/gpu": "2"})
        berth = self.start()
        self.put_pod("own")
        self.wait_for("own")
        self.put_pod("own", nodeName="good", tolerations=7)
        self.put_pod("one")
        self.wait_for("one")  # its node is not closed
        self.nowhere(berth, "two")
        lists = lambda: sum(1 for one in self.server.requests if one[1].endswith("/pods"))  # noqa: E731
        before = lists()
        gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}
        self.server.send("pods", json.dumps(gone).encode())
        wait_until("pods are listed again", lambda: lists() >= before + 2)
        self.put_node("second")
        self.wait_for("two")
        self.assertEqual(self.bound()["uid-two"], "second")

    def test_a_malformed_pod_that_holds_nothing_closes_no_node(self) -> None:
        self.put_pod("over", nodeName="good", tolerations=7)
        self.server.pod("over")["status"]["phase"] = "Failed"
        berth = self.start()
        self.put_pod("one")
        self.wait_for("one")
        self.assert_quarantined(berth, "Pod", "over")
        self.put_pod("over", nodeName="good", tolerations=7)  # and now it holds something
        self.nowhere(berth, "two")
        self.server.remove("pods", "over")
        self.wait_for("two")

    def test_a_pod_counts_for_its_requests_whatever_limits_the_server_took(self) -> None:
        self.put_node("good", **{"nvidia.com/gpu": "8"})
        self.put_pod("huge", nodeName="good", containers=[{"name": "main", "resources": {
            "requests": {"memory": "1Gi", "nvidia.com/gpu": "8"}, "limits": {"memory": "100E", "nvidia.com/gpu": "8"}}}])  # fmt: skip
        berth = self.start()
        self.nowhere(berth, "one")
        self.assertEqual(berth.metric("berth_quarantined_objects_total"), 0)
        self.put_node("second")
        self.wait_for("one")
        self.assertEqual(self.bound(), {"uid-one": "second"})

    def test_a_watch_that_sends_garbage_is_replaced(self) -> None:
        berth = self.start()
        for garbage in (b"<html>", b"{", b"[]", b"null", b'{"type":"ADDED"}', b'{"type":7,"object":{}}', b"\xff\xfe",
                        b'{"type":"ADDED","object":' + b"[" * 100_000, b'{"type":"ERROR","object":"x"}'):  # fmt: skip
            self.server.send("pods", garbage)
            time.sleep(0.3)
        self.put_pod("one")
        self.wait_for("one")
        self.assertTrue(berth.running())

    def test_answers_that_are_no_lists_are_tried_again(self) -> None:
        bodies = [b"", b"<html>Bad gateway</html>", b"null", b"[]", b'{"items":7}', b'{"items":[{', b"{}",
                  b"[" * 200_000, b"\x00" * 1000, b"k8s\0", b"k8s\0\x12\x7f",
                  b"k8s\0" + field(2, b"\x0b" * 100)]  # fmt: skip
        self.put_pod("one")
        for number, body in enumerate(bodies):
            with self.subTest(body=body[:40]):
                wrong = lambda _m, path, b=body: (200, {}, b) if "/nodes?limit" in path else None  # noqa: E731
                self.server.answers = wrong
                berth = self.start(ready=False)
                asked = lambda: sum(1 for one in self.server.requests if one[1].endswith("/nodes"))  # noqa: E731
                before = asked()
                wait_until("it asks again", lambda a=asked, n=before: a() >= n + 1)
                self.server.answers = lambda _m, _p: None
                self.put_pod(f"then-{number}")
                self.wait_for(f"then-{number}")
                berth.kill()

    def test_pods_that_name_no_queue_do_not_wait_for_queues_that_cannot_be_read(self) -> None:
        broken = (500, {}, b'{"kind":"Status","code":500,"message":"conversion webhook failed"}')
        self.server.answers = lambda _m, path: broken if "/clusterqueues" in path else None
        berth = self.start(ready=False)
        self.put_pod("plain")
        self.wait_for("plain")  # after a while
        said = berth.said("queues cannot be read")
        self.assertEqual(len(said), 1)
        self.assertIn("conversion webhook failed", said[0]["error"])

    def test_errors_of_every_kind_are_tried_again(self) -> None:
        answers = [(500, {}, b"<html>"), (502, {}, b""), (503, {"Retry-After": "1"}, b"{}"),
                   (302, {"Location": "/"}, b""), (404, {}, b"not a Status"),
                   (200, {"Content-Length": "5000"}, b"short")]  # fmt: skip
        for answer in answers:
            with self.subTest(answer=answer[:2]):
                name = f"after-{answer[0]}"
                turns = iter(range(3))
                self.server.answers = lambda _m, path, a=answer, t=turns: (
                    a if "?limit" in path and next(t, None) is not None else None
                )
                berth = self.start(ready=False)
                self.put_pod(name)
                self.wait_for(name)
                berth.kill()

    def test_a_lease_out_of_shape_is_said_in_one_line_and_asked_for_again(self) -> None:
        for body in (b'{"metadata":"x","spec":{"holderIdentity":""}}', b'{"metadata":{},"spec":5}', b"[]",
                     b'{"metadata":{},"spec":[]}', b'{"metadata":[],"spec":{}}'):  # fmt: skip
            with self.subTest(body=body):
                self.server.answers = lambda _m, path, b=body: (200, {}, b) if "/leases" in path else None
                asked = lambda: sum(1 for one in self.server.requests if "/leases" in one[1])  # noqa: E731
                before = asked()
                berth = self.start(ready=False, config={"leaderElection": {"leaderElect": True}})
                wait_until("it asks again", lambda n=before, a=asked: a() >= n + 2)
                said = berth.said("trying again")
                self.assertEqual(len(said), 1)
                self.assertIn("the server's answer is not a Lease (", said[0]["error"])
                self.assertEqual(berth.get("/readyz")[0], 503)
                self.assertEqual(berth.terminate(), 0)

    def test_a_pod_whose_bind_is_refused_is_told_so(self) -> None:
        words = 'pods "one" is forbidden: denied request: not today: ever'
        status = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": words}
        refused = (403, {}, json.dumps(status).encode())
        self.server.answers = lambda _m, path: refused if path.endswith("/binding") else None
        berth = self.start()
        self.put_pod("one")
        text = f'running Bind plugin "DefaultBinder": {words}'
        told = lambda: [one for one in self.server.events if one["reason"] == "FailedScheduling"]  # noqa: E731
        event = wait_until("it has an event", told)[0]
        self.assertEqual((event["note"], event["type"], event["action"]), (text, "Warning", "Scheduling"))
        wait_until("it is tried again", lambda: berth.metric('berth_binds_total{result="failed"}') >= 3)
        self.assertEqual(len(told()), 1)
        conditions = [body["status"]["conditions"][0] for path, body in self.server.patches if path.endswith("/status")]
        self.assertEqual(len(conditions), 1)
        wanted = {"type": "PodScheduled", "status": "False", "reason": "SchedulerError", "message": text}
        self.assertLessEqual(wanted.items(), conditions[0].items())
        self.assertEqual(berth.said("a bind failed")[0]["pod"], "default/one")
        self.assertEqual(berth.metric('berth_scheduling_outcomes_total{result="error"}'),
                         berth.metric('berth_binds_total{result="failed"}'))  # fmt: skip
        self.server.answers = lambda _m, _p: None
        self.wait_for("one")

    def test_a_server_that_has_too_much_to_do_is_not_pressed(self) -> None:
        busy = (429, {"Retry-After": "1"}, b'{"kind":"Status","code":429,"reason":"TooManyRequests","message":"later"}')
        self.server.answers = lambda _m, path: busy if path.endswith("/binding") else None
        berth = self.start()
        self.put_pod("one")
        attempts = lambda: sum(1 for one in self.server.requests if one[1].endswith("/binding"))  # noqa: E731
        wait_until("it tries", attempts)
        time.sleep(5)
        self.assertLessEqual(attempts(), 7)
        self.server.answers = lambda _m, _p: None
        self.wait_for("one")
        self.assertEqual(berth.metric('berth_binds_total{result="bound"}'), 1)

    def test_all_binds_wait_for_a_server_that_has_too_much_to_do_and_none_is_lost(self) -> None:
        busy = (429, {"Retry-After": "2"}, b'{"kind":"Status","code":429,"reason":"TooManyRequests","message":"later"}')
        self.server.answers = lambda _m, path: busy if path.endswith("/binding") else None
        berth = self.start(config={"clientConnection": {"bindConnections": 4}})
        names = [f"p{number}" for number in range(50)]
        for name in names:
            self.put_pod(name)
        attempts = lambda: sum(1 for one in self.server.requests if one[1].endswith("/binding"))  # noqa: E731
        wait_until("it tries", attempts)
        time.sleep(5)
        self.assertLessEqual(attempts(), 4 + 2 + 1 + 1)  # and 46 were about to be sent
        self.assertEqual(berth.metric("berth_binds_outstanding"), 50)
        self.server.answers = lambda _m, _p: None
        self.wait_for(*names)
        self.assertEqual(len(self.server.bindings), 50)
        wait_until("all are counted", lambda: berth.metric('berth_binds_total{result="bound"}') == 50)
        self.assertEqual(berth.metric('berth_binds_total{result="failed"}'), 0)
        wait_until("so are the refusals", lambda: berth.metric("berth_binds_throttled_total") >= 1)

    def test_under_a_flood_the_owner_thread_works_in_bounded_turns(self) -> None:
        berth = self.start()
        for number in range(6000):
            self.put_pod(f"gated-{number % 300}", schedulingGates=[{"name": "example.com/later"}])
        self.put_pod("last")
        self.wait_for("last")
        wait_until("all is applied", lambda: berth.metric("berth_owner_turn_updates_sum") >= 6000)
        seen = berth.metrics()
        self.assertEqual(seen['berth_owner_turn_updates_bucket{le="2000"}'], seen["berth_owner_turn_updates_count"])
        self.assertGreaterEqual(seen["berth_owner_turn_duration_seconds_count"], seen["berth_owner_turn_updates_count"])
        self.assertEqual(seen["berth_owner_turn_max_seconds"], 0.25)
        wait_until("nothing waits", lambda: berth.metric("berth_owner_backlog") == 0)

    def test_however_short_its_turns_the_owner_thread_gets_everything_done(self) -> None:
        for number in range(3000):
            self.put_node(f"n{number:04}", **{"nvidia.com/gpu": "0"})
        berth = self.start(config={"turnMax": "1us"})
        self.put_pod("one")
        self.wait_for("one")
        wait_until("the bind is counted", lambda: berth.metric('berth_binds_total{result="bound"}') == 1)
        seen = berth.metrics()
        self.assertGreaterEqual(seen["berth_cycle_work_units_total"], 3001)
        self.assertGreaterEqual(seen["berth_cycle_duration_seconds_count"], 4)  # of 1,000 candidates each
        self.assertGreaterEqual(seen['berth_owner_turns_over_max_total{list="yes"}'], 1)
        self.assertGreaterEqual(seen['berth_owner_turns_over_max_total{list="no"}'], 1)

    def test_a_bind_answered_with_an_error_although_it_was_stored_is_found_out(self) -> None:
        def stored_then_500(method: str, path: str):
            if method != "POST" or not path.endswith("/binding"):
                return None
            name = path.split("/")[-2]
            self.server._bind(name, {"metadata": {"uid": f"uid-{name}"}, "target": {"name": "good"}})
            return 500, {}, b'{"kind":"Status","code":500,"message":"etcdserver: request timed out"}'

        self.server.answers = stored_then_500
        berth = self.start()
        self.put_pod("one")
        wait_until("it is resolved", lambda: berth.metric('berth_binds_total{result="bound"}') == 1)
        self.assertEqual(len(self.server.bindings), 1)

    def test_a_pod_that_ended_before_the_answer_to_its_bind_has_its_event(self) -> None:
        def ends_first(method: str, path: str):
            if method != "POST" or not path.endswith("/binding"):
                return None
            name = path.split("/")[-2]
            self.server._bind(name, {"metadata": {"uid": f"uid-{name}"}, "target": {"name": "good"}})
            if name == "ended":
                one = self.server.pod(name)
                one["status"] = {"phase": "Succeeded"}
                self.server.put("pods", one)
            else:
                self.server.remove("pods", name)
            time.sleep(1)  # so that the watch comes before the answer
            return 201, {}, b'{"kind":"Status","status":"Success"}'

        self.server.answers = ends_first
        berth = self.start()
        self.put_pod("ended")
        self.put_pod("deleted")
        wait_until("both are counted", lambda: berth.metric('berth_binds_total{result="bound"}') == 2)
        told = lambda: sorted(one["note"] for one in self.server.events if one["reason"] == "Scheduled")  # noqa: E731
        wait_until("both have their event", lambda: len(told()) == 2)
        self.assertEqual(told(), [f"Successfully assigned default/{name} to good" for name in ("deleted", "ended")])

    def put_victim(self, name: str, node: str, priority: int, namespace: str = "default") -> None:
        one = pod(name, gpus=1, labels={"app": name})
        one["metadata"] |= {"namespace": namespace, "uid": f"uid-{name}", "creationTimestamp": "2026-01-01T00:00:00Z"}
        one["spec"] |= {"nodeName": node, "priority": priority}
        one["status"] = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
        self.server.put("pods", one)

    def deletions(self) -> list[str]:
        return [path.rpartition("/")[2] for method, path in self.server.requests if method == "DELETE"]

    def test_a_budget_that_cannot_be_understood_protects_its_namespace(self) -> None:
        self.put_node("good", **{"nvidia.com/gpu": "0"})
        self.put_node("n1", **{"nvidia.com/gpu": "1"})
        self.put_node("n2", **{"nvidia.com/gpu": "1"})
        self.put_victim("guarded", "n1", -10)
        self.put_victim("other", "n2", 0, namespace="team")
        self.server.put("poddisruptionbudgets", {"metadata": {"name": "odd", "namespace": "default", "uid": "b"},
                                                 "spec": {"selector": 7}})  # fmt: skip
        berth = self.start()
        self.assert_quarantined(berth, "PodDisruptionBudget", "odd")
        self.put_pod("boss", priority=10)
        wait_until("somebody is evicted", self.deletions)
        self.assertEqual(self.deletions(), ["other"])

    def test_an_eviction_that_gets_no_good_answer_is_repeated_and_no_other_pod_goes(self) -> None:
        self.put_node("good", **{"nvidia.com/gpu": "2"})
        self.put_victim("first", "good", 0)
        self.put_victim("second", "good", 0)
        answers = [(500, {}, b"<html>"), (503, {"Retry-After": "1"}, b"{}"), (429, {"Retry-After": "1"}, b""),
                   (409, {}, b"{}"), (401, {}, b"")]  # fmt: skip
        left = list(answers)
        self.server.answers = lambda method, _path: left.pop(0) if method == "DELETE" and left else None
        berth = self.start()
        self.put_pod("boss", priority=10)
        wait_until("it is evicted in the end", lambda: berth.metric('berth_evictions_total{result="evicted"}') == 1)
        self.assertEqual(len(self.deletions()), len(answers) + 1)
        self.assertEqual(len(set(self.deletions())), 1)

    def test_a_nomination_that_leads_nowhere_is_taken_back(self) -> None:
        self.put_node("good", **{"nvidia.com/gpu": "0"})
        one = pod("boss", gpus=1)
        one["metadata"] |= {"namespace": "default", "uid": "uid-boss", "creationTimestamp": "2026-01-01T00:00:00Z"}
        one["status"] = {"phase": "Pending", "nominatedNodeName": "ghost"}
        self.server.put("pods", one)
        self.start()
        told = lambda: [body["status"] for path, body in self.server.patches  # noqa: E731
                        if path.endswith("/pods/boss/status")]  # fmt: skip
        wait_until("it is told", told)
        self.assertIsNone(told()[-1].get("nominatedNodeName", "left alone"))

    def put_pod_of_job(self, name: str, job: str) -> None:
        one = pod(name, gpus=1)
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": f"uid-{job}", "controller": True}
        one["metadata"] |= {"namespace": "default", "uid": f"uid-{name}", "creationTimestamp": "2026-01-01T00:00:00Z",
                            "ownerReferences": [owner]}  # fmt: skip
        one["status"] = {"phase": "Pending"}
        self.server.put("pods", one)

    def put_job(self, name: str, labels: dict) -> None:
        metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": labels}
        template = {"spec": pod("one", gpus=1)["spec"] | {"restartPolicy": "Never"}}
        self.server.put("jobs", {"metadata": metadata, "spec": {"suspend": False, "template": template}, "status": {}})

    def test_a_pod_that_comes_before_its_job_waits_for_it(self) -> None:
        self.server = self.enterContext(FakeServer(queues=True))  # its watch of Jobs is slow
        self.kubeconfig = write_kubeconfig(self.scratch / "kubeconfig", self.server.url, {"token": "t"})
        self.put_node("good")
        self.put_job("known", {})
        berth = self.start()
        for name in ("plain", "queued", "lost", "known"):
            self.put_pod_of_job(f"{name}-0", name)
        began = time.monotonic()
        self.put_pod("alone")
        self.wait_for("alone", "known-0")
        self.assertLess(time.monotonic() - began, 5, "nobody else waits for that")
        self.put_job("plain", {"app": "kueue.x-k8s.io/queue-name"})
        self.wait_for("plain-0")
        self.put_job("queued", {"kueue.x-k8s.io/queue-name": "red"})
        self.wait_for("lost-0")
        self.assertGreater(time.monotonic() - began, 9, "its Job may still have come")
        self.assertEqual(set(self.bound()), {"uid-alone", "uid-known-0", "uid-plain-0", "uid-lost-0"})
        told = lambda: [body["status"]["conditions"][0]["message"] for path, body in self.server.patches  # noqa: E731
                        if path.endswith("/pods/queued-0/status")]  # fmt: skip
        wait_until("it is told", told)
        self.assertEqual(told()[-1], "its Job names a queue, and waits for a Workload to be admitted by")
        self.assertFalse(berth.said("set aside"))

    def test_a_body_without_end_does_not_fill_the_memory(self) -> None:
        self.put_pod("one")
        self.server.answers = lambda _m, path: (200, {}, b" " * 600_000_000) if "/nodes?limit" in path else None
        berth = self.start(ready=False)
        wait_until("it says so", lambda: berth.said("trying again"))
        self.assertLess(berth.memory_peak_bytes(), 1 << 30)
        self.server.answers = lambda _m, _p: None
        self.wait_for("one")


if __name__ == "__main__":
    if berth_binary() is None:
        print("SKIPPED: the berth program is not built: ./dev build, or set BERTH_BIN to the folder that holds it")
        sys.exit(77)
    unittest.main(verbosity=2)
