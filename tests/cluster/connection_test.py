#!/usr/bin/env python3
"""`berth scheduler` as a process: health, metrics, logs, credentials, and what it says when it cannot reach the server.

Ends with status 77 (skipped, for ctest) where the test servers or the program are not built.
"""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.daemon import Berth, berth_binary, free_port, token_of, wait_until, write_kubeconfig  # noqa: E402
from harness.objects import pod  # noqa: E402
from harness.proxy import FlakyProxy  # noqa: E402
from harness.suite import Suite, WithBerth, main  # noqa: E402

EXEC_VERSION = "client.authentication.k8s.io/v1"


class Operation(WithBerth):
    """Health, metrics and logs of a daemon that works."""

    REQUIRED = ("scheduler_pending_pods", "berth_scheduling_outcomes_total", "berth_pod_scheduling_duration_seconds_sum",
                "berth_binds_total", "berth_bind_duration_seconds_count", "berth_binds_outstanding",
                "berth_cycle_duration_seconds_bucket", "berth_status_patches_total", "berth_leader", "berth_gpus",
                "berth_nodes", "berth_events_total", "berth_watch_total")  # fmt: skip

    def test_metrics_parse_and_count_what_happened(self) -> None:
        self.node(1, gpus=2)
        self.create(pod("binds", gpus=1), pod("waits", gpus=4))
        self.bound("binds")
        self.waiting("waits")
        wait_until("gauges are up to date", lambda: self.berth.metric('berth_gpus{state="used"}') == 1)
        unschedulable = 'scheduler_pending_pods{queue="unschedulable"}'
        wait_until("all gauges are", lambda: self.berth.metric(unschedulable) == 1)
        samples = self.berth.metrics()
        for family in self.REQUIRED:
            self.assertTrue([name for name in samples if name.startswith(family)], family)
        self.assertEqual((samples["berth_nodes"], samples["berth_leader"]), (1, 1))
        self.assertGreaterEqual(samples['berth_binds_total{result="bound"}'], 1)

    def test_health_pages_answer(self) -> None:
        for path in ("/healthz", "/livez", "/readyz"):
            self.assertEqual(self.berth.get(path), (200, "ok (leader)\n"))
        self.assertEqual(self.berth.get("/no-such-page")[0], 404)

    def test_every_line_of_the_log_is_json_with_time_level_and_message(self) -> None:
        self.node(1)
        self.create(pod('logged', gpus=1))
        self.bound("logged")
        entries = self.berth.entries()
        self.assertTrue(entries)
        for one in entries:
            self.assertLessEqual({"ts", "level", "msg"}, set(one))

    def test_sigterm_ends_it_with_status_0(self) -> None:
        other = Berth(self.scratch, self.cluster.berth_kubeconfig, config={"schedulerNames": ["nobody"]}).start()
        self.addCleanup(other.kill)
        self.assertEqual(other.terminate(), 0)
        self.assertEqual(other.entries()[-1]["msg"], "stopped")


