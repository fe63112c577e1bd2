#!/usr/bin/env python3
"""Dynamic MIG on a real kube-apiserver: Berth writes how a node is to be cut, and the test cuts it.

The test plays who cuts: an agent, by the annotation berth.dev/devices and the node's status, or NVIDIA's MIG manager, by
its labels. Ends with status 77 (skipped, for ctest) where the test servers or the program are not built.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.daemon import Berth, wait_until  # noqa: E402
from harness.objects import pod  # noqa: E402
from harness.suite import Suite, main  # noqa: E402

SMALL, LARGE = "nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb"
GPU = "nvidia.com/gpu"
DESIRED, DEVICES, FAILED = "berth.dev/mig-desired", "berth.dev/devices", "berth.dev/mig-failed"
CONFIG, STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"
ALLOWED = {"berth.dev/mig-policy": "dynamic", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB",
           "nvidia.com/gpu.count": "2", "nvidia.com/mig.strategy": "mixed"}  # fmt: skip


def asks(name: str, resource: str, amount: int = 1, **how) -> dict:
    one = pod(name, **how)
    one["spec"]["containers"][0]["resources"]["limits"] = {resource: str(amount)}
    return one


class DynamicMig(Suite):
    COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")

    def setUp(self) -> None:
        super().setUp()
        self.berth = Berth(self.scratch, self.cluster.berth_kubeconfig, config={"verdictInterval": "200ms"})
        self.addCleanup(self.berth.kill)

    def tearDown(self) -> None:
        super().tearDown()
        self.assertTrue(self.berth.running())
        self.assertEqual([one for one in self.berth.entries() if one["level"] == "error"], [])

    # -- short forms

    def gpu_node(self, devices: list[dict] | None = None, **labels: str) -> None:
        self.node(1, prefix="dgx-", gpus=2, labels={**ALLOWED, **labels})
        if devices is not None:
            self.tell(devices)

    def read(self) -> dict:
        return self.api.call("GET", "/api/v1/nodes/dgx-0")

    def change(self, **metadata) -> None:
        self.patch("/api/v1/nodes/dgx-0", {"metadata": metadata})

    def tell(self, devices: list[dict]) -> None:
        """The agent's word: {"pods": [...]} for a whole device, {"cut": {start: profile}} for one with instances."""
        out = []
        for number, one in enumerate(devices):
            device = {"uuid": f"GPU-{number}", "pods": one.get("pods", [])}
            if "cut" in one:
                device["mig"] = {"enabled": True, "instances": [
                    {"uuid": f"MIG-{number}-{start}", "profile": profile, "start": start}
                    for start, profile in one["cut"].items()]}  # fmt: skip
            out.append(device)
        self.change(annotations={DEVICES: json.dumps({"version": "v1", "devices": out})})

    def advertise(self, **now: str | None) -> None:
        """What kubelet counts then. The judge knows one state of each node: here all that it ever had."""
        amounts = {f"nvidia.com/{name.replace('_', '-', 1).replace('_', '.')}": amount for name, amount in now.items()}
        self.patch("/api/v1/nodes/dgx-0/status", {"status": {"capacity": amounts, "allocatable": amounts}})
        had = self.nodes["dgx-0"]["status"]["allocatable"]
        for name, amount in amounts.items():
            had[name] = str(max(int(had.get(name, "0")), int(amount or "0")))

    def desired(self, state: str) -> dict:
        def found() -> dict | None:
            text = self.read()["metadata"].get("annotations", {}).get(DESIRED)
            return json.loads(text) if text and json.loads(text)["state"] == state else None

        return wait_until(lambda: f"the node says '{state}': {self.read()['metadata'].get('annotations')}", found)

    def follow(self) -> dict:
        """Cuts the node as an agent would, and tells of it."""
        wanted = self.desired("wanted")
        self.tell([{"cut": {i["start"]: i["profile"] for i in one["mig"]["instances"]}} if one["mig"]["enabled"] else {}
                   for one in wanted["devices"]])  # fmt: skip
        every = {GPU: None, SMALL: None, LARGE: None}
        amounts = {**every, **{name: str(amount) for name, amount in wanted["resources"].items()}}
        self.advertise(**{name.removeprefix("nvidia.com/").replace("-", "_").replace(".", "_"): amount
                          for name, amount in amounts.items()})  # fmt: skip
        return wanted

    def node_event(self, reason: str, part: str = "") -> dict:
        """The event of this test's node; nodes of other tests had its name, and another UID."""
        uid = self.read()["metadata"]["uid"]
        return wait_until(f"an event {reason} with '{part}'", lambda: next((
            one for one in self.events_of("dgx-0", reason)
            if one["regarding"].get("uid") == uid and part in one["note"]), None))  # fmt: skip

    # -- tests

    def test_a_slice_that_waits_gets_its_node_cut(self) -> None:
        self.gpu_node([{}, {}])
        self.berth.start()
        self.create(asks("slice", SMALL))
        wanted = self.desired("wanted")
        self.assertEqual(wanted["version"], "v1")
        self.assertEqual([one["uuid"] for one in wanted["devices"]], ["GPU-0", "GPU-1"])
        self.assertEqual(sum(one["mig"]["enabled"] for one in wanted["devices"]), 1, "one of the two suffices")
        self.assertEqual(wanted["resources"][GPU], 1)
        self.assertNotIn("config", wanted)
        self.assertNotIn(CONFIG, self.read()["metadata"]["labels"])
        self.message_of_nodes("slice", "1 node(s) were being repartitioned")
        self.create(pod("whole", gpus=1))
        self.message_of_nodes("whole", "1 node(s) were being repartitioned")
        self.follow()
        self.assertEqual(self.bound("slice"), "dgx-0")
        self.assertEqual(self.bound("whole"), "dgx-0")
        self.assertEqual(self.desired("arrived")["id"], wanted["id"])
        self.node_event("MigRepartitioning")
        self.node_event("MigRepartitioned")
        wait_until("it is counted", lambda: self.berth.metric('berth_mig_repartitions_total{result="arrived"}') == 1)
        wait_until("none is under way", lambda: self.berth.metric("berth_mig_nodes_repartitioning") == 0)

    def test_only_the_idle_device_is_cut(self) -> None:
        self.gpu_node([{}, {}])
        self.berth.start()
        self.create(pod("busy", gpus=1))
        self.bound("busy")
        self.create(asks("slice", LARGE))
        self.message_of_nodes("slice", f"1 Insufficient {LARGE}")
        self.settle()
        self.assertNotIn(DESIRED, self.read()["metadata"]["annotations"], "nobody says where the pod is")
        self.tell([{}, {"pods": ["default/busy"]}])
        wanted = self.desired("wanted")
        self.assertEqual([one["mig"]["enabled"] for one in wanted["devices"]], [True, False])
        self.tell([{"cut": {i["start"]: i["profile"] for i in wanted["devices"][0]["mig"]["instances"]}},
                   {"pods": ["default/busy"]}])  # fmt: skip
        self.advertise(gpu="1", mig_3g_20gb=str(wanted["resources"][LARGE]))
        self.assertEqual(self.bound("slice"), "dgx-0")
        self.desired("arrived")

    def test_who_leads_next_knows_of_the_change(self) -> None:
        self.gpu_node([{}, {}])
        self.berth.start()
        self.create(asks("slice", SMALL))
        before = self.desired("wanted")
        self.berth.kill()
        self.create(pod("whole", gpus=1))
        self.berth.start()
        self.message_of_nodes("whole", "1 node(s) were being repartitioned")
        self.assertEqual(self.desired("wanted"), before)
        self.follow()
        self.assertEqual(self.bound("slice"), "dgx-0")
        self.assertEqual(self.bound("whole"), "dgx-0")
        self.assertEqual(self.desired("arrived")["id"], before["id"])

    def test_an_agent_that_cannot_ends_the_change(self) -> None:
        self.gpu_node([{}, {}])
        self.berth.start()
        self.create(asks("slice", SMALL))
        wanted = self.desired("wanted")
        self.create(pod("whole", gpus=2))
        self.change(annotations={FAILED: f"{wanted['id']} the driver said no"})
        self.assertEqual(self.bound("whole"), "dgx-0")
        failed = self.desired("failed")
        self.assertEqual((failed["reason"], failed["failures"]), ("the driver said no", 1))
        self.node_event("MigRepartitionFailed", "the driver said no")
        self.berth.kill()
        self.delete("whole")
        self.berth.start()
        self.message_of_nodes("slice", f"1 Insufficient {SMALL}")
        self.settle()
        self.assertEqual(self.desired("failed")["id"], wanted["id"], "it is left alone for a while, also by the next")

    def test_a_change_that_is_overtaken_is_not_waited_for(self) -> None:
        self.gpu_node([{}, {}])
        self.berth.start()
        self.create(asks("slice", SMALL))
        wanted = self.desired("wanted")
        self.create(pod("whole", gpus=1))
        self.message_of_nodes("whole", "1 node(s) were being repartitioned")
        cut = next(number for number, one in enumerate(wanted["devices"]) if one["mig"]["enabled"])
        self.tell([{"pods": ["other/stranger"]} if number == cut else {} for number in range(2)])
        overtaken = self.desired("failed")
        why = f"GPU GPU-{cut} has come into use, by other/stranger"
        self.assertEqual((overtaken["id"], overtaken["reason"], overtaken["failures"]), (wanted["id"], why, 0))
        self.assertEqual(self.bound("whole"), "dgx-0")
        self.node_event("MigRepartitionFailed", why)

    def test_nvidias_mig_manager_is_given_a_configuration_of_its_own(self) -> None:
        self.gpu_node(**{CONFIG: "all-disabled", STATE: "success"})
        self.berth.start()
        self.create(*(asks(f"slice-{i}", SMALL) for i in range(2)))
        wanted = self.desired("wanted")
        self.assertEqual((wanted["config"], wanted["resources"]), ("all-1g.5gb", {SMALL: 14}))
        labels = self.read()["metadata"]["labels"]
        self.assertEqual(labels[CONFIG], "all-1g.5gb")
        self.assertNotIn(STATE, labels, "what it said of the configuration before")
        self.change(labels={STATE: "pending"})
        self.advertise(gpu="0")
        self.change(labels={STATE: "success"})
        self.advertise(gpu=None, mig_1g_5gb="14")
        self.assertEqual({self.bound(f"slice-{i}") for i in range(2)}, {"dgx-0"})
        self.desired("arrived")

    def test_a_configuration_that_fails_ends_the_change(self) -> None:
        self.gpu_node(**{CONFIG: "all-1g.5gb", STATE: "failed"})
        self.berth.start()
        self.create(asks("slice", SMALL))
        self.desired("wanted")
        wait_until("the label was taken away and is back", lambda: (
            self.read()["metadata"]["labels"].get(CONFIG) == "all-1g.5gb"
            and STATE not in self.read()["metadata"]["labels"]))  # fmt: skip
        self.create(pod("whole", gpus=2))
        self.message_of_nodes("whole", "1 node(s) were being repartitioned")
        self.change(labels={STATE: "failed"})
        self.assertEqual(self.bound("whole"), "dgx-0")
        self.node_event("MigRepartitionFailed", "could not apply all-1g.5gb")
        self.desired("failed")

    def test_what_an_admin_has_cut_is_waited_for(self) -> None:
        self.gpu_node(**{CONFIG: "all-1g.5gb", STATE: "pending"})
        self.berth.start()
        self.create(asks("slice", SMALL), pod("whole", gpus=1))
        for name in ("slice", "whole"):
            self.message_of_nodes(name, "1 node(s) were being repartitioned")
        self.assertNotIn(DESIRED, self.read()["metadata"].get("annotations", {}), "Berth begins nothing meanwhile")
        self.advertise(gpu=None, mig_1g_5gb="14")
        self.change(labels={STATE: "success"})
        self.assertEqual(self.bound("slice"), "dgx-0")

    def test_where_nobody_cuts_the_node_says_so(self) -> None:
        self.gpu_node()
        self.berth.start()
        self.create(asks("slice", SMALL))
        self.message_of_nodes("slice", f"1 Insufficient {SMALL}")
        self.node_event("MigPolicyIgnored", "nobody is there who would cut")


if __name__ == "__main__":
    main()
