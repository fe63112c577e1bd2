"""A small client of the test API server for what would be slow or clumsy through kubectl."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from pathlib import Path


class ApiError(Exception):
    """An answer of the API server outside 2xx: its HTTP status and the Status object's reason and message."""

    def __init__(self, method: str, path: str, status: int, text: str):
        try:
            body = json.loads(text)
            self.reason, detail = body.get("reason", ""), body.get("message", "")
        except (ValueError, AttributeError):
            self.reason, detail = "", text
        self.status = status
        super().__init__(f"{method} {path}: {status} {self.reason}: {detail}")


class ApiClient:
    """Requests as the cluster's admin, one kept-alive connection per thread."""

    def __init__(self, port: int, pki: Path):
        self._port = port
        self._tls = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self._tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        self._local = threading.local()
        self._open: set[http.client.HTTPSConnection] = set()

    def close(self) -> None:
        """Closes every thread's connection; a later request opens one again."""
        self._local = threading.local()
        while self._open:
            self._open.pop().close()

    def raw(self, method: str, path: str, body: bytes | None = None, headers: dict | None = None) -> tuple[int, str]:
        """One request; (status, text). A connection that the server has closed meanwhile is opened anew, once."""
        for attempt in (0, 1):
            kept: http.client.HTTPSConnection | None = getattr(self._local, "connection", None)
            connection = kept
            if connection is None:
                connection = http.client.HTTPSConnection("127.0.0.1", self._port, context=self._tls, timeout=30)
                self._local.connection = connection
                self._open.add(connection)
            try:
                connection.request(method, path, body=body, headers=headers or {})
                answer = connection.getresponse()
                return answer.status, answer.read().decode(errors="replace")
            except (OSError, http.client.HTTPException):
                connection.close()
                self._open.discard(connection)
                self._local.connection = None
                if kept is None or attempt == 1:
                    raise
        raise AssertionError("unreachable")

    def call(self, method: str, path: str, body: object = None, *, content_type: str = "application/json") -> dict:
        """One request with a JSON body; the decoded answer, or ApiError."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json", "Content-Type": content_type}
        status, text = self.raw(method, path, data, headers)
        if not 200 <= status < 300:
            raise ApiError(method, path, status, text)
        return json.loads(text)
