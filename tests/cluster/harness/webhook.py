"""Webhook: one `berth webhook` process, which dies with this program, and its certificates."""

from __future__ import annotations

import base64
import http.client
import json
import re
import signal
import socket
import ssl
import subprocess
from pathlib import Path

from cluster import Cluster

from .daemon import berth_binary, free_port, wait_until
from .kueue import ROOT

HOOKS = "/apis/admissionregistration.k8s.io/v1"
KINDS = {"MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
         "ValidatingWebhookConfiguration": "validatingwebhookconfigurations"}  # fmt: skip


def make_certificate(folder: Path) -> None:
    """A new self-signed pair for 127.0.0.1 in `folder`: tls.crt and tls.key."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30"]
    name = ["-subj", "/CN=berth-webhook", "-addext", "subjectAltName=IP:127.0.0.1"]
    out = ["-keyout", str(folder / "new.key"), "-out", str(folder / "new.crt")]
    subprocess.run(["openssl", "req", "-x509", *key, *name, *out], check=True, capture_output=True)
    for kind in ("key", "crt"):
        (folder / f"new.{kind}").replace(folder / f"tls.{kind}")


class Webhook:
    def __init__(self, folder: Path, *args: str):
        self.folder = folder
        self.port = free_port()
        self.log_file = folder / "webhook.log"
        self._args = args
        self._watch: tuple[str, ...] = ()
        self._process: subprocess.Popen | None = None
        make_certificate(folder)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def certificate(self) -> Path:
        return self.folder / "tls.crt"

    def start(self) -> Webhook:
        command = [str(berth_binary()), "webhook", "--cert-file", str(self.certificate), "--key-file",
                   str(self.folder / "tls.key"), "--address", "127.0.0.1", "--port", str(self.port),
                   "--log-format", "json", *self._args, *self._watch]  # fmt: skip
        with self.log_file.open("ab") as out:
            self._process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command], stdin=subprocess.DEVNULL,
                                             stdout=out, stderr=out)  # fmt: skip
        wait_until("the webhook is ready", lambda: self.get("/readyz")[0] == 200)
        return self

    def watch(self, kubeconfig: Path) -> Webhook:
        """From its next start on it watches the cluster."""
        self._watch = ("--watch", "--kubeconfig", str(kubeconfig))
        return self

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def ask_to_stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def status(self) -> int:
        return self._process.wait(timeout=60)

    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.certificate))

    def connect(self) -> ssl.SSLSocket:
        return self.context().wrap_socket(socket.create_connection(("127.0.0.1", self.port), timeout=30),
                                          server_hostname="127.0.0.1")  # fmt: skip

    def get(self, path: str) -> tuple[int, str]:
        return self.request("GET", path)

    def post(self, path: str, body: bytes) -> tuple[int, str]:
        return self.request("POST", path, body)

    def request(self, method: str, path: str, body: bytes | None = None) -> tuple[int, str]:
        """(status, text); (0, why) without an answer."""
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context(), timeout=30)
        try:
            connection.request(method, path, body=body)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            return 0, str(error)
        finally:
            connection.close()

    def metric(self, name: str) -> float:
        """The sum of all samples whose name and labels begin so."""
        lines = [line.rsplit(" ", 1) for line in self.get("/metrics")[1].splitlines() if not line.startswith("#")]
        return sum(float(value) for sample, value in lines if sample.startswith(name))

    def memory_peak_bytes(self) -> int:
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s*(\d+) kB", status).group(1)) * 1024

    def log(self) -> list[dict]:
        return [json.loads(line) for line in self.log_file.read_text().splitlines()]


def manifests(cluster: Cluster) -> list[dict]:
    """The objects of deploy/webhook.yaml."""
    text = cluster.kubectl("create", "--dry-run=client", "-o", "json", "-f", str(ROOT / "deploy" / "webhook.yaml"))
    found, decoder, at = [], json.JSONDecoder(), 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        one, at = decoder.raw_decode(text, at)
        found += one["items"] if one["kind"] == "List" else [one]
    return found


def register(cluster: Cluster, webhook: Webhook) -> None:
    """Makes the configurations of deploy/webhook.yaml, with an address in place of the service."""
    bundle = base64.b64encode(webhook.certificate.read_bytes()).decode()
    for one in manifests(cluster):
        if one["kind"] not in KINDS:
            continue
        for hook in one["webhooks"]:
            path = hook["clientConfig"].pop("service")["path"]
            hook["clientConfig"] = {"url": webhook.url + path, "caBundle": bundle}
        cluster.api.call("POST", f"{HOOKS}/{KINDS[one['kind']]}", one)
