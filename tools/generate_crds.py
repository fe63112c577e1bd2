#!/usr/bin/env python3
"""Writes deploy/crds from the tables in tools/crds, so that both versions of a kind stay in step.

  generate_crds.py [--check]     --check writes nothing and fails where a file is not what it would write

deploy/crds/v1beta2 has one version and needs no webhook; deploy/crds/both also serves v1beta1, which `berth webhook`
converts. Install one of the two.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from crds.kinds import GROUP, KINDS, OLDER, STORED, Column, Kind  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path("deploy") / "crds"
HEADER = "# Written by tools/generate_crds.py from tools/crds; change those.\n"
PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*")
RESERVED = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


def scalar(value: object) -> str:
    if isinstance(value, str):
        plain = PLAIN.fullmatch(value) and value.lower() not in RESERVED
        return value if plain else json.dumps(value, ensure_ascii=False)
    return json.dumps(value)


def yaml_lines(value: object, indent: str = "") -> list[str]:
    """Block style, as kubectl prints it."""
    lines: list[str] = []
    if isinstance(value, dict):
        for key, member in value.items():
            if isinstance(member, (dict, list)) and member:
                inside = indent + ("" if isinstance(member, list) else "  ")
                lines += [f"{indent}{scalar(key)}:", *yaml_lines(member, inside)]
            else:
                lines.append(f"{indent}{scalar(key)}: {scalar(member)}")
    else:
        for item in value:
            inner = yaml_lines(item, indent + "  ") if isinstance(item, dict) else [f"{indent}  {scalar(item)}"]
            lines += [f"{indent}- {inner[0][len(indent) + 2:]}", *inner[1:]]
    return lines


def column(one: Column) -> dict:
    out: dict = {"name": one.name, "type": one.type, "jsonPath": one.path}
    if one.description:
        out["description"] = one.description
    if one.wide:
        out["priority"] = 1
    return out


def version(kind: Kind, name: str) -> dict:
    out: dict = {"name": name, "served": True, "storage": name == STORED}
    if name == OLDER:
        warning = f"{GROUP}/{OLDER} {kind.kind} is deprecated; use {GROUP}/{STORED}"
        out |= {"deprecated": True, "deprecationWarning": warning}
    columns = kind.older_columns if name == OLDER and kind.older_columns else kind.columns
    if columns:
        out["additionalPrinterColumns"] = [column(one) for one in columns]
    if kind.status is not None:
        out["subresources"] = {"status": {}}
    return out | {"schema": {"openAPIV3Schema": kind.schema(name)}}


def definition(kind: Kind, *, both: bool) -> dict:
    """A CustomResourceDefinition; with both versions the API server asks the webhook to convert."""
    names = {"kind": kind.kind, "listKind": f"{kind.kind}List", "plural": kind.plural, "singular": kind.singular}
    if kind.short:
        names["shortNames"] = list(kind.short)
    metadata: dict = {"name": f"{kind.plural}.{GROUP}"}
    conversion: dict = {"strategy": "None"}
    if both:
        metadata["annotations"] = {"cert-manager.io/inject-ca-from": "berth-system/berth-webhook"}
        service = {"namespace": "berth-system", "name": "berth-webhook", "port": 443, "path": "/convert"}
        conversion = {"strategy": "Webhook",
                      "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"service": service}}}  # fmt: skip
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata,
        "spec": {
            "group": GROUP, "names": names, "scope": "Namespaced" if kind.namespaced else "Cluster",
            "conversion": conversion,
            "versions": [version(kind, one) for one in ((STORED, OLDER) if both else (STORED,))],
        },
    }  # fmt: skip


def files() -> dict[Path, str]:
    """What deploy/crds holds, by path from the root of the checkout."""
    out = {}
    for folder, both in (("v1beta2", False), ("both", True)):
        for kind in KINDS:
            text = "\n".join(yaml_lines(definition(kind, both=both))) + "\n"
            out[FOLDER / folder / f"{kind.plural}.yaml"] = HEADER + text
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    wanted = files()
    there = {path: (ROOT / path).read_text() for path in wanted if (ROOT / path).is_file()}
    stale = [path for path, text in wanted.items() if there.get(path) != text]
    extra = [path.relative_to(ROOT) for path in sorted((ROOT / FOLDER).rglob("*.yaml"))
             if path.relative_to(ROOT) not in wanted]  # fmt: skip
    for path in stale:
        print(f"crds: {path} {'is out of date' if check else 'written'}")
        if not check:
            (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / path).write_text(wanted[path])
    for path in extra:
        print(f"crds: {path} belongs to no kind; remove it")
    return 1 if (check and stale) or extra else 0


if __name__ == "__main__":
    sys.exit(main())