class Connection(Suite):
    """Ways to reach the server and to prove who one is, and what is said while they fail."""

    def setUp(self) -> None:
        super().setUp()
        self.node(1)
        self.token = token_of(self.cluster.berth_kubeconfig)
        self.ca = self.cluster.layout.pki / "ca.crt"

    def kubeconfig(self, user: dict, *, server: str = "", ca: Path | None = None) -> Path:
        path = self.scratch / f"{self.id().rpartition('.')[2]}.kubeconfig"
        return write_kubeconfig(path, server or self.cluster.server_url, user, ca or self.ca)

    def berth(self, kubeconfig: Path, **how) -> Berth:
        berth = Berth(self.scratch, kubeconfig, **how)
        self.addCleanup(berth.kill)
        return berth

    def assert_it_binds(self, berth: Berth) -> None:
        self.assertTrue(berth.running())
        self.create(pod("binds", gpus=1))
        self.bound("binds")

    def assert_says_it_in_one_line_and_tries_on(self, berth: Berth, pattern: str) -> None:
        said = wait_until("the trouble is said", lambda: berth.said("trying again"))
        time.sleep(4)
        lines = berth.said("trying again")
        self.assertTrue(berth.running())
        self.assertLessEqual(len(lines), 2, "the same trouble is not said again and again")
        self.assertRegex(said[0]["error"], pattern)
        self.assertNotIn("\n", said[0]["error"])
        self.assertNotIn(self.token, berth.log_file.read_text())
        self.assertEqual(berth.get("/readyz")[0], 503)
        self.assertEqual(berth.get("/healthz")[0], 200)

    def test_a_client_certificate(self) -> None:
        self.assert_it_binds(self.berth(self.cluster.admin_kubeconfig).start())

    def test_a_client_certificate_in_files(self) -> None:
        pki = self.cluster.layout.pki
        user = {"client-certificate": str(pki / "admin.crt"), "client-key": str(pki / "admin.key")}
        self.assert_it_binds(self.berth(self.kubeconfig(user)).start())

    def write_plugin(self, script: str) -> None:
        plugin = self.scratch / "plugin.sh"
        plugin.write_text(f"#!/bin/sh\n{script}\n")
        plugin.chmod(0o755)

    def plugin_user(self, command: str) -> dict:
        return {"exec": {"apiVersion": EXEC_VERSION, "command": command, "interactiveMode": "Never"}}

    def prints_credential(self) -> str:
        status = {"token": self.token}
        return f"echo '{json.dumps({'apiVersion': EXEC_VERSION, 'kind': 'ExecCredential', 'status': status})}'"

    def test_an_exec_plugin(self) -> None:
        self.write_plugin(self.prints_credential())
        self.assert_it_binds(self.berth(self.kubeconfig(self.plugin_user(str(self.scratch / "plugin.sh")))).start())

    def test_a_token_file_is_read_again_after_its_token_was_refused(self) -> None:
        file = self.scratch / "token"
        file.write_text("not-a-token")
        berth = self.berth(self.kubeconfig({"tokenFile": str(file)})).start(ready=False)
        self.assert_says_it_in_one_line_and_tries_on(berth, "(?i)401|unauthorized")
        file.write_text(self.token)
        self.assert_it_binds(berth)

    def test_a_token_file_that_comes_later(self) -> None:
        file = self.scratch / "later"
        berth = self.berth(self.kubeconfig({"tokenFile": str(file)})).start(ready=False)
        self.assert_says_it_in_one_line_and_tries_on(berth, "later' cannot be read")
        file.write_text(self.token)
        self.assert_it_binds(berth)

    def test_an_exec_plugin_that_fails_at_first(self) -> None:
        self.write_plugin("exit 7")
        berth = self.berth(self.kubeconfig(self.plugin_user("./plugin.sh"))).start(ready=False)
        self.assert_says_it_in_one_line_and_tries_on(berth, "exit status 7")
        self.write_plugin(self.prints_credential())
        self.assert_it_binds(berth)

    def test_sigterm_ends_it_in_order_whatever_the_credentials(self) -> None:
        file = self.scratch / "token"
        file.write_text(self.token)
        self.write_plugin(self.prints_credential())
        for user in ({"tokenFile": str(file)}, self.plugin_user("./plugin.sh")):
            with self.subTest(user=next(iter(user))):
                berth = self.berth(self.kubeconfig(user)).start()
                self.assertEqual(berth.terminate(), 0)
                self.assertTrue(berth.said("stopped"))

    def test_a_wrong_token(self) -> None:
        berth = self.berth(self.kubeconfig({"token": "wrong"})).start(ready=False)
        self.assert_says_it_in_one_line_and_tries_on(berth, "(?i)401|unauthorized")

    def test_a_token_without_rights(self) -> None:
        self.account("without-rights")
        token = self.cluster.kubectl("create", "token", "without-rights", "-n", "berth-system")
        berth = self.berth(self.kubeconfig({"token": token.strip()})).start(ready=False)
        self.assert_says_it_in_one_line_and_tries_on(berth, "(?i)forbidden")

    def test_a_wrong_ca(self) -> None:
        other = self.scratch / "other-ca.crt"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                        "-nodes", "-days", "2", "-subj", "/CN=somebody", "-keyout", str(self.scratch / "other-ca.key"),
                        "-out", str(other)], check=True, capture_output=True)  # fmt: skip
        berth = self.berth(self.kubeconfig({"token": self.token}, ca=other)).start(ready=False)
        self.assert_says_it_in_one_line_and_tries_on(berth, "(?i)certificate")

    def test_an_unreachable_server_is_used_once_it_comes_up(self) -> None:
        port = free_port()
        user = {"token": self.token}
        berth = self.berth(self.kubeconfig(user, server=f"https://127.0.0.1:{port}")).start(ready=False)
        self.assert_says_it_in_one_line_and_tries_on(berth, "(?i)connect")
        with FlakyProxy(self.cluster.layout.ports["kube-apiserver"], port):
            self.assert_it_binds(berth)
            wait_until("it says that the server is back", lambda: berth.said("answers again"))
            berth.kill()

    def test_a_proxy_that_is_down_is_named(self) -> None:
        kubeconfig = self.kubeconfig({"token": self.token})
        document = json.loads(kubeconfig.read_text())
        document["clusters"][0]["cluster"]["proxy-url"] = "http://me:secret@127.0.0.1:1"
        kubeconfig.write_text(json.dumps(document))
        berth = self.berth(kubeconfig).start(ready=False)
        self.assert_says_it_in_one_line_and_tries_on(berth, "proxy http://127.0.0.1:1: no connection to the proxy")
        self.assertNotIn("secret", berth.log_file.read_text())

    def test_leader_election_without_the_right_to_the_lease_is_said_and_tried_again(self) -> None:
        config = {"leaderElection": {"leaderElect": True, "resourceName": "not-ours"}}
        berth = self.berth(self.cluster.berth_kubeconfig, config=config).start(ready=False)
        said = wait_until("the trouble is said", lambda: berth.said("trying again"))
        self.assertIn("forbidden", said[0]["error"])
        self.assertIn("deploy/rbac.yaml", said[0]["error"])
        self.assertTrue(berth.running())
        self.assertEqual(berth.get("/readyz")[0], 503)
        self.assertEqual(berth.get("/healthz")[0], 200)
        self.assertEqual(berth.terminate(), 0)
        self.assertTrue(berth.said("stopping"))
        self.assertFalse(berth.said("giving the lease back") or berth.said("could not be given back"))

    def test_a_standby_is_ready_while_it_can_read_the_lease(self) -> None:
        port = free_port()
        user = self.kubeconfig({"token": self.token}, server=f"https://127.0.0.1:{port}")
        times = {"leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "1s"}
        config = {"leaderElection": {"leaderElect": True, **times}, "clientConnection": {"bindTimeout": "1s"}}
        leader = self.berth(self.cluster.berth_kubeconfig, config=config).start()
        wait_until("it leads", lambda: leader.get("/readyz") == (200, "ok (leader)\n"))
        standby = self.berth(user, config=config).start(ready=False)
        wait_until("it asks for the lease", lambda: standby.said("trying again"))
        self.assertEqual(standby.get("/readyz")[0], 503)
        self.assertEqual(standby.get("/healthz")[0], 200)
        with FlakyProxy(self.cluster.layout.ports["kube-apiserver"], port):
            wait_until("it reads the lease", lambda: standby.get("/readyz") == (200, "ok (standby)\n"))
            self.assertTrue(standby.said("answers again"))
        wait_until("it could not take over", lambda: standby.get("/readyz")[0] == 503)

    def account(self, name: str) -> None:
        self.api.call("POST", "/api/v1/namespaces/berth-system/serviceaccounts", {"metadata": {"name": name}})


class Refused(unittest.TestCase):
    """What ends `berth scheduler` at once, with status 2 and a line that names the way out."""

    def run_with(self, config: str, *args: str) -> subprocess.CompletedProcess:
        with tempfile.TemporaryDirectory() as scratch:
            self.file = Path(scratch) / "berth.yaml"
            self.file.write_text(config)
            command = [str(berth_binary()), "scheduler", "--config", str(self.file), *args]
            return subprocess.run(command, capture_output=True, text=True, timeout=60)

    HEADER = "apiVersion: berth.dev/v1alpha1\nkind: BerthConfiguration\n"

    def test_an_unknown_field_is_named_with_file_and_line(self) -> None:
        done = self.run_with(self.HEADER + "schedulerName: berth\nlogging:\n  colour: red\n")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, f"{self.file}:3:.*schedulerName")
        self.assertRegex(done.stderr, f"{self.file}:5:.*colour")

    def test_http_beyond_loopback_needs_tls(self) -> None:
        done = self.run_with(self.HEADER + "http: {bindAddress: 0.0.0.0}\n")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, "0.0.0.0.*tlsCertFile")

    def test_a_kubeconfig_that_is_not_there(self) -> None:
        done = self.run_with(self.HEADER, "--kubeconfig", "/no/such/file")
        self.assertEqual(done.returncode, 2)
        self.assertIn("/no/such/file", done.stderr)

    def test_an_empty_kubeconfig_is_not_called_unreadable(self) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            empty = Path(scratch) / "empty"
            empty.touch()
            done = self.run_with(self.HEADER, "--kubeconfig", str(empty))
            self.assertEqual(done.returncode, 2)
            self.assertNotIn("cannot be read", done.stderr)
            self.assertIn("context", done.stderr)

    def test_tls_files_that_are_not_there(self) -> None:
        done = self.run_with(self.HEADER + "http: {tlsCertFile: /no/such/crt, tlsPrivateKeyFile: /no/such/key}\n")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, "http.tlsCertFile: /no/such/crt.*\n.*http.tlsPrivateKeyFile: /no/such/key")

    def test_a_server_that_has_no_such_port_never_begins(self) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            kubeconfig = write_kubeconfig(Path(scratch) / "k", "https://127.0.0.1:99999", {"token": "t"})
            done = self.run_with(self.HEADER, "--kubeconfig", str(kubeconfig))
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, r"^error: .*/k:\d+: clusters\[0\].cluster.server: there is no port 99999;.*\n$")

    def test_sigterm_ends_it_while_a_credential_plugin_hangs_which_is_said(self) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            plugin, pid = Path(scratch) / "plugin.sh", Path(scratch) / "pid"
            plugin.write_text(f"#!/bin/sh\necho $$ > {pid}.part && mv {pid}.part {pid}\nsleep 600\n")
            plugin.chmod(0o755)
            exec_ = {"apiVersion": EXEC_VERSION, "command": str(plugin),
                     "interactiveMode": "Never"}  # fmt: skip
            kubeconfig = write_kubeconfig(Path(scratch) / "k", "https://127.0.0.1:1", {"exec": exec_})
            command = [str(berth_binary()), "scheduler", "--kubeconfig", str(kubeconfig), "--port", "0"]
            log = Path(scratch) / "log"
            with log.open("w") as stderr, subprocess.Popen(command, stderr=stderr) as berth:
                self.addCleanup(berth.kill)
                wait_until("the plugin runs", pid.exists)
                wait_until("it says what it waits for", lambda: "waiting for the credential plugin" in log.read_text())
                self.assertIn(str(plugin), log.read_text())
                berth.terminate()
                self.assertEqual(berth.wait(timeout=20), 0)
            child = int(pid.read_text())
            wait_until("the plugin has ended", lambda: not Path(f"/proc/{child}/cmdline").exists()
                       or not Path(f"/proc/{child}/cmdline").read_bytes())  # fmt: skip

    def test_a_port_that_is_taken(self) -> None:
        with FlakyProxy(1) as taken, tempfile.TemporaryDirectory() as scratch:
            kubeconfig = write_kubeconfig(Path(scratch) / "k", "https://127.0.0.1:1", {"token": "t"})
            done = self.run_with(self.HEADER, "--kubeconfig", str(kubeconfig), "--port", str(taken.port))
            self.assertIn(done.returncode, (1, 2))
            self.assertIn(str(taken.port), done.stderr)


