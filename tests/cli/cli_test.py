#!/usr/bin/env python3
"""cli_test.py BERTH CASE [--update]: runs one case of the command line and exits 0 when it came out as expected.

CASE is the name of a function case_<name> below, or examples/<name>: then `berth simulate -f examples/<name> -o json` must
give the placements and the exit code of tests/cli/examples/<name>.json, which --update rewrites.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BERTH = sys.argv[1]

NODE = "{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {capacity: {cpu: 4, memory: 8Gi, pods: 10}}}"
POD = "{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {containers: [{name: c, image: i, resources: {%s}}]}}"
MIG_NODE = """{apiVersion: v1, kind: Node, metadata: {name: dgx, labels: {
  nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB, nvidia.com/gpu.count: "2"}}, status: {allocatable: {
  nvidia.com/gpu: 1, nvidia.com/mig-1g.5gb: 4, nvidia.com/mig-3g.20gb: 1, cpu: 48, memory: 512Gi, pods: 110}}}"""


# What no pod may make Berth exceed: far more than it needs, far less than a runaway takes.
MEMORY_MAX_KIB, CPU_MAX_S = 2 << 20, 60


def berth(*arguments: str, stdin: str = "", env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BERTH, *arguments], input=stdin, capture_output=True, text=True, cwd=ROOT, check=False,
                          env={**os.environ, **(env or {})},
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_MAX_S, CPU_MAX_S)))


def check(condition: bool, what: str, run: subprocess.CompletedProcess[str]) -> None:
    if not condition:
        sys.exit(f"{what}\nexit {run.returncode}\n--- stdout\n{run.stdout}--- stderr\n{run.stderr}")


def expect(run: subprocess.CompletedProcess[str], code: int, out: str = "", err: str = "") -> None:
    check(run.returncode == code, f"expected exit {code}", run)
    check(out in run.stdout, f"expected on standard output: {out}", run)
    check(err in run.stderr, f"expected on standard error: {err}", run)


def example(name: str, update: bool) -> None:
    run = berth("simulate", "-f", f"examples/{name}", "-o", "json")
    report = json.loads(run.stdout)
    actual = {"exit": run.returncode, "placements": {f"{p['namespace']}/{p['name']}": p["node"] for p in report["pods"]},
              "waiting": {f"{p['namespace']}/{p['name']}": p["message"] for p in report["pods"] if p["node"] is None}}
    path = ROOT / "tests" / "cli" / "examples" / f"{name}.json"
    if update:
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(actual, indent=2) + "\n")
    expected = json.loads(path.read_text())
    check(actual == expected, f"expected {json.dumps(expected, indent=2)}", run)


def case_exit_codes() -> None:
    fits, too_big = POD % ("a", "requests: {cpu: 1}"), POD % ("b", "requests: {cpu: 5}")
    expect(berth("simulate", "-f", "-", stdin=f"{NODE}\n---\n{fits}\n"), 0, "1 pod placed, 0 waiting")
    expect(berth("simulate", "-f", "-", stdin=f"{NODE}\n---\n{too_big}\n"), 3, "0/1 nodes are available: 1 Insufficient cpu.")
    expect(berth("simulate", "-f", "-", stdin="kind: [\n"), 2, err="error: stdin:")
    expect(berth("simulate", "-f", "/nonexistent.yaml"), 2, err="error: /nonexistent.yaml: cannot read the file")
    expect(berth("simulate", "-f", "-", stdin=""), 2, err="no objects in the input")


def case_every_problem_in_one_run() -> None:
    pods = [POD % ("a", "requests: {cpu: 1e400}"), POD % ("b", "requests: {cpu: -1}"), POD % ("c", "limits: {memory: 100E}"),
            "{apiVersion: v1, kind: Pod, metadata: {name: d}, spec: {nodeselector: {a: b}, containers: [{name: c, image: i}]}}",
            "{apiVersion: v9, kind: Pod, metadata: {name: e}, spec: {containers: [{name: c, image: i}]}}",
            "{apiVersion: v1, apiVersion: v1, kind: Pod, metadata: {name: f}, spec: {containers: [{name: c, image: i}]}}"]
    run = berth("simulate", "-f", "-", stdin="\n---\n".join(pods) + "\n")
    expect(run, 2, err="did you mean 'nodeSelector'?")
    check(run.stdout == "", "nothing on standard output", run)
    for line in (1, 3, 5, 7, 9, 11):
        check(f"error: stdin:{line}:" in run.stderr, f"expected a problem in line {line}", run)
    check(all(line.startswith("error: ") for line in run.stderr.splitlines()), "every line is an error", run)


def case_no_terminal_escapes_from_input() -> None:
    bad = "{apiVersion: v1, kind: Pod, metadata: {name: \"a\\e[31mb\"}, spec: {containers: [{name: c, image: i}]}}"
    run = berth("simulate", "-f", "-", stdin=f"{NODE}\n---\n{bad}\n")
    expect(run, 2)
    check("\x1b" not in run.stderr + run.stdout, "no escape reaches the terminal", run)
    for shown in (berth("simulate", "-f", "a\x1b[31m"), berth("why", "-f", "examples/demo", "\x1b[31m"), berth("\x1b[31m")):
        check("\x1b" not in shown.stderr + shown.stdout, "no escape reaches the terminal", shown)


def case_no_terminal_escapes_from_scenarios() -> None:
    scenario = Path(BERTH).with_name("berth-scenario")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "a\x1b[31m.yaml")
        for text in ("steps: 5\n", '{"\\e[31m": 5}\n', "steps: [{expect: {running: 1}}]\n"):
            file.write_text(text)
            for arguments in ([str(file)], ["--update", str(file)], [str(file) + "\x1b[31m"]):
                run = subprocess.run([scenario, "--shapes", "scenarios/shapes.yaml", *arguments], capture_output=True, text=True,
                                     cwd=ROOT, check=False)
                check(run.returncode in (0, 1) and "\x1b" not in run.stderr + run.stdout, "no escape reaches the terminal", run)
                check(r"a\x1b[31m.yaml" in run.stderr, "the file is named", run)


def case_the_byte_7f_of_json_is_data() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "annotations": {"a": "x\x7fy"}, "labels": {"b": "c\x7f"}},
           "spec": {"containers": [{"name": "c", "image": "i"}]}}
    text = f"{NODE}\n---\n%s\n"
    bad = berth("simulate", "-f", "-", stdin=text % json.dumps(pod, ensure_ascii=False))
    expect(bad, 2, err='Invalid value: "c\\x7f"')
    check("\x7f" not in bad.stderr, "no control character reaches the terminal", bad)
    del pod["metadata"]["labels"]
    expect(berth("simulate", "-f", "-", stdin=text % json.dumps(pod, ensure_ascii=False)), 0, "1 pod placed")


def begun_and_ended(arguments: list[str], enough: Callable[[str], bool]) -> subprocess.CompletedProcess[str]:
    """Runs until its standard error is enough, 30 s at most, and ends it with SIGTERM."""
    with tempfile.TemporaryFile("a+", encoding="utf-8") as stderr, subprocess.Popen(
            [BERTH, *arguments], stdout=subprocess.PIPE, stderr=stderr, text=True, cwd=ROOT) as process:  # fmt: skip
        def said() -> str:
            stderr.seek(0)
            return stderr.read()

        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and process.poll() is None and not enough(said()):
            time.sleep(0.05)
        process.terminate()
        stdout, _ = process.communicate(timeout=30)
        return subprocess.CompletedProcess(arguments, process.returncode, stdout, said())


def unquoted(log: str) -> str:
    """A log in text, which quotes values as JSON does, with the escapes of other messages."""
    return log.replace("\\u001b", "\\x1b")


def case_no_terminal_escapes_from_kubeconfigs() -> None:
    """What `berth scheduler` says of a kubeconfig, of its name or of a credential plugin has nothing raw of them."""
    v1 = "client.authentication.k8s.io/v1"

    def kubeconfig(*, context: str = "c", server: str = "http://127.0.0.1:1", user: dict | None = None) -> str:
        return json.dumps({"current-context": context, "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
                           "clusters": [{"name": "k", "cluster": {"server": server}}],
                           "users": [{"name": "u", "user": user or {"token": "t"}}]})

    def plugin(script: str, **fields: str) -> str:
        return kubeconfig(user={"exec": {"apiVersion": v1, "command": "/bin/sh", "args": ["-c", script], **fields}})

    printed = {"apiVersion": "\x1b[31mv2", "kind": "ExecCredential"}
    told = {
        kubeconfig(context="\x1b[31mX"): r"there is no context '\x1b[31mX'",
        kubeconfig(server="\x1b[31m"): r"clusters[0].cluster.server: '\x1b[31m' has no scheme",
        kubeconfig(user={"exec": {"apiVersion": "\x1b[31mv9", "command": "x"}}): r"apiVersion '\x1b[31mv9' is not served",
        "\x1b[31m: [": r"kube\x1b[31mconfig:1: control characters are not allowed (byte 0x1b)",
        "contexts: 5\n\"\\e[31m\": {a: 1, a: 1}": r"config:2: [\x1b[31m].a: given twice",
    }
    retried = {
        kubeconfig(user={"tokenFile": "/no\x1b[31m"}): r"tokenFile '/no\x1b[31m' cannot be read",
        plugin("", command="no\x1b[31m", installHint="get\x1b[31m\nit"): r"plugin 'no\x1b[31m': cannot be run",
        plugin("printf '\\033[31mboom\\n' >&2; exit 3"): "\\x1b[31mboom\n",
        plugin(f"echo '{json.dumps(printed)}'"): r"printed apiVersion '\x1b[31mv2'",
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kube\x1b[31mconfig")
        for text, shown in told.items():
            file.write_text(text)
            run = berth("scheduler", "--kubeconfig", str(file), "--port", "0")
            check(run.returncode == 2, "expected that it ends at once", run)
            check("\x1b" not in run.stderr + run.stdout, "no escape reaches the terminal", run)
            check(shown in run.stderr, f"expected on standard error: {shown}", run)
            check("\\\\x1b" not in run.stderr, "nothing is escaped twice", run)
        for text, shown in retried.items():
            file.write_text(text)
            run = begun_and_ended(["scheduler", "--kubeconfig", str(file), "--port", "0", "--log-format", "text"],
                                  lambda stderr, shown=shown: shown in unquoted(stderr))
            check(run.returncode == 0, "expected that it goes on trying, and ends when asked to", run)
            check("\x1b" not in run.stderr + run.stdout, "no escape reaches the terminal", run)
            check(shown in unquoted(run.stderr), f"expected on standard error: {shown}", run)
        config = Path(folder, "berth.yaml")
        config.write_text('apiVersion: berth.dev/v1alpha1\nkind: BerthConfiguration\nclientConnection: {kubeconfig: "/\\e[31m"}\n')
        missing = berth("scheduler", "--config", str(config), "--port", "0")
        expect(missing, 2, err=r"kubeconfig '/\x1b[31m' does not exist")
        for run in (missing, berth("config", "--config", str(config)), berth("scheduler", "--kubeconfig", "\x1b[31m"),
                    berth("scheduler", "--scheduler-name", "\x1b[31m")):
            check("\x1b" not in run.stderr + run.stdout and r"\x1b[31m" in run.stderr + run.stdout, "it is told printable", run)


def case_every_mistake_of_a_kubeconfig_in_one_run() -> None:
    """Each has a line with its place, none shows a secret, and the daemon does not begin."""
    text = ("current-context: c\ncontexts:\n- {name: c, context: {cluster: k, user: u}}\nclusters:\n- name: k\n  cluster:\n"
            "    server: https://h:99999\n    proxy-url: foo://me:secret@x\nusers:\n- name: u\n  user:\n    token: 12345\n    as: root\n")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "config")
        file.write_text(text)
        run = berth("scheduler", "--kubeconfig", str(file), "--port", "0")
        expect(run, 2)
        lines = [(":7: clusters[0].cluster.server: ", "99999"), (":8: clusters[0].cluster[proxy-url]: ", "http://, https:// or socks5://"),
                 (":12: users[0].user.token: ", "expected a string"), (":13: users[0].user.as: ", "is not served")]
        check(len(run.stderr.splitlines()) == len(lines), "one line for each mistake", run)
        for line, (place, what) in zip(run.stderr.splitlines(), lines):
            check(line.startswith(f"error: {file}{place}") and what in line, f"expected {place}: {what}", run)
        check("secret" not in run.stderr and "12345" not in run.stderr, "no secret is shown", run)
        file.write_text(text.replace("99999", "6443").replace("foo://me:secret@x", "''").replace("12345", "t").replace("as: root", ""))
        run = berth("scheduler", "--kubeconfig", str(file), "--port", "0", env={"HTTPS_PROXY": "foo://me:secret@x"})
        expect(run, 2, err="HTTPS_PROXY: no proxy has the scheme 'foo'")
        check("secret" not in run.stderr, "no secret is shown", run)


def case_json_shape() -> None:
    pod = POD % ("a", "requests: {cpu: 500m}")
    report = json.loads(berth("simulate", "-f", "-", "-o", "json", stdin=f"{NODE}\n---\n{pod}\n").stdout)
    assert report["apiVersion"] == "berth.dev/v1alpha1" and report["kind"] == "SimulationReport", report
    assert report["pods"] == [{"namespace": "default", "name": "a", "node": "n1", "reason": "Scheduled",
                               "message": "Successfully assigned default/a to n1", "submitted_s": 0, "started_s": 0,
                               "finished_s": None, "feasible": ["n1"], "feasible_count": 1, "nominated_node": None,
                               "evicted": [], "gpu_share": None, "gpu_device": None, "gpu_devices": [],
                               "gpu_uuids": [], "gpu_link": None, "gpu_limit": None, "forecast": None}], report["pods"]
    nodes = "\n---\n".join(NODE.replace("n1", f"n{i:03}") for i in range(120))
    many = json.loads(berth("simulate", "-f", "-", "-o", "json", stdin=f"{nodes}\n---\n{pod}\n").stdout)["pods"][0]
    assert many["feasible_count"] == 120 and many["feasible"] == [f"n{i:03}" for i in range(100)], many
    [node] = report["nodes"]
    assert node["name"] == "n1" and node["capacity"] == {"cpu": "4", "memory": "8Gi", "pods": "10"}, node
    assert node["use"] == {"cpu": "500m", "memory": "0", "pods": "1"} and node["device_mode"] is None, node
    assert node["share_limit"] is None, node
    assert report["repartitions"] == [] and report["workloads"] == [] and report["queues"] == [], report
    mig = NODE.replace("name: n1", 'name: n1, labels: {berth.dev/mig-policy: dynamic, nvidia.com/gpu.count: "1", '
                                   "nvidia.com/gpu.product: NVIDIA-H200}").replace("pods: ", "nvidia.com/gpu: 1, pods: ")
    slice_pod = POD % ("a", "limits: {nvidia.com/mig-3g.71gb: 1}")
    run = berth("simulate", "-f", "-", "-o", "json", stdin=f"{mig}\n---\n{slice_pod}\n")
    assert json.loads(run.stdout)["repartitions"] == [
        {"node": "n1", "begun_s": 0, "ended_s": 30, "given_up": False, "overtaken": None, "resources": {"nvidia.com/mig-3g.71gb": "2"}}], run
    expect(berth("simulate", "-f", "-", stdin=mig.replace("NVIDIA-H200", "Tesla-T4")), 0,
           err="note: stdin:1: Node n1: berth.dev/mig-policy: dynamic has no effect: the label nvidia.com/gpu.product names")


def case_what_keeps_a_pod_to_its_part_of_a_gpu() -> None:
    sliced = NODE.replace("name: n1", 'name: n1, labels: {nvidia.com/gpu.replicas: "4"}').replace("pods: ", "nvidia.com/gpu: 4, pods: ")
    cut = NODE.replace("n1", "n2").replace("pods: ", "nvidia.com/mig-1g.5gb: 1, pods: ")
    share = (POD % ("a", "")).replace("name: a", 'name: a, annotations: {berth.dev/gpu-fraction: "0.75"}')
    pods = [share, POD % ("b", "limits: {nvidia.com/mig-1g.5gb: 1}"), POD % ("c", "limits: {cpu: 1}"), share.replace("name: a", "name: d")]
    manifests = "\n---\n".join([sliced, cut, *pods]) + "\n"
    run = berth("simulate", "-f", "-", "-o", "json", stdin=manifests)
    report = json.loads(run.stdout)
    limits = {pod["name"]: pod["gpu_limit"] for pod in report["pods"]}
    check(limits == {"a": "not enforced: time-slicing", "b": "enforced: MIG", "c": None, "d": None}, "expected limits", run)
    check(report["pods"][0]["message"] == "Successfully assigned default/a to n1; GPU limit not enforced: time-slicing",
          "expected the limit in the message", run)
    nodes = [(node["device_mode"], node["share_limit"]) for node in report["nodes"]]
    check(nodes == [("counts", "not enforced: time-slicing"), ("counts", None)], "expected limits of nodes", run)
    expect(berth("simulate", "-f", "-", "-o", "wide", stdin=manifests), 3, "GPU LIMIT\n")
    expect(berth("why", "-f", "-", "d", stdin=manifests), 0, "  GPU limit not enforced: time-slicing\n")
    expect(berth("why", "-f", "-", "a", stdin=manifests), 0, "GPU limit not enforced: time-slicing\n")
    bound = manifests.replace("spec: {containers", "spec: {nodeName: n1, containers", 1)
    expect(berth("why", "-f", "-", "a", stdin=bound), 0, "spec.nodeName names n1; GPU limit not enforced: time-slicing\n")


def case_queues() -> None:
    kueue = "apiVersion: kueue.x-k8s.io/v1beta2, kind"
    group = "{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: 2}]}]}"
    objects = [NODE, f"{{{kueue}: ResourceFlavor, metadata: {{name: f}}, spec: {{}}}}",
               f"{{{kueue}: ClusterQueue, metadata: {{name: team}}, spec: {{namespaceSelector: {{}}, resourceGroups: [{group}]}}}}",
               f"{{{kueue}: LocalQueue, metadata: {{name: q}}, spec: {{clusterQueue: team}}}}"]
    for name, cpu in (("a", 1), ("b", 2)):
        pods = "{restartPolicy: Never, containers: [{name: c, image: x, resources: {requests: {cpu: %d}}}]}" % cpu
        objects.append(f"{{apiVersion: batch/v1, kind: Job, metadata: {{name: {name}, labels: {{kueue.x-k8s.io/queue-name: q}}}}, "
                       f"spec: {{template: {{spec: {pods}}}}}}}")
    text = "\n---\n".join(objects)
    why = "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor f, 1 more needed"
    run = berth("simulate", "-f", "-", "-o", "json", stdin=text)
    report = json.loads(run.stdout)
    first, second = report["workloads"]
    assert first == {"kind": "Job", "namespace": "default", "name": "a", "queue": "q", "cluster_queue": "team", "priority": 0, "state": "Admitted",
                     "reason": "", "message": "", "pod_sets": [{"name": "main", "count": 1, "flavors": {"cpu": "f"}}], "submitted_s": first["submitted_s"],
                     "admitted_s": 0, "finished_s": None, "evictions": 0, "evicted_for": "", "waits_for": None, "on_nodes": [], "forecast": None}, first
    assert (run.returncode, second["state"], second["reason"], second["message"]) == (3, "Pending", "WaitingForQuota", why), second
    assert second["waits_for"] == {"position": 1, "waiting": 1, "fits_now": [{"pod_set": "main", "pods": 0, "of": 1}], "quota": [
        {"flavor": "f", "resource": "cpu", "asked": "2", "nominal": "2", "used": "1", "may_borrow": "0", "available": "1",
         "short_by": "1", "most": "2", "holders": [{"workload": "Job default/a", "cluster_queue": "team", "amount": "1"}]}]}, second
    other = text + "\n---\n" + POD.replace("spec: {", "spec: {nodeName: n1, ") % ("other", "requests: {cpu: 3500m}")
    for manifests, said in ((text, "1 of 1 in ClusterQueue team"), (text, "there is quota now for 0 of 1 pods of main"),
                            (other, "cpu of its nodes is held by default/other on n1 (3500m)"), (text.replace("cpu: 2}", "cpu: 3}"), "can ever have, which is 2")):
        expect(berth("why", "-f", "-", "job/b", stdin=manifests), 0, said)
    assert report["queues"] == [{"name": "team", "cohort": None, "inactive": None, "pending": 1, "admitted": 1, "held": [
        {"flavor": "f", "resource": "cpu", "nominal": "2", "used": "1", "borrowed": "0"}]}], report["queues"]
    expect(berth("simulate", "-f", "-", stdin=text), 3, f"Job default/b waits\n  {why}")


def case_quotas() -> None:
    quota = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {requests.cpu: 1, count/jobs.batch: 0}}}"
    job = "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}}"
    text = "\n---\n".join([NODE, *(POD % (name, "requests: {cpu: 1}") for name in "ab"), job, quota])
    why = 'pods "b" is forbidden: exceeded quota: q, requested: requests.cpu=1, used: requests.cpu=1, limited: requests.cpu=1'
    job_why = 'jobs.batch "j" is forbidden: exceeded quota: q, requested: count/jobs.batch=1, used: count/jobs.batch=0, limited: count/jobs.batch=0'
    report = json.loads(berth("simulate", "-f", "-", "-o", "json", stdin=text).stdout)
    assert [(pod["reason"], pod["node"]) for pod in report["pods"]] == [("Scheduled", "n1"), ("Forbidden", None)], report
    assert report["refused"] == [{"kind": "Job", "namespace": "default", "name": "j", "message": job_why}], report["refused"]
    expect(berth("simulate", "-f", "-", stdin=text), 3, f"default/b is refused, asking for 1 cpu\n  {why}")
    expect(berth("why", "-f", "-", "job/j", stdin=text), 0, f"Job default/j: Forbidden\n  {job_why}")
    said = "  pods: 1 FailedCreate\n  j-0: failed quota: q: must specify requests.cpu for: c\n"
    expect(berth("why", "-f", "-", "job/j", stdin=text.replace(", count/jobs.batch: 0", "")), 0, said)


def case_frag() -> None:
    node = NODE.replace("pods: ", "nvidia.com/gpu: 4, pods: ")
    pod = POD % ("a", "requests: {cpu: 1500m}, limits: {nvidia.com/gpu: 1}")
    expect(berth("frag", "-f", "-", stdin=f"{node}\n---\n{pod}\n"), 0, "3 of 4 free; counted with 1500m cpu")
    report = json.loads(berth("frag", "-f", "-", "-o", "json", stdin=f"{node}\n---\n{pod}\n").stdout)
    assert report["kind"] == "FragmentationReport", report
    [gpus] = report["resources"]
    one = gpus["shapes"][0]
    assert (gpus["allocatable"], gpus["free"], one["fit"], one["stranded"]["cpu"], one["stranded"]["shape"]) == (4, 3, 1, 2, 0), gpus
    expect(berth("frag", "-f", "-", stdin=NODE), 0, "no node has GPUs")
    dynamic = MIG_NODE.replace("nvidia.com/gpu.count", "berth.dev/mig-policy: dynamic, nvidia.com/gpu.count")
    report = json.loads(berth("frag", "-f", "-", "-o", "json", stdin=dynamic).stdout)
    rows = {each["name"]: each["shapes"][0] for each in report["resources"]}
    assert len(rows) == 8, rows  # nvidia.com/gpu and the seven profiles
    assert {name: (row["fit"], row["fit_if_cut"]) for name, row in rows.items() if name.endswith(("/gpu", "1g.5gb", "7g.40gb"))} == {
        "nvidia.com/gpu": (1, 2), "nvidia.com/mig-1g.5gb": (4, 14), "nvidia.com/mig-7g.40gb": (0, 2)}, rows
    expect(berth("frag", "-f", "-", stdin=dynamic), 0, "nvidia.com/mig-7g.40gb       1    0       2     0")
    fixed = MIG_NODE.replace("nvidia.com/gpu.count", "nvidia.com/mig.strategy: mixed, nvidia.com/gpu.count")
    expect(berth("frag", "-f", "-", stdin=fixed), 0, "RESOURCE                  SIZE  FIT  FREE")


def case_slices_are_no_gpus() -> None:
    pods = "".join("\n---\n" + POD % (name, f"limits: {{{resource}: {count}}}")
                   for name, resource, count in (("a", "nvidia.com/gpu", 1), ("b", "nvidia.com/mig-1g.5gb", 3)))
    told = berth("simulate", "-f", "-", stdin=MIG_NODE + pods + "\n")
    expect(told, 0, "2 pods placed, 0 waiting; 1 of 1 GPUs and 3 of 5 MIG instances in use\n")
    expect(told, 0, "POD        GPUS  MIG  NODE")
    expect(told, 0, "default/b     -    3  dgx")
    expect(told, 0, "dgx    1/1  3/5  0/48")
    ends = pods.replace("metadata: {name: b", "metadata: {annotations: {berth.dev/simulated-runtime: 1m}, name: b")
    expect(berth("simulate", "-f", "-", stdin=MIG_NODE + ends + "\n"), 0,
           "1 of 1 GPUs and 0 of 5 MIG instances in use at the end, 1 GPUs and 3 MIG instances at most")
    only = MIG_NODE.replace("nvidia.com/gpu: 1, ", "")
    expect(berth("simulate", "-f", "-", stdin=only), 0, "0 pods placed, 0 waiting; 0 of 5 MIG instances in use")


def case_a_pod_that_was_taken_away() -> None:
    """It is neither bound nor running any more, though its manifest names a node."""
    leaving = ("{apiVersion: v1, kind: Pod, metadata: {name: a, deletionTimestamp: '2026-01-01T00:00:00Z'}, spec: {nodeName: n1, "
               "containers: [{name: c, image: i}]}, status: {phase: Running}}")
    [pod] = json.loads(berth("simulate", "-f", "-", "-o", "json", stdin=f"{NODE}\n---\n{leaving}\n").stdout)["pods"]
    assert (pod["reason"], pod["message"], pod["node"], pod["finished_s"]) == ("Deleted", "Deleted on n1", "n1", 30), pod
    expect(berth("why", "-f", "-", "a", stdin=f"{NODE}\n---\n{leaving}\n"), 0, "default/a: Deleted\n  Deleted on n1")


def case_frag_of_bad_input() -> None:
    expect(berth("frag", "-f", "absent.yaml"), 2, err="absent.yaml")
    expect(berth("frag"), 2, err="--filename")


def case_webhook() -> None:
    expect(berth("webhook"), 2, err="--cert-file is required")
    files = ("--cert-file", "absent.crt", "--key-file", "absent.key")
    expect(berth("webhook", *files, "--port", "0"), 2, err="TLS file absent.crt: No such file")
    for wrong, told in (("nvidia.com/gpu", "write RESOURCE=COUNT"), ("cpu=4", "'cpu' is no GPU resource"),
                        ("nvidia.com/gpu=x", "nvidia.com/gpu=x")):
        expect(berth("webhook", *files, "--node-max", wrong), 2, err=told)
    expect(berth("webhook", *files, "--unrequested-gpus", "maybe"), 2, err="'maybe' is none of: ignore, warn, deny")
    expect(berth("webhook", *files, "--scheduler-name", "No Name"), 2, err="--scheduler-name 'No Name'")


def case_files_folders_and_stdin() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "a.yaml").write_text(NODE)
        Path(folder, "b.json").write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"},
                                                      "spec": {"containers": [{"name": "c", "image": "i"}]}}))
        Path(folder, "README.md").write_text("not a manifest")
        expect(berth("simulate", "-f", folder, "-f", "-", stdin=POD % ("second", "") + "\n"), 0, "2 pods placed")
        expect(berth("simulate", "-f", folder, f"{folder}/a.yaml"), 0, "1 pod placed")
        other = NODE.replace("cpu: 4", "cpu: 5")
        expect(berth("simulate", "-f", folder, "-f", "-", stdin=other), 2, err="Node n1 is already defined at")
    with tempfile.TemporaryDirectory() as folder:
        expect(berth("simulate", "-f", folder), 2, err="no *.yaml, *.yml or *.json in this folder")
        sparse = Path(folder, "sparse.yaml")
        with sparse.open("wb") as file:
            file.truncate((256 << 20) + 1)
        expect(berth("simulate", "-f", str(sparse)), 2, err=f"error: {sparse}: the file is larger than 256 MiB; split it\n")
        expect(berth("simulate", "-f", "examples/demo", "--config", folder), 2, err=f"--config {folder}: this is a folder")


def case_unused_kinds_pass_with_a_note() -> None:
    service = "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80}]}}"
    expect(berth("simulate", "-f", "-", stdin=f"{NODE}\n---\n{service}\n"), 0, err="note: stdin:3: Service s: this kind has no effect")


def case_bound_pods_that_no_scheduler_would_place_so_are_noted() -> None:
    lost = (POD % ("lost", "requests: {cpu: 1}")).replace("spec: {", "spec: {nodeName: n7, ", 1)
    large = (POD % ("large", "requests: {cpu: 1000}")).replace("spec: {", "spec: {nodeName: n1, ", 1)
    run = berth("simulate", "-f", "-", stdin=f"{NODE}\n---\n{lost}\n---\n{large}\n")
    expect(run, 0, err="note: Pod default/lost: spec.nodeName names n7, which is not among the nodes")
    check("note: Node n1: its pods ask for 1000 cpu, and it has " in run.stderr, "the node's over-use is noted", run)


def case_output_that_cannot_be_written() -> None:
    for arguments in (["config"], ["policies"], ["version"], ["why", "-f", "examples/demo", "pod/ml/chat-0"], ["simulate", "-f", "examples/demo"]):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([BERTH, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT, timeout=60)
        assert done.returncode == 1 and "error: " in done.stderr, (arguments, done)


def case_why() -> None:
    expect(berth("why", "-f", "examples/demo", "-n", "ml", "notebook"), 0, "taint nvidia.com/gpu=present:NoSchedule")
    expect(berth("why", "-f", "examples/demo", "pod/ml/chat-0"), 0, "Successfully assigned ml/chat-0 to t4-1")
    expect(berth("why", "-f", "examples/demo", "ml/notebok"), 1, err="did you mean ml/notebook?")
    pods = [POD % (f"{name}, annotations: {{berth.dev/runtime-estimate: 1h}}", f"requests: {{cpu: {cpu}, memory: 4Gi}}") for name, cpu in (("a", 1), ("b", 4), ("c", 1))]
    expect(berth("why", "-f", "-", "b", stdin="\n---\n".join([NODE, *pods])), 0, "forecast: starts in 1h; 2 of 2 in its way declare a runtime")


def case_a_pod_of_a_mebibyte_or_ten_thousand_terms_is_bounded() -> None:
    many = 10_000
    terms = {
        "tolerations": [{"key": f"k{i}", "operator": "Exists"} for i in range(many)],
        "nodeSelector": {f"k{i}": "v" for i in range(many)},
        "schedulingGates": [{"name": f"example.com/g{i}"} for i in range(many)],
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": f"k{i}", "whenUnsatisfiable": "DoNotSchedule",
                                       "labelSelector": {"matchLabels": {"app": f"a{i}"}}} for i in range(many)],
        "volumes": [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"c{i}"}} for i in range(many)],
    }
    term = [{"topologyKey": f"k{i}", "labelSelector": {"matchLabels": {"app": f"a{i}"}}} for i in range(many)]
    expressions = [{"matchExpressions": [{"key": f"k{i}", "operator": "In", "values": ["v"]}]} for i in range(many)]
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    affinities = [{"podAffinity": {required: term}}, {"podAntiAffinity": {required: term}},
                  {"nodeAffinity": {required: {"nodeSelectorTerms": expressions}}}]
    specs = [{key: value} for key, value in terms.items()] + [{"affinity": affinity} for affinity in affinities]
    for i, spec in enumerate(specs):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{i}", "labels": {"app": "a7"}},
               "spec": {**spec, "containers": [{"name": "c", "image": "i"}]}}
        run = berth("simulate", "-f", "-", stdin=f"{NODE}\n---\n{json.dumps(pod)}\n")
        check(run.returncode in (0, 3), f"{next(iter(spec))}: placed or waiting", run)
        check(len(run.stdout) < 4096, f"{next(iter(spec))}: the verdict is short", run)
    long_pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "long", "annotations": {"note": "x" * 2**20}},
                "spec": {"containers": [{"name": "c", "image": "i", "args": ["y" * 2**20]}]}}
    expect(berth("simulate", "-f", "-", stdin=f"{NODE}\n---\n{json.dumps(long_pod)}\n"), 0, "1 pod placed")
    # What a fleet costs, beside its pods, grows with the terms that its nodes have labels for.
    nodes = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{i}", "labels": {"kubernetes.io/hostname": f"n{i}"}},
              "status": {"allocatable": {"cpu": "8", "pods": "9"}}} for i in range(2000)]  # fmt: skip
    for spread in ("DoNotSchedule", "ScheduleAnyway"):
        rules = [{**rule, "whenUnsatisfiable": spread} for rule in terms["topologySpreadConstraints"]]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
               "spec": {"topologySpreadConstraints": rules, "containers": [{"name": "c", "image": "i"}]}}
        run = berth("simulate", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": [*nodes, pod]}))
        check(run.returncode == (3 if spread == "DoNotSchedule" else 0), f"{spread} at 2,000 nodes", run)
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert largest < MEMORY_MAX_KIB, f"{largest} KiB for one pod"


def case_policies_and_version() -> None:
    expect(berth("policies"), 0, "gpu-node-aversion")
    names = [p["name"] for p in json.loads(berth("policies", "-o", "json").stdout)["items"]]
    assert names[0] == "resource-claims" and "pack" in names, names
    expect(berth("version"), 0, "berth ")


def case_usage() -> None:
    expect(berth("--help"), 0, "simulate")
    expect(berth("--version"), 0, "berth ")
    expect(berth("simulate", "--help"), 0, "Examples:")
    expect(berth(), 2, err="error: say what to do, one of: scheduler, simulate")
    expect(berth("simulate"), 2, err="error: --filename is required")
    expect(berth("simulate", "-f", "examples/demo", "-o", "xml"), 2,
           err="error: --output: 'xml' is none of: table, wide, json, yaml; see `berth simulate --help`")
    expect(berth("policies", "-o", "yaml"), 2, err="error: --output: 'yaml' is none of: table, json")
    expect(berth("scheduler", "--leader-elect", "maybe"), 2, err="error: --leader-elect: 'maybe' is none of: true, false")
    for words, wrong in ((["simulate", "--bogus"], "argument was not expected: --bogus;"),
                         (["simulate", "--filname", "x"], "argument was not expected: --filname;"),
                         (["simulate", "--trce", "openb", "--nodes", "x"], "argument was not expected: --trce;"),
                         (["why", "--bogus"], "argument was not expected: --bogus;")):
        run = berth(*words)
        expect(run, 2, err=wrong)
        check("require" not in run.stderr, "what the wrong flag may have been meant for is not said to be missing", run)
    expect(berth("--bogus"), 2, err="error: The following argument was not expected: --bogus")
    expect(berth("simulate", "-f", "examples/demo", "--weight", "pakc=1"), 2, err="error: no policy is called 'pakc'")
    together = berth("simulate", "-f", "no-such-file", "-o", "xml", "--weight", "pakc=1", "--weight", "pack")
    for wrong in ("no-such-file", "--output: 'xml' is none of", "no policy is called 'pakc'", "--weight pack: write it"):
        expect(together, 2, err=wrong)
    expect(berth("frobnicate"), 2, err="error: there is no command 'frobnicate'; it must be one of: scheduler, simulate")
    expect(berth("simulat", "-f", "x"), 2, err="error: there is no command 'simulat'; did you mean simulate? See `berth --help`")


def case_trace() -> None:
    with tempfile.TemporaryDirectory() as folder:
        nodes, pods = Path(folder, "nodes.csv"), Path(folder, "pods.csv")
        nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\n" + "".join(f"n{i},64000,262144,8,G2\n" for i in range(4)))
        pods.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
                        "a,4000,1024,1,460,\nb,8000,1024,2,1000,G2|T4\nc,1000,1024,0,0,\nd,1000,1024,1,1000,T4\n")
        trace = ["simulate", "--trace", "openb", "--nodes", str(nodes), "--pods", str(pods)]
        results = {}
        for policy in ("berth", "berth-told", "best-fit", "dot-product", "fgd", "gpu-clustering", "gpu-packing",
                       "random"):
            runs = [json.loads(berth(*trace, "--seed", "7", "--policy", policy, "-o", "json").stdout) for _ in range(2)]
            for run in runs:
                assert run.pop("elapsed_s") >= 0
            assert runs[0] == runs[1], runs
            results[policy] = runs[0]
            assert runs[0]["policy"] == policy and runs[0]["seed"] == 7, runs[0]
            for key in ("gpu_allocation_percent", "fragmentation_ratio_percent"):
                assert list(runs[0][key]) == [str(p) for p in range(1, 131)], runs[0]
        assert len({run["pods"] for run in results.values()}) == 1, "every policy sees the same pods"
        own = json.loads(berth(*trace, "--seed", "7", "-o", "json").stdout)
        assert own["policy"] == "berth" and list(own)[:3] == ["policy", "seed", "pods"], own
        half = json.loads(berth(*trace, "--inflate", "0.5", "-o", "json").stdout)
        assert list(half["gpu_allocation_percent"])[-1] == "50", half
        expect(berth(*trace), 0, "ARRIVED  ALLOCATED  FRAGMENTED")
        for batch in ("all", "5"):
            runs = [json.loads(berth(*trace, "--seed", "7", "--batch", batch, "-o", "json").stdout) for _ in range(2)]
            assert [run.pop("elapsed_s") >= 0 for run in runs] == [True, True] and runs[0] == runs[1], runs
            assert str(runs[0]["batch"]) == batch and runs[0]["pods"] == own["pods"], runs[0]
        expect(berth(*trace, "--batch", "all"), 0, "berth, one batch of all, seed 0: ")
        picture = Path(folder, "curves.svg")
        for _ in range(2):  # new, and in the place of another
            expect(berth(*trace, "--svg", str(picture)), 0, "ARRIVED")
            assert picture.read_text().startswith("<svg ") and picture.read_text().endswith("</svg>\n")
        assert sorted(path.name for path in Path(folder).iterdir()) == ["curves.svg", "nodes.csv", "pods.csv"]
        for batch in ("0", "-1", "abc", "1.5", "ALL"):
            expect(berth(*trace, f"--batch={batch}"), 2, err=f"--batch: '{batch}' is neither a number of pods")
        expect(berth(*trace, "--batch", "all", "--policy", "FGD"), 2, err="leave out `--policy fgd`, or leave out --batch")
        expect(berth(*trace, "--inflate", "0.009"), 2, err="--inflate: '0.009' is no number from 0.01 to 10")
        for path, why in ((folder, "is a folder; name a file"), (f"{folder}/no/x.svg", "there is no folder"),
                          ("/dev/null", "is no regular file"), ("/proc/x.svg", "cannot write"), ("-", "is no file")):
            unwritable = berth(*trace, "--svg", path)
            expect(unwritable, 2, err=why)
            check(unwritable.stdout == "", "nothing was run", unwritable)

        nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn,1,1,-1,G2\nm,1,1,17,G2\n")
        pods.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,\x1b[31m,1,0,0\n")
        wrong = berth(*trace, "--policy", "best", "--inflate", "1e9", "--seed", "-1", "-o", "yaml")
        for line in (f"error: {nodes}:2: gpu: '-1' is no whole number from 0 to 16", f"error: {nodes}:3: gpu: '17'",
                     f"error: {pods}:2: cpu_milli: '\\x1b[31m'",
                     "--policy: 'best' is none of: berth, berth-told, best-fit, dot-product",
                     "--inflate: '1e9' is no number", "--seed: '-1'", "--output: 'yaml' is none of: table, json"):
            expect(wrong, 2, err=line)
        check(wrong.stdout == "", "nothing on standard output", wrong)
        expect(berth("simulate", "--trace", "openb"), 2, err="error: --pods: --trace needs a list of pods")
        expect(berth("simulate", "--trace", "other", "--nodes", str(nodes), "--pods", "no-such-file"), 2,
               err="error: --trace: 'other' is none of: openb")
        expect(berth("simulate", "--nodes", str(nodes)), 2, err="--nodes requires --trace")
        expect(berth(*trace, "-f", "examples/demo"), 2, err="excludes")
        expect(berth(*trace, "--set-packing"), 2, err="excludes")


def case_config_of_the_daemon() -> None:
    nodes = "\n---\n".join(NODE.replace("n1", n) for n in ("n1", "n2"))
    pods = "\n---\n".join(POD % (p, "requests: {cpu: 1, memory: 1Gi}") for p in ("a", "b"))
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "berth.yaml")

        def placed(text: str, *arguments: str) -> list[str]:
            config.write_text("apiVersion: berth.dev/v1alpha1\nkind: BerthConfiguration\n" + text)
            run = berth("simulate", "-f", "-", "-o", "json", "--config", str(config), *arguments, stdin=f"{nodes}\n---\n{pods}\n")
            check(run.returncode == 0, "expected exit 0", run)
            return [p["node"] for p in json.loads(run.stdout)["pods"]]

        assert placed("scores: {pack: 2}\n") == ["n1", "n1"]
        assert placed("scores: {spread: 0}\n") == ["n1", "n1"]
        assert placed("scores: {spread: 0}\n", "--weight", "spread=1") == ["n1", "n2"], "--weight is over the file"
        config.write_text("apiVersion: berth.dev/v1alpha1\nkind: BerthConfiguration\nscors: {pack: 2}\n")
        for verb in (("simulate",), ("why", "a")):
            expect(berth(*verb, "-f", "-", "--config", str(config), stdin=f"{nodes}\n---\n{pods}\n"), 2,
                   err="berth.yaml:3: scors: unknown field; did you mean 'scores'?")
        expect(berth("simulate", "-f", "examples/demo", "--config", f"{folder}/none.yaml"), 2, err="none.yaml: cannot read the file")


def case_waiting_pods_as_a_set() -> None:
    nodes = "\n---\n".join(NODE.replace("n1", n).replace("cpu: 4", "cpu: 4, nvidia.com/gpu: 8") for n in ("n1", "n2"))
    pods = "\n---\n".join(POD % (f"p{i}", "limits: {nvidia.com/gpu: %d}" % gpus) for i, gpus in enumerate((3, 3, 5, 5)))
    queue = f"{nodes}\n---\n{pods}\n"
    expect(berth("simulate", "-f", "-", stdin=queue), 3, "3 pods placed, 1 waiting; 11 of 16 GPUs in use")
    expect(berth("simulate", "-f", "-", "--set-packing", stdin=queue), 0, "4 pods placed, 0 waiting; 16 of 16 GPUs in use")
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "berth.yaml")
        config.write_text("apiVersion: berth.dev/v1alpha1\nkind: BerthConfiguration\nsetPacking: {maxWork: 1}\n")
        run = ["simulate", "-f", "-", "--config", str(config)]
        expect(berth(*run, "--set-packing", stdin=queue), 3, "3 pods placed, 1 waiting")
        config.write_text(config.read_text().replace("maxWork: 1", "enabled: true"))
        expect(berth(*run, stdin=queue), 0, "4 pods placed, 0 waiting")


def case_weights_change_decisions() -> None:
    nodes = "\n---\n".join(NODE.replace("n1", n) for n in ("n1", "n2"))
    pods = "\n---\n".join(POD % (p, "requests: {cpu: 1, memory: 1Gi}") for p in ("a", "b"))
    spread = berth("simulate", "-f", "-", "-o", "json", stdin=f"{nodes}\n---\n{pods}\n")
    flat = berth("simulate", "-f", "-", "-o", "json", "--weight", "spread=0", stdin=f"{nodes}\n---\n{pods}\n")
    assert [p["node"] for p in json.loads(spread.stdout)["pods"]] == ["n1", "n2"], spread.stdout
    assert [p["node"] for p in json.loads(flat.stdout)["pods"]] == ["n1", "n1"], flat.stdout


def main() -> None:
    name = sys.argv[2]
    if name.startswith("examples/"):
        example(name.removeprefix("examples/"), "--update" in sys.argv)
    else:
        globals()[f"case_{name}"]()


main()
