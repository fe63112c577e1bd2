"""FakeServer: an API server over plain HTTP that says whatever a test wants, above all what a real one never would.

    with FakeServer() as server:
        server.put("nodes", node)                       # listed, and sent to every open watch
        server.answers = lambda method, path: (200, {}, b"<html>") if "nodes" in path else None
"""

from __future__ import annotations

import contextlib
import json
import queue
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

KINDS = {"pods": "Pod", "nodes": "Node", "namespaces": "Namespace", "persistentvolumeclaims": "PersistentVolumeClaim",
         "persistentvolumes": "PersistentVolume", "storageclasses": "StorageClass", "csinodes": "CSINode",
         "csidrivers": "CSIDriver", "csistoragecapacities": "CSIStorageCapacity",
         "poddisruptionbudgets": "PodDisruptionBudget", "priorityclasses": "PriorityClass", "jobs": "Job",
         "limitranges": "LimitRange", "runtimeclasses": "RuntimeClass"}  # fmt: skip
QUEUE_KINDS = {"resourceflavors": "ResourceFlavor", "admissionchecks": "AdmissionCheck", "cohorts": "Cohort",
               "clusterqueues": "ClusterQueue", "localqueues": "LocalQueue", "workloads": "Workload",
               "workloadpriorityclasses": "WorkloadPriorityClass",
               "provisioningrequestconfigs": "ProvisioningRequestConfig"}  # fmt: skip
Answer = tuple[int, dict[str, str], bytes]


class Server(ThreadingHTTPServer):
    request_queue_size = 128  # all lists begin at once; a connection that is not taken waits for seconds


class FakeServer:
    """Keeps objects as they are put, unlooked at. Any thread may use it. `queues`: it has Kueue's definitions."""

    def __init__(self, *, queues: bool = False):
        self._kinds = KINDS | (QUEUE_KINDS if queues else {})
        self.answers: Callable[[str, str], Answer | None] = lambda _method, _path: None
        self.bindings: list[dict] = []  # bodies, of those that were taken
        self.requests: list[tuple[str, str]] = []  # (method, path)
        self.events: list[dict] = []
        self.patches: list[tuple[str, dict]] = []  # (path, body), of those that were taken
        self._lock = threading.RLock()
        self._version = 100
        self._objects: dict[str, dict[tuple, dict]] = {name: {} for name in self._kinds}
        self._watches: dict[str, list[queue.Queue]] = {name: [] for name in self._kinds}
        self._server = Server(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> FakeServer:
        self._thread.start()
        return self

    def __exit__(self, *_exception) -> None:
        self.end_watches()
        self._server.shutdown()
        self._server.server_close()

    def put(self, resource: str, one: dict) -> None:
        """Stores a copy with a new version and shows it to the watches."""
        with self._lock:
            self._version += 1
            one = json.loads(json.dumps(one))
            one["metadata"]["resourceVersion"] = str(self._version)
            key = (one["metadata"].get("namespace"), one["metadata"]["name"])
            kind = "MODIFIED" if key in self._objects[resource] else "ADDED"
            self._objects[resource][key] = one
        self.send(resource, json.dumps({"type": kind, "object": one}).encode())

    def remove(self, resource: str, name: str, namespace: str | None = "default") -> None:
        """Forgets the object and shows its end to the watches."""
        with self._lock:
            self._version += 1
            one = self._objects[resource].pop((namespace, name))
            one["metadata"]["resourceVersion"] = str(self._version)
        self.send(resource, json.dumps({"type": "DELETED", "object": one}).encode())

    def send(self, resource: str, line: bytes) -> None:
        """One line, as it is, to every watch of the resource."""
        with self._lock:
            for watch in self._watches[resource]:
                watch.put(line)

    def end_watches(self) -> None:
        with self._lock:
            for watches in self._watches.values():
                for watch in watches:
                    watch.put(None)

    def pod(self, name: str) -> dict:
        with self._lock:
            return self._objects["pods"]["default", name]

    # -- inside

    def _list(self, resource: str) -> bytes:
        with self._lock:
            body = {"kind": f"{self._kinds[resource]}List", "apiVersion": "v1", "metadata": {"resourceVersion": str(self._version)},
                    "items": list(self._objects[resource].values())}  # fmt: skip
        return json.dumps(body).encode()

    def _bind(self, name: str, body: dict) -> None:
        with self._lock:
            self.bindings.append(body)
            one = json.loads(json.dumps(self.pod(name)))
            one["spec"]["nodeName"] = body["target"]["name"]
        self.put("pods", one)

    def _handler(fake):  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_args) -> None:
                pass

            def _reply(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
                headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                path = urlsplit(self.path).path
                with fake._lock:
                    fake.requests.append((self.command, path))
                with contextlib.suppress(OSError):
                    if answer := fake.answers(self.command, self.path):
                        status, headers, text = answer
                        return self._reply(status, text, headers)
                    self._known(path, parse_qs(urlsplit(self.path).query), body)

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _serve  # noqa: N815

            def _known(self, path: str, query: dict, body: bytes) -> None:
                resource = path.rpartition("/")[2]
                own = ("/apis/kueue.x-k8s.io/", "/apis/autoscaling.x-k8s.io/")
                if path.startswith(own) and path.split("/")[4] not in fake._kinds:  # as a real one says it without these definitions
                    return self._reply(404, b"404 page not found\n", {"Content-Type": "text/plain"})
                if self.command == "GET" and resource in fake._kinds:
                    since = int(query.get("resourceVersion", ["0"])[0])
                    return self._watch(resource, since) if "watch" in query else self._reply(200, fake._list(resource))
                if self.command == "POST" and (match := re.search(r"/pods/([^/]+)/binding$", path)):
                    fake._bind(match[1], json.loads(body))
                    return self._reply(201, b'{"kind":"Status","status":"Success"}')
                if self.command == "GET" and (match := re.search(r"/pods/([^/]+)$", path)):
                    return self._reply(200, json.dumps(fake.pod(match[1])).encode())
                if self.command == "PATCH":
                    fake.patches.append((path, json.loads(body)))
                    return self._reply(200, b"{}")
                if self.command == "POST" and resource == "events":
                    fake.events.append(json.loads(body))
                    return self._reply(201, body)
                return self._reply(200, b"{}")

            def _watch(self, resource: str, since: int) -> None:
                lines: queue.Queue = queue.Queue()
                with fake._lock:
                    missed = [one for one in fake._objects[resource].values()
                              if int(one["metadata"]["resourceVersion"]) > since]  # fmt: skip
                    for one in sorted(missed, key=lambda one: int(one["metadata"]["resourceVersion"])):
                        lines.put(json.dumps({"type": "MODIFIED", "object": one}).encode())
                    fake._watches[resource].append(lines)
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                try:
                    while (line := lines.get()) is not None:
                        self.wfile.write(b"%x\r\n%s\n\r\n" % (len(line) + 1, line))
                    self.wfile.write(b"0\r\n\r\n")
                finally:
                    with fake._lock:
                        fake._watches[resource].remove(lines)

        return Handler