class MetricsBeyondLoopback(Suite):
    def test_metrics_need_a_token_with_the_right_to_read_them(self) -> None:
        pki = self.cluster.layout.pki
        config = {"http": {"bindAddress": "0.0.0.0", "tlsCertFile": str(pki / "apiserver.crt"),
                           "tlsPrivateKeyFile": str(pki / "apiserver.key")}}  # fmt: skip
        berth = Berth(self.scratch, self.cluster.berth_kubeconfig, config=config).start(ready=False)
        self.addCleanup(berth.kill)
        tls = ssl.create_default_context(cafile=str(pki / "ca.crt"))

        def get(path: str, token: str | None = None) -> int:
            connection = http.client.HTTPSConnection("127.0.0.1", int(berth.address.rpartition(":")[2]), context=tls)
            try:
                connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
                return connection.getresponse().status
            finally:
                connection.close()

        account = "/api/v1/namespaces/berth-system/serviceaccounts"
        for name in ("reader", "stranger"):
            self.api.call("POST", account, {"metadata": {"name": name}})
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        self.api.call("POST", f"{rbac}/clusterroles", {
            "metadata": {"name": "metrics"}, "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]})  # fmt: skip
        self.api.call("POST", f"{rbac}/clusterrolebindings", {
            "metadata": {"name": "metrics"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "metrics"},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "berth-system"}]})  # fmt: skip
        tokens = {name: self.cluster.kubectl("create", "token", name, "-n", "berth-system").strip()
                  for name in ("reader", "stranger")}  # fmt: skip
        self.assertEqual(get("/healthz"), 200)
        self.assertEqual(get("/metrics"), 401)
        self.assertEqual(get("/metrics", "nonsense"), 401)
        self.assertEqual(get("/metrics", tokens["stranger"]), 403)
        wait_until("the role is known", lambda: get("/metrics", tokens["reader"]) == 200, 30, 1)


if __name__ == "__main__":
    main()
