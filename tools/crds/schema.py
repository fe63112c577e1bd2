"""Small words for structural schemas: object(), items(), text(), number(), quantity(), rule().

Every list and string that a CEL rule looks at is bounded, or the API server refuses the rule as too dear.
"""

from __future__ import annotations

SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
LABEL_KEY = rf"^({SUBDOMAIN[1:-1]}/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
_AMOUNT = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"
QUANTITY_LENGTH = 32  # the longest that an int64 with nine decimals and a suffix comes to, and some


def object(properties: dict, *required: str, rules: tuple = (), **more) -> dict:
    out = {"type": "object", "properties": properties}
    if required:
        out["required"] = list(required)
    if rules:
        out["x-kubernetes-validations"] = list(rules)
    return {**out, **more}


def items(of: dict, most: int | None = None, least: int | None = None, *, keys: tuple = (), kind: str = "atomic",
          rules: tuple = (), **more) -> dict:  # fmt: skip
    """A list; with `keys` it is a map by these members, which the API server keeps unique and merges by."""
    out = {"type": "array", "items": of, "x-kubernetes-list-type": "map" if keys else kind}
    if keys:
        out["x-kubernetes-list-map-keys"] = list(keys)
    if most is not None:
        out["maxItems"] = most
    if least is not None:
        out["minItems"] = least
    if rules:
        out["x-kubernetes-validations"] = list(rules)
    return {**out, **more}


def text(most: int | None = None, least: int | None = None, **more) -> dict:
    out: dict = {"type": "string"}
    if most is not None:
        out["maxLength"] = most
    if least is not None:
        out["minLength"] = least
    return {**out, **more}


def words(*allowed: str, default: str | None = None) -> dict:
    out = {"type": "string", "enum": list(allowed)}
    return out if default is None else {**out, "default": default}


def number(least: int | None = None, *, bits: int = 32, **more) -> dict:
    out: dict = {"type": "integer", "format": f"int{bits}"}
    if least is not None:
        out["minimum"] = least
    return {**out, **more}


def flag(**more) -> dict:
    return {"type": "boolean", **more}


def quantity(**more) -> dict:
    """A Kubernetes quantity of at least 0, as an integer or a string."""
    return {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
        "pattern": r"^\+?" + _AMOUNT,
        "maxLength": QUANTITY_LENGTH,
        "minimum": 0,
        **more,
    }  # fmt: skip


def strings(most: int | None = None, **more) -> dict:
    """A map of strings."""
    out: dict = {"type": "object", "additionalProperties": {"type": "string"}}
    if most is not None:
        out["maxProperties"] = most
    return {**out, **more}


def amounts(most: int | None = None) -> dict:
    """A map of quantities by resource."""
    out: dict = {"type": "object", "additionalProperties": quantity()}
    return out if most is None else {**out, "maxProperties": most}


def time() -> dict:
    return {"type": "string", "format": "date-time"}


def free() -> dict:
    """An object of which the API server keeps whatever it is given."""
    return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def rule(cel: str, message: str, **more) -> dict:
    return {"rule": cel, "message": message, **more}


def told(description: str, schema: dict) -> dict:
    """The schema with what `kubectl explain` says of it."""
    return {"description": description, **schema}


def name(most: int = 253) -> dict:
    return text(most, pattern=SUBDOMAIN)


def conditions() -> dict:
    one = object({
        "type": text(316, pattern=LABEL_KEY),
        "status": words("True", "False", "Unknown"),
        "observedGeneration": number(0, bits=64),
        "lastTransitionTime": time(),
        "reason": text(1024, 1, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
        "message": text(32768),
    }, "type", "status", "lastTransitionTime", "reason", "message")  # fmt: skip
    return items(one, 16, keys=("type",))


def label_selector() -> dict:
    requirement = object({"key": text(), "operator": text(), "values": items(text())}, "key", "operator")
    return object({"matchLabels": strings(), "matchExpressions": items(requirement)},
                  **{"x-kubernetes-map-type": "atomic"})  # fmt: skip


EFFECTS = "['NoSchedule', 'PreferNoSchedule', 'NoExecute']"


def taints() -> dict:
    taint = object({"key": text(317), "value": text(63), "effect": text(32), "timeAdded": time()}, "key", "effect")
    return items(taint, 8, rules=(
        rule(f"self.all(t, t.effect in {EFFECTS})", "a taint's effect is NoSchedule, PreferNoSchedule or NoExecute"),
    ))  # fmt: skip


def tolerations() -> dict:
    one = object({"key": text(317), "operator": text(32), "value": text(63), "effect": text(32),
                  "tolerationSeconds": number(bits=64)})  # fmt: skip
    return items(one, 8, rules=(
        rule("self.all(t, has(t.key) || (has(t.operator) && t.operator == 'Exists'))",
             "a toleration without a key tolerates everything: its operator must be Exists"),
        rule("self.all(t, !has(t.operator) || t.operator in ['Equal', 'Exists'])", "an operator is Equal or Exists"),
        rule("self.all(t, !has(t.operator) || t.operator != 'Exists' || !has(t.value))",
             "with operator Exists there is no value"),
        rule("self.all(t, !has(t.tolerationSeconds) || (has(t.effect) && t.effect == 'NoExecute'))",
             "tolerationSeconds goes with effect NoExecute"),
        rule(f"self.all(t, !has(t.effect) || t.effect in {EFFECTS})",
             "an effect is NoSchedule, PreferNoSchedule or NoExecute"),
    ))  # fmt: skip
