#!/usr/bin/env python3
"""`berth scheduler` while things break: crashes of its own, of the API server and of the network, and two replicas.

Whatever happens, at the end of each test: every pod was bound at most once, by the API server's own audit log; no node
ever held more than it has, by the history of the store; and every pod is bound or told why it waits.

BERTH_LONG=1 runs more rounds. Ends with status 77 (skipped, for ctest) where the servers or the program are not built.
"""

from __future__ import annotations

import datetime
import os
import random
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.daemon import Berth, token_of, wait_until, write_kubeconfig  # noqa: E402
from harness.history import BindingAudit, History, unexplained  # noqa: E402
from harness.objects import pod, unschedulable  # noqa: E402
from harness.proxy import FlakyProxy  # noqa: E402
from harness.suite import CORE, PODS, main  # noqa: E402

from cluster import ApiError, Cluster  # noqa: E402

LONG = os.environ.get("BERTH_LONG") == "1"
ROUNDS = 5 if LONG else 1
BERTH_USER = "system:serviceaccount:berth-system:berth"
QUICK_LEASE = {"leaderElect": True, "leaseDuration": "6s", "renewDeadline": "4s", "retryPeriod": "1s"}


class Arrivals:
    """Pods that arrive from a thread of their own, through whatever happens; each is created for sure, once."""

    def __init__(self, api, pods: list[dict], pause_s: float = 0.01):
        self.uids: list[str] = []
        self._api, self._pods, self._pause_s = api, pods, pause_s
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Arrivals:
        self._thread.start()
        return self

    def __exit__(self, *_exception) -> None:
        self.join()

    def join(self) -> None:
        self._thread.join(timeout=120)

    def _run(self) -> None:
        for one in self._pods:
            wait_until("the API server takes a pod", lambda o=one: self._create(o), every_s=0.1)
            time.sleep(self._pause_s)

    def _create(self, one: dict) -> bool:
        try:
            self.uids.append(self._api.call("POST", PODS, one)["metadata"]["uid"])
        except ApiError as error:
            return error.reason == "AlreadyExists"  # the answer to an earlier attempt was lost
        except Exception:  # no server at the moment
            return False
        return True


def random_pods(seed: int, count: int) -> list[dict]:
    """GPU pods of several sizes and some without, which together need less than the nodes of the tests have."""
    dice = random.Random(seed)
    return [pod(f"p-{seed}-{i}", gpus=dice.choice([0, 1, 1, 1, 2]), requests={"cpu": "100m"}) for i in range(count)]


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.scratch = Path(scratch.name)
        cls.audit = BindingAudit(cls.scratch)
        cls.cluster = Cluster(components=CORE, extra_flags={"kube-apiserver": cls.audit.flags()}).__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)
        cls.api = cls.cluster.api
        cls.server_port = cls.cluster.layout.ports["kube-apiserver"]

    def setUp(self) -> None:
        self.cluster.start(*CORE)
        self.api.call("DELETE", PODS, {"gracePeriodSeconds": 0})
        wait_until("no pod is left", lambda: not self.api.call("GET", PODS)["items"])
        self.api.call("DELETE", "/api/v1/nodes")
        self.nodes: dict[str, dict] = {}
        self.history = History(self.api).__enter__()
        self.addCleanup(self.history.__exit__)

    # -- short forms

    def node(self, count: int, **how) -> list[str]:
        names = self.cluster.nodes(count, **how)
        for name in names:
            self.nodes[name] = self.api.call("GET", f"/api/v1/nodes/{name}")
        return names

    def berth(self, kubeconfig: Path | None = None, **how) -> Berth:
        berth = Berth(self.scratch, kubeconfig or self.cluster.berth_kubeconfig, **how)
        self.addCleanup(berth.kill)
        return berth

    def through(self, proxy: FlakyProxy) -> Path:
        user = {"token": token_of(self.cluster.berth_kubeconfig)}
        path = self.scratch / f"proxy-{proxy.port}.kubeconfig"
        return write_kubeconfig(path, f"https://127.0.0.1:{proxy.port}", user, self.cluster.layout.pki / "ca.crt")

    def pods(self) -> list[dict]:
        return self.api.call("GET", PODS)["items"]

    def count_bound(self) -> int:
        return sum(1 for one in self.pods() if one["spec"].get("nodeName"))

    def create(self, *pods: dict) -> None:
        for one in pods:
            self.api.call("POST", PODS, one)

    def wait_for_bound(self, count: int) -> None:
        wait_until(lambda: f"{count} pods are bound: {self.count_bound()} are; {self.why()}",
                   lambda: self.count_bound() >= count, every_s=0.2)  # fmt: skip

    def why(self) -> str:
        texts = {unschedulable(one) or "nothing said" for one in self.pods() if not one["spec"].get("nodeName")}
        return "; ".join(sorted(texts)[:3])

    def holder(self) -> str:
        """Who holds the lease; empty while nobody does."""
        try:
            path = "/apis/coordination.k8s.io/v1/namespaces/berth-system/leases/berth"
            return self.api.call("GET", path)["spec"].get("holderIdentity", "")
        except ApiError:
            return ""

    def judge(self) -> None:
        """The independent checker: the store's history, the server's audit log, and what is stored at the end."""
        wait_until(lambda: f"every pod is bound or told why it waits: {unexplained(self.pods())}",
                   lambda: not unexplained(self.pods()))  # fmt: skip
        self.history.catch_up()
        self.assertEqual(self.history.faults(self.nodes), [])
        self.assertEqual(self.audit.bound_twice(), [])


