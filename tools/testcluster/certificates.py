"""Certificates and kubeconfigs of one test cluster, made by the openssl program. They guard no real cluster."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

# Client certificate name -> subject; the API server reads the user from CN and the groups from O.
CLIENTS = {
    "admin": "/O=system:masters/CN=admin",
    "kube-controller-manager": "/CN=system:kube-controller-manager",
    "kube-scheduler": "/CN=system:kube-scheduler",
}
_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
_DAYS = "3650"


def _openssl(*args: str) -> None:
    done = subprocess.run(["openssl", *args], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {args[0]} failed: {done.stderr.strip()}")


def make_certificates(folder: Path) -> None:
    """Writes ca, apiserver, the clients' pairs and the service account key into `folder`, unless they are there."""
    done = folder / "complete"
    if done.exists():
        return
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    ca = ["-CA", str(folder / "ca.crt"), "-CAkey", str(folder / "ca.key")]

    def pair(name: str, subject: str, *extra: str) -> None:
        out = ["-keyout", str(folder / f"{name}.key"), "-out", str(folder / f"{name}.crt")]
        _openssl("req", "-x509", *_KEY, "-days", _DAYS, "-subj", subject, *out, *extra)

    pair("ca", "/CN=berth-test-ca", "-addext", "keyUsage=critical,keyCertSign,cRLSign")
    names = "DNS:localhost,DNS:kubernetes,DNS:kubernetes.default.svc,IP:127.0.0.1"
    leaf = ["-addext", "basicConstraints=critical,CA:FALSE"]
    pair("apiserver", "/CN=kube-apiserver", *ca, *leaf, "-addext", f"subjectAltName={names}",
         "-addext", "extendedKeyUsage=serverAuth")  # fmt: skip
    for name, subject in CLIENTS.items():
        pair(name, subject, *ca, *leaf, "-addext", "extendedKeyUsage=clientAuth")
    _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-out", str(folder / "sa.key"))
    _openssl("pkey", "-in", str(folder / "sa.key"), "-pubout", "-out", str(folder / "sa.pub"))
    done.touch()


def _embedded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def write_kubeconfig(path: Path, *, server: str, pki: Path, user: str, token: str | None = None) -> None:
    """Writes a kubeconfig that stands alone: `user`'s client certificate, or `token` where one is given."""
    if token is None:
        certificate, key = _embedded(pki / f"{user}.crt"), _embedded(pki / f"{user}.key")
        credentials = f"client-certificate-data: {certificate}\n    client-key-data: {key}"
    else:
        credentials = f"token: {token}"
    text = f"""apiVersion: v1
kind: Config
current-context: berth-test
contexts:
- name: berth-test
  context: {{cluster: berth-test, user: {user}}}
clusters:
- name: berth-test
  cluster:
    server: {server}
    certificate-authority-data: {_embedded(pki / "ca.crt")}
users:
- name: {user}
  user:
    {credentials}
"""
    path.touch(mode=0o600)
    path.write_text(text)
