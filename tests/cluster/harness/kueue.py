"""Small objects of Kueue's API, and deploy/crds in a test cluster."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

from cluster import Cluster

from . import TOOLS
from .daemon import wait_until

ROOT = TOOLS.parent
GROUP = "kueue.x-k8s.io"
NEW, OLD = f"{GROUP}/v1beta2", f"{GROUP}/v1beta1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GPU = "nvidia.com/gpu"


def install(cluster: Cluster, folder: str) -> list[str]:
    """Applies deploy/crds/<folder> and returns the names of the definitions once all are served."""
    cluster.kubectl("apply", "--server-side", "-f", str(ROOT / "deploy" / "crds" / folder))
    names = [path.stem for path in sorted((ROOT / "deploy" / "crds" / folder).glob("*.yaml"))]
    for plural in names:
        wait_until(f"{plural} are established", lambda p=plural: established(cluster, p))
        wait_until(f"{plural} are served", lambda p=plural: p in resources(cluster))
    return names


def resources(cluster: Cluster) -> set[str]:
    status, text = cluster.api.raw("GET", f"/apis/{NEW}")
    return {one["name"] for one in json.loads(text)["resources"]} if status == 200 else set()


def established(cluster: Cluster, plural: str) -> bool:
    status = cluster.api.call("GET", f"{DEFINITIONS}/{plural}.{GROUP}")["status"]
    conditions = status.get("conditions") or []  # null for a moment
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


def convert_with(cluster: Cluster, plurals: list[str], url: str, ca: Path) -> None:
    """Lets the API server reach the webhook at `url`, where there are no services."""
    client = {"url": url, "caBundle": base64.b64encode(ca.read_bytes()).decode(), "service": None}
    patch = {"spec": {"conversion": {"webhook": {"clientConfig": client}}}}
    for plural in plurals:
        cluster.api.call("PATCH", f"{DEFINITIONS}/{plural}.{GROUP}", patch, content_type="application/merge-patch+json")


def make(kind: str, name: str, spec: dict | None = None, *, version: str = NEW, namespace: str = "", **members) -> dict:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    out = {"apiVersion": version, "kind": kind, "metadata": metadata, **members}
    return out if spec is None else {**out, "spec": spec}


def path_of(one: dict) -> str:
    """Where its collection is."""
    plural = {"Topology": "topologies", "WorkloadPriorityClass": "workloadpriorityclasses"}.get(
        one["kind"], one["kind"].lower() + "s")  # fmt: skip
    namespace = one["metadata"].get("namespace")
    return f"/apis/{one['apiVersion']}/" + (f"namespaces/{namespace}/" if namespace else "") + plural


def quota(name: str = GPU, nominal: object = 8, **limits) -> dict:
    return {"name": name, "nominalQuota": nominal, **limits}


def group(*flavors: dict, covers: tuple = (GPU,)) -> dict:
    return {"coveredResources": list(covers), "flavors": list(flavors)}


def flavor(name: str, *quotas: dict) -> dict:
    return {"name": name, "resources": list(quotas)}


def template(gpus: int = 1) -> dict:
    container = {"name": "main", "image": "none", "resources": {"requests": {GPU: str(gpus)}}}
    return {"spec": {"restartPolicy": "Never", "containers": [container]}}


def cases(folder: Path) -> dict[str, list[str]]:
    """The objects of recorded cases, each as YAML in one line, by the case's name."""
    out = {}
    for path in sorted((folder / "kueue" / "cases").glob("*.yaml")):
        found = re.findall(r"^ *- (\{apiVersion: kueue.*\})$", path.read_text(), re.MULTILINE)
        out[path.stem] = found
    return out