class Crashes(Faults):
    def test_berth_killed_again_and_again_while_pods_arrive(self) -> None:
        for seed in range(ROUNDS):
            with self.subTest(seed=seed):
                self.setUp()
                self.node(60, gpus=8)
                berth, dice = self.berth(), random.Random(seed)
                with Arrivals(self.api, random_pods(seed, 300)):
                    for _ in range(6):
                        berth.start()
                        time.sleep(dice.uniform(0, 1))
                        berth.kill()
                berth.start()
                self.wait_for_bound(300)
                self.judge()
                berth.kill()

    def test_the_api_server_killed_while_pods_arrive(self) -> None:
        self.node(60, gpus=8)
        berth = self.berth().start()
        with Arrivals(self.api, random_pods(1, 300)):
            for _ in range(2 * ROUNDS):
                time.sleep(1)
                self.cluster.restart("kube-apiserver", kill=True)
        self.wait_for_bound(300)
        self.judge()
        self.assertTrue(berth.running())

    def test_verdicts_that_could_not_be_written_are_written_after_the_outage(self) -> None:
        self.node(1, gpus=1)
        berth = self.berth().start()
        with Arrivals(self.api, [pod(f"waits-{i}", gpus=2) for i in range(60)], pause_s=0):
            wait_until("the first are told", lambda: len(unexplained(self.pods())) < len(self.pods()))
            self.cluster.kill("kube-apiserver")
            time.sleep(12)
            self.cluster.start("kube-apiserver")
        wait_until("all have arrived", lambda: len(self.pods()) == 60)
        self.judge()
        self.assertTrue(berth.running())

    def test_a_node_deleted_while_pods_are_bound_to_it(self) -> None:
        names = self.node(12, gpus=8)
        self.berth().start()
        with Arrivals(self.api, random_pods(4, 150), pause_s=0.005):
            for name in names[:6]:
                time.sleep(0.2)
                self.api.call("DELETE", f"/api/v1/nodes/{name}")
        wait_until("all have arrived", lambda: len(self.pods()) == 150)
        self.judge()

    def test_a_pod_replaced_by_its_namesake_while_it_is_bound(self) -> None:
        self.node(4, gpus=8)
        self.berth().start()
        for turn in range(40 * ROUNDS):
            made = self.api.call("POST", PODS, pod("same-name", gpus=1 + turn % 3))
            if turn % 4:
                time.sleep(0.003 * (turn % 10))
            only = {"uid": made["metadata"]["uid"]}
            self.api.call("DELETE", f"{PODS}/same-name", {"gracePeriodSeconds": 0, "preconditions": only})
        last = self.api.call("POST", PODS, pod("same-name", gpus=8))
        self.wait_for_bound(1)
        self.judge()
        self.assertEqual(self.pods()[0]["metadata"]["uid"], last["metadata"]["uid"])


