#!/usr/bin/env python3
"""MIG slices, shares and whole GPUs side by side on a real kube-apiserver, with kube-scheduler's verdicts beside.

The nodes advertise what NVIDIA's device plugin and GPU feature discovery would. Shares are Berth's own: kube-scheduler
knows none, so only the pods without one are compared. Ends with status 77 (skipped, for ctest) where the test servers
or the program are not built.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.daemon import wait_until  # noqa: E402
from harness.objects import BERTH, pod, unschedulable  # noqa: E402
from harness.suite import WithBerth, main  # noqa: E402

TAIL = " no new claims to deallocate, preemption:"  # what preemption could do, after the reasons
SMALL, LARGE = "nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb"
SHARED = "nvidia.com/gpu.shared"
FRACTION, MEMORY = "berth.dev/gpu-fraction", "berth.dev/gpu-memory"


def asks(name: str, resource: str, amount: int = 1, **how) -> dict:
    """A pod that asks for so many of an extended resource."""
    one = pod(name, **how)
    one["spec"]["containers"][0]["resources"]["limits"] = {resource: str(amount)}
    return one


def share(name: str, annotation: str, value: str, **how) -> dict:
    return pod(name, annotations={annotation: value}, **how)


class Devices(WithBerth):
    COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")

    def setUp(self) -> None:
        super().setUp()
        product = "nvidia.com/gpu.product"
        a100 = {product: "NVIDIA-A100-SXM4-40GB", "nvidia.com/mig.strategy": "mixed"}
        self.node(1, prefix="mig-", gpus=0, labels=a100, resources={SMALL: "8", LARGE: "2"})
        l4 = {product: "NVIDIA-L4-SHARED", "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.memory": "23034",
              "nvidia.com/gpu.count": "2", "nvidia.com/gpu.sharing-strategy": "time-slicing"}  # fmt: skip
        self.node(1, prefix="shared-", gpus=0, labels=l4, resources={SHARED: "8"})
        h100 = {product: "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.memory": "81559", "nvidia.com/gpu.count": "8"}
        self.node(1, prefix="whole-", gpus=8, labels=h100)

    def places(self, *names: str) -> dict[str, str]:
        return {name: self.bound(name) for name in names}

    def test_each_kind_goes_where_it_is_and_no_further(self) -> None:
        fit = {
            "mig-0": [*(asks(f"small-{i}", SMALL) for i in range(8)), *(asks(f"large-{i}", LARGE) for i in range(2))],
            # two replicas; of four to a device 0.5 and 0.3 are two each, and 5Gi of 22.5Gi one: seven of eight
            "shared-0": [asks("replica-0", SHARED), asks("replica-1", SHARED), share("half", FRACTION, "0.5"),
                         share("third", FRACTION, "0.3"), share("memory", MEMORY, "5Gi")],
            "whole-0": [pod("four", gpus=4), pod("three", gpus=3), pod("one", gpus=1)],
        }  # fmt: skip
        more = [asks("small-more", SMALL), asks("large-more", LARGE), share("half-more", FRACTION, "0.5"),
                pod("one-more", gpus=1)]  # fmt: skip
        self.create(*(one for pods in fit.values() for one in pods), *more)
        for node, pods in fit.items():
            for one in pods:
                self.assertEqual(self.bound(one["metadata"]["name"]), node)
        self.assertIn(f"3 Insufficient {SMALL}", self.waiting("small-more"))
        self.assertIn(f"3 Insufficient {LARGE}", self.waiting("large-more"))
        self.assertIn("3 Insufficient nvidia.com/gpu.", self.waiting("one-more"))
        told = self.waiting("half-more")
        self.assertIn("1 node(s) needed berth-agent to share a GPU", told)
        self.assertIn("1 node(s) had no GPU with room for the share", told)
        self.assertIn("1 node(s) had no GPU to share", told)

    def test_what_leaves_makes_room_for_its_own_kind(self) -> None:
        self.create(asks("large-0", LARGE), asks("large-1", LARGE), *(share(f"all-{i}", FRACTION, "1") for i in range(2)),
                    pod("eight", gpus=8))  # fmt: skip
        self.places("large-0", "large-1", "all-0", "all-1", "eight")
        self.create(asks("large-2", LARGE), share("half", FRACTION, "0.5"), pod("two", gpus=2))
        for name in ("large-2", "half", "two"):
            self.waiting(name)
        for leaves, comes, node in (("large-0", "large-2", "mig-0"), ("all-1", "half", "shared-0"),
                                    ("eight", "two", "whole-0")):  # fmt: skip
            self.delete(leaves)
            self.assertEqual(self.bound(comes), node)

    def test_a_more_important_slice_takes_the_place_of_another(self) -> None:
        urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"},
                  "value": 1000}  # fmt: skip
        self.api.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", urgent)
        self.addCleanup(self.api.call, "DELETE", "/apis/scheduling.k8s.io/v1/priorityclasses/urgent")
        self.create(asks("large-0", LARGE), asks("large-1", LARGE))
        self.places("large-0", "large-1")
        self.create(asks("urgent", LARGE, priorityClassName="urgent"))
        self.assertEqual(self.bound("urgent"), "mig-0")
        left = {one["metadata"]["name"] for one in self.pods()}
        self.assertEqual(len(left & {"large-0", "large-1"}), 1)

    def test_a_repartitioned_node_serves_what_it_has_now(self) -> None:
        self.create(asks("large-0", LARGE, 2))
        self.bound("large-0")
        self.delete("large-0")
        self.create(asks("medium", "nvidia.com/mig-2g.10gb"))
        self.assertIn("Insufficient nvidia.com/mig-2g.10gb", self.waiting("medium"))
        now = {SMALL: "8", LARGE: None, "nvidia.com/mig-2g.10gb": "3"}
        self.patch("/api/v1/nodes/mig-0/status", {"status": {"capacity": now, "allocatable": now}})
        # The judge knows one state of each node: here all that it ever had.
        self.nodes["mig-0"]["status"]["allocatable"]["nvidia.com/mig-2g.10gb"] = "3"
        self.assertEqual(self.bound("medium"), "mig-0")
        self.create(asks("large-1", LARGE))
        self.assertIn(f"3 Insufficient {LARGE}", self.waiting("large-1"))

    def test_verdicts_without_a_share_are_those_of_kube_scheduler(self) -> None:
        for what, resource, amount in (("slices", SMALL, 9), ("no-such-slice", "nvidia.com/mig-7g.40gb", 1),
                                       ("replicas", SHARED, 9), ("whole", "nvidia.com/gpu", 9)):  # fmt: skip
            with self.subTest(what):
                for scheduler in ("default-scheduler", BERTH):
                    self.create(asks(f"{what}-{scheduler}", resource, amount, scheduler=scheduler))
                theirs = self.waiting(f"{what}-default-scheduler")
                self.assertEqual(self.waiting(f"{what}-{BERTH}"), theirs)

    def test_kinds_that_arrive_and_leave_all_at_once_are_never_oversold(self) -> None:
        """What tearDown judges: no node held more of anything than it has, at any moment of the history."""
        makers = (lambda n: asks(n, SMALL, 3), lambda n: asks(n, LARGE), lambda n: asks(n, SHARED, 3),
                  lambda n: share(n, FRACTION, "0.75"), lambda n: pod(n, gpus=3))  # fmt: skip

        def decided(name: str) -> bool:
            one = self.get(name)
            return bool(one["spec"].get("nodeName") or unschedulable(one))

        def churn(kind: int) -> int:
            bound = 0
            for round_number in range(4):
                names = [f"kind-{kind}-{round_number}-{i}" for i in range(6)]
                self.create(*(makers[kind](name) for name in names))
                wait_until("all are bound or told why they wait", lambda n=names: all(decided(one) for one in n))
                bound += sum(1 for name in names if self.get(name)["spec"].get("nodeName"))
                for name in names:
                    self.delete(name)
            return bound

        with ThreadPoolExecutor(max_workers=len(makers)) as pool:
            bound = list(pool.map(churn, range(len(makers))))
        small, large, replicas, shares, whole = bound
        # Replicas and shares live of the same eight: which of the two gets them is free.
        self.assertGreaterEqual(min(small, large, replicas + shares, whole), 4, bound)


if __name__ == "__main__":
    main()
