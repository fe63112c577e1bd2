"""The nine kinds, and how v1beta1 differs from v1beta2."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field

from . import queues, workloads
from .schema import items, name, number, object, rule, strings, taints, text, time, words  # noqa: A004

GROUP = "kueue.x-k8s.io"
STORED, OLDER = "v1beta2", "v1beta1"
_IN_RULES = {"priorityClassRef": "priorityClassName"}  # what v1beta1 calls a member that rules of whole objects name


@dataclass(frozen=True)
class Column:
    name: str
    path: str
    type: str = "integer"
    description: str = ""
    wide: bool = False  # only with -o wide


@dataclass(frozen=True)
class Kind:
    kind: str
    plural: str
    spec: Callable[[], dict] | None = None
    members: Callable[[], dict] | None = None  # instead of a spec
    status: Callable[[], dict] | None = None
    rules: tuple = ()
    short: tuple[str, ...] = ()
    namespaced: bool = False
    columns: tuple[Column, ...] = ()
    older: Callable[[dict], None] | None = None  # turns the schema of v1beta2 into that of v1beta1
    older_columns: tuple[Column, ...] = field(default=())

    @property
    def singular(self) -> str:
        return self.kind.lower()

    def schema(self, version: str) -> dict:
        properties: dict = {"apiVersion": text(), "kind": text(), "metadata": {"type": "object"}}
        required = []
        if self.spec is not None:
            properties["spec"] = self.spec()
            required = ["spec"] if "required" in properties["spec"] else []
        if self.members is not None:
            properties |= self.members()
            required = ["value"]
        if self.status is not None:
            properties["status"] = self.status()
        out = copy.deepcopy(object(properties, *required, rules=self.rules))
        if version == OLDER and self.older is not None:
            self.older(out["properties"])
            for one in out.get("x-kubernetes-validations", []):
                for field_name, older in _IN_RULES.items():
                    one["rule"], one["message"] = (one[key].replace(field_name, older) for key in ("rule", "message"))
        return out


def rename(of: dict, old: str, new: str) -> None:
    """Renames a member in its place."""
    renamed = {new if key == old else key: value for key, value in of.items()}
    of.clear()
    of.update(renamed)


def _older_flavor(properties: dict) -> None:
    del properties["spec"]["properties"]["resourceWeights"]


def _older_cluster_queue(properties: dict) -> None:
    spec = properties["spec"]["properties"]
    rename(spec, "cohortName", "cohort")
    spec["admissionChecks"] = items(text(316, 1), 64)
    spec["admissionChecksStrategy"]["properties"]["admissionChecks"].pop("minItems")
    del spec["concurrentAdmissionPolicy"]
    fungibility = spec["flavorFungibility"]
    fungibility["properties"]["whenCanBorrow"]["enum"].append("Borrow")
    fungibility["properties"]["whenCanPreempt"]["enum"].append("Preempt")
    del fungibility["properties"]["preference"], fungibility["x-kubernetes-validations"]
    properties["spec"]["x-kubernetes-validations"] = [
        queues.limits_need("cohort", "a cohort"),
        rule("!has(self.admissionChecks) || size(self.admissionChecks) == 0 || !has(self.admissionChecksStrategy)",
             "either admissionChecks or admissionChecksStrategy"),
    ]  # fmt: skip
    waiting = object({"name": text(), "namespace": text()}, "name", "namespace")
    properties["status"]["properties"]["pendingWorkloadsStatus"] = object(
        {"clusterQueuePendingWorkload": items(waiting), "lastChangeTime": time()}, "lastChangeTime")  # fmt: skip


def _older_cohort(properties: dict) -> None:
    spec = properties["spec"]
    spec["properties"]["parent"] = {**name(), "description": "An earlier name of parentName."}
    spec["x-kubernetes-validations"] = [
        queues.limits_need("parentName", "a parentName"),
        rule("!has(self.parent) || !has(self.parentName)", "either parent or parentName"),
    ]
    limits = spec["x-kubernetes-validations"][0]
    limits["rule"] = "has(self.parent) || " + limits["rule"]


def _older_local_queue(properties: dict) -> None:
    status = properties["status"]["properties"]
    rename(status, "flavorsUsage", "flavorUsage")
    topology = object({"name": name(), "levels": items(text(317), 16, 1)}, "name", "levels")
    flavor = object({"name": name(), "resources": items(text(), 64, kind="set"), "nodeLabels": strings(8),
                     "nodeTaints": taints(), "topology": topology}, "name")  # fmt: skip
    status["flavors"] = items(flavor, 64, keys=("name",))


def _older_workload(properties: dict) -> None:
    spec = properties["spec"]
    members = spec["properties"]
    rename(members, "priorityClassRef", "priorityClassName")
    members["priorityClassName"] = name()
    members["priorityClassSource"] = words("kueue.x-k8s.io/workloadpriorityclass", "scheduling.k8s.io/priorityclass",
                                           "")  # fmt: skip
    spec["x-kubernetes-validations"] = [
        rule("!has(self.priorityClassName) || has(self.priority)",
             "a priorityClassName needs the priority that it means"),
    ]
    status = properties["status"]["properties"]
    rename(status, "accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds")  # sic
    domain = object({"values": items(text(63), 16, 1), "count": number(1)}, "values", "count")
    assignment = status["admission"]["properties"]["podSetAssignments"]["items"]["properties"]
    assignment["topologyAssignment"] = object({"levels": items(text(317), 16, 1), "domains": items(domain)},
                                              "levels", "domains")  # fmt: skip


def _older_check(properties: dict) -> None:
    properties["spec"]["properties"]["retryDelayMinutes"] = number(bits=64)


_PENDING = Column("Pending Workloads", ".status.pendingWorkloads", description="Workloads that wait")
_ADMITTED = Column("Admitted Workloads", ".status.admittedWorkloads", description="Workloads that may run")


def _condition(kind: str) -> Column:
    return Column(kind, f".status.conditions[?(@.type=='{kind}')].status", "string")


def _cluster_queue_columns(cohort: str) -> tuple[Column, ...]:
    return (Column("Cohort", f".spec.{cohort}", "string", "With whom it shares quota"),
            Column("Strategy", ".spec.queueingStrategy", "string", "Whether others may pass the first", wide=True),
            _PENDING,
            Column(_ADMITTED.name, _ADMITTED.path, description=_ADMITTED.description, wide=True))  # fmt: skip


KINDS = (
    Kind("ResourceFlavor", "resourceflavors", queues.resource_flavor, short=("flavor", "flavors", "rf"),
         older=_older_flavor),
    Kind("Topology", "topologies", queues.topology),
    Kind("ClusterQueue", "clusterqueues", queues.cluster_queue, status=queues.cluster_queue_status, short=("cq",),
         columns=_cluster_queue_columns("cohortName"), older_columns=_cluster_queue_columns("cohort"),
         older=_older_cluster_queue),
    Kind("Cohort", "cohorts", queues.cohort, status=queues.cohort_status, older=_older_cohort),
    Kind("LocalQueue", "localqueues", queues.local_queue, status=queues.local_queue_status,
         short=("queue", "queues", "lq"), namespaced=True, older=_older_local_queue,
         columns=(Column("ClusterQueue", ".spec.clusterQueue", "string", "Whose quota it uses"), _PENDING, _ADMITTED)),
    Kind("Workload", "workloads", workloads.workload, status=workloads.workload_status,
         rules=workloads.workload_rules(), short=("wl",), namespaced=True, older=_older_workload,
         columns=(Column("Queue", ".spec.queueName", "string", "The LocalQueue in which it waits"),
                  Column("Reserved in", ".status.admission.clusterQueue", "string", "Whose quota it has"),
                  _condition("Admitted"), _condition("Finished"),
                  Column("Age", ".metadata.creationTimestamp", "date"))),
    Kind("WorkloadPriorityClass", "workloadpriorityclasses", members=workloads.workload_priority_class,
         columns=(Column("Value", ".value", description="The priority"),)),
    Kind("AdmissionCheck", "admissionchecks", workloads.admission_check, status=workloads.admission_check_status,
         older=_older_check),
    Kind("ProvisioningRequestConfig", "provisioningrequestconfigs", workloads.provisioning_request_config),
)  # fmt: skip