class Network(Faults):
    """A proxy stands between Berth and the API server."""

    CONFIG = {"clientConnection": {"bindTimeout": "1s", "bindConnections": 8}}

    def test_binds_whose_answers_are_lost_are_resolved(self) -> None:
        self.node(40, gpus=8)
        with FlakyProxy(self.server_port) as proxy:
            config = {"clientConnection": {"bindTimeout": "2s", "bindConnections": 4}}
            berth = self.berth(self.through(proxy), config=config).start()
            unknown = lambda: berth.metric('berth_binds_total{result="unknown"}')  # noqa: E731
            for turn in range(3 * ROUNDS):
                proxy.delay_s = 0.1  # so that binds are under way for long
                self.create(*random_pods(50 + turn, 50))
                wait_until("some binds are answered", lambda t=turn: self.count_bound() > 50 * t + 5)
                proxy.swallow_answers = True
                before = unknown()
                wait_until("binds get no answer", lambda n=before: unknown() > n)
                proxy.swallow_answers, proxy.delay_s = False, 0
                proxy.cut()
                self.wait_for_bound(50 * (turn + 1))
            self.judge()
            wait_until("no bind is open", lambda: berth.metric("berth_binds_outstanding") == 0)
            berth.kill()

    def test_a_compacted_history_makes_it_list_again(self) -> None:
        self.node(20, gpus=8)
        with FlakyProxy(self.server_port) as proxy:
            berth = self.berth(self.through(proxy), config=dict(self.CONFIG)).start()
            self.create(*random_pods(2, 30))
            self.wait_for_bound(30)
            proxy.refuse = True  # it hears nothing of what follows
            proxy.cut()
            self.create(*random_pods(3, 30))
            self.api.call("DELETE", f"{PODS}/p-2-0", {"gracePeriodSeconds": 0})
            self.cluster.compact()
            self.cluster.restart("kube-apiserver", kill=True)
            proxy.refuse = False
            self.wait_for_bound(59)
            self.judge()
            gone = lambda: berth.metric('berth_watch_total{resource="pods",what="gone"}')  # noqa: E731
            wait_until("it was told 410", lambda: gone() >= 1)
            lists = lambda: berth.metric('berth_watch_total{resource="pods",what="lists"}')  # noqa: E731
            wait_until("it has listed again", lambda: lists() > 1)
            berth.kill()

    def test_connections_cut_in_the_middle_of_requests_and_watches(self) -> None:
        self.node(30, gpus=8)
        with FlakyProxy(self.server_port) as proxy:
            berth = self.berth(self.through(proxy), config=dict(self.CONFIG)).start()
            with Arrivals(self.api, random_pods(6, 150), pause_s=0.02):
                for _ in range(20 * ROUNDS):
                    time.sleep(0.15)
                    proxy.cut()
            self.wait_for_bound(150)
            self.judge()
            self.assertTrue(berth.running())
            berth.kill()

    def test_a_server_that_answers_slowly_and_breaks_off_its_lists(self) -> None:
        self.node(30, gpus=8)
        with FlakyProxy(self.server_port) as proxy:
            proxy.delay_s, proxy.cut_after_bytes = 0.05, 20_000
            berth = self.berth(self.through(proxy), config=dict(self.CONFIG)).start(ready=False)
            with Arrivals(self.api, random_pods(7, 100)):
                time.sleep(3)
                proxy.cut_after_bytes = None
            self.wait_for_bound(100)
            self.judge()
            self.assertTrue(berth.running())
            berth.kill()

    def test_a_server_out_of_reach_for_a_while(self) -> None:
        self.node(10, gpus=8)
        with FlakyProxy(self.server_port) as proxy:
            berth = self.berth(self.through(proxy), config=dict(self.CONFIG)).start()
            proxy.refuse = True
            proxy.cut()
            self.create(*random_pods(8, 20))
            wait_until("it says so", lambda: berth.said("cannot be followed"))
            before = proxy.connections
            time.sleep(5)
            watches = 20
            self.assertLess(proxy.connections - before, 4 * watches, "it tries again with pauses, not in a hot loop")
            proxy.refuse = False
            self.wait_for_bound(20)
            self.judge()
            wait_until("it says that the server is back", lambda: berth.said("answers again"))
            berth.kill()


class Replicas(Faults):
    """Two replicas. The second one's user is the admin, so that the audit log tells them apart."""

    def setUp(self) -> None:
        super().setUp()
        path = "/apis/coordination.k8s.io/v1/namespaces/berth-system/leases"
        if self.holder():
            self.api.call("DELETE", f"{path}/berth")
        self.node(60, gpus=8)

    def pair(self, lease: dict) -> tuple[Berth, Berth]:
        """A leader, with Berth's own rights, and a standby as admin."""
        config = {"leaderElection": lease, "clientConnection": {"bindTimeout": "2s"}}
        leader = self.berth(config=dict(config)).start()
        wait_until("the first one leads", lambda: leader.said("scheduling"))
        standby = self.berth(self.cluster.admin_kubeconfig, config=dict(config)).start()
        wait_until("the second one knows", lambda: standby.said("the lease has a holder"))
        self.assertEqual(standby.metric("berth_leader"), 0)
        self.assertEqual(standby.get("/readyz"), (200, "ok (standby)\n"))
        return leader, standby

    def test_a_standby_takes_over_within_20_s_of_a_crash(self) -> None:
        leader, standby = self.pair({"leaderElect": True})
        with Arrivals(self.api, random_pods(9, 200)):
            wait_until("some are bound", lambda: self.count_bound() > 50)
            leader.kill()
            crashed = time.monotonic()
        wait_until("the standby schedules", lambda: standby.said("scheduling"))
        self.assertLessEqual(time.monotonic() - crashed, 20)
        self.wait_for_bound(200)
        self.judge()
        self.assertGreater(sum(1 for one in self.audit.entries() if one["user"] == "admin"), 0)
        standby.kill()

    def test_a_leader_that_is_asked_to_end_gives_the_lease_back(self) -> None:
        leader, standby = self.pair({"leaderElect": True})
        with Arrivals(self.api, random_pods(10, 200)):
            wait_until("some are bound", lambda: self.count_bound() > 50)
            self.assertEqual(leader.terminate(), 0)
            ended = time.monotonic()
        wait_until("the standby schedules", lambda: standby.said("scheduling"))
        # A lease that is left to run out is taken after 15 s; this tells the two apart with room for a slow machine.
        self.assertLess(time.monotonic() - ended, 12)
        self.wait_for_bound(200)
        self.judge()
        standby.kill()

    def test_a_leader_that_was_stopped_for_long_sends_no_bind_when_it_goes_on(self) -> None:
        for seed in range(ROUNDS):
            with self.subTest(seed=seed):
                self.setUp()
                leader, standby = self.pair(dict(QUICK_LEASE))
                with Arrivals(self.api, random_pods(20 + seed, 300), pause_s=0):
                    wait_until("some are bound", lambda: self.count_bound() > 20)
                    leader.pause()
                    wait_until("the standby schedules", lambda: standby.said("scheduling"))
                    went_on = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
                    leader.resume()
                self.wait_for_bound(300)
                wait_until("the old leader stands by", lambda: leader.metric("berth_leader") == 0)
                self.assertTrue(leader.said("no longer leading"))
                late = [one for one in self.audit.entries() if one["user"] == BERTH_USER and one["received"] > went_on]
                self.assertEqual(late, [])
                self.judge()
                standby.kill()
                wait_until("it leads again when the other is gone", lambda: leader.metric("berth_leader") == 1)
                self.create(pod("afterwards", gpus=1))
                self.wait_for_bound(301)
                leader.kill()

    def test_a_leader_cut_off_from_the_server_stops_and_the_other_takes_over(self) -> None:
        with FlakyProxy(self.server_port) as proxy:
            config = {"leaderElection": dict(QUICK_LEASE), "clientConnection": {"bindTimeout": "2s"}}
            leader = self.berth(self.through(proxy), config=dict(config)).start()
            wait_until("the first one leads", lambda: leader.said("scheduling"))
            standby = self.berth(self.cluster.admin_kubeconfig, config=dict(config)).start()
            with Arrivals(self.api, random_pods(11, 200)):
                wait_until("some are bound", lambda: self.count_bound() > 20)
                proxy.refuse = True
                proxy.cut()
                wait_until("the first one gives up", lambda: leader.said("no longer leading"))
                wait_until("the standby schedules", lambda: standby.said("scheduling"))
                proxy.refuse = False
            self.wait_for_bound(200)
            self.judge()
            self.assertEqual((leader.metric("berth_leader"), standby.metric("berth_leader")), (0, 1))
            leader.kill()
            standby.kill()


if __name__ == "__main__":
    main()
