"""What pods ask of nodes and of one another: selectors, tolerations, affinity, spread. The odd ones on purpose."""

from __future__ import annotations

from .draw import Draw
from .nodes import GENERATION, GENERATIONS, HOSTNAME, PRODUCT, PRODUCTS, RACK, RACKS, TAINTS, ZONE, ZONES
from .world import NAMESPACES

NOWHERE = "example.com/nowhere"  # a topology key, and a label, that no node has
APPS = ("web", "db", "cache")
OFTEN_WEB = ("web", "web", "web", "db", "cache")  # so that pods meet others that their selectors match
VERSIONS = ("v1", "v2")
VALUES = {ZONE: ZONES, RACK: RACKS, PRODUCT: PRODUCTS, GENERATION: GENERATIONS}


# -- nodes


def node_selector(draw: Draw) -> dict[str, str]:
    if draw.chance(0.05):
        return {NOWHERE: "x"}
    return {key: draw.pick(VALUES[key]) for key in draw.some(tuple(VALUES), draw.pick((1, 1, 1, 2)))}


def _node_requirement(draw: Draw) -> dict:
    key = draw.pick((*VALUES, NOWHERE))
    operator = draw.pick(("In", "In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    if operator in ("Gt", "Lt"):
        return {"key": draw.pick((GENERATION, GENERATION, ZONE)), "operator": operator, "values": [draw.pick(("1", "3"))]}
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    values = VALUES.get(key, ("x",))
    return {"key": key, "operator": operator, "values": draw.some(values, draw.pick((1, 2)))}


def _node_field(draw: Draw, nodes: list[str]) -> dict:
    name = draw.pick((*nodes, "no-such-node"))
    return {"key": "metadata.name", "operator": draw.pick(("In", "In", "NotIn")), "values": [name]}


def _node_term(draw: Draw, nodes: list[str]) -> dict:
    kind = draw.below(10)
    if kind == 0:
        return {}  # matches no node
    if kind == 1:  # both at once, always a contradiction for other keys than this one
        return {"matchExpressions": [{"key": ZONE, "operator": "Exists"}, {"key": ZONE, "operator": "DoesNotExist"}]}
    if kind == 2:
        return {"matchFields": [_node_field(draw, nodes)]}
    if kind == 3:
        return {"matchFields": [_node_field(draw, nodes)], "matchExpressions": [_node_requirement(draw)]}
    if kind == 4 and draw.chance(0.3):
        return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]} for name in nodes[:2]]}
    return {"matchExpressions": [_node_requirement(draw) for _ in range(draw.pick((1, 1, 2)))]}


def node_affinity(draw: Draw, nodes: list[str]) -> dict:
    terms = [_node_term(draw, nodes) for _ in range(draw.pick((1, 1, 2, 3)))]
    affinity: dict = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    if draw.chance(0.2):
        preference = {"weight": draw.between(1, 100), "preference": {"matchExpressions": [_node_requirement(draw)]}}
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [preference]
    return affinity


def tolerations(draw: Draw) -> list[dict]:
    found = []
    for _ in range(draw.pick((1, 1, 2))):
        taint = draw.pick(TAINTS)
        kind = draw.below(6)
        if kind == 0:
            found.append({"operator": "Exists"})
        elif kind == 1:
            found.append({"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"})
        elif kind == 2:
            found.append({"key": taint["key"], "operator": "Exists"})
        elif kind == 3:  # the right key and perhaps the wrong effect
            found.append({"key": taint["key"], "operator": "Exists", "effect": draw.pick(("NoSchedule", "NoExecute"))})
        else:
            found.append({"key": taint["key"], "operator": "Equal", "value": taint.get("value", "")})
    return found


# -- pods


def label_selector(draw: Draw) -> dict | None:
    """None for a selector that is left out, which matches no pod; {} matches every pod."""
    kind = draw.below(20)
    if kind == 0:
        return None
    if kind == 1:
        return {}
    if kind == 2:
        return {"matchLabels": {"app": draw.pick(APPS), "no-such": "label"}}
    if kind == 3:
        return {"matchExpressions": [{"key": "tier", "operator": draw.pick(("Exists", "DoesNotExist"))}]}
    if kind < 8:
        operator = draw.pick(("In", "NotIn"))
        return {"matchExpressions": [{"key": "app", "operator": operator, "values": draw.some(APPS, draw.pick((1, 2)))}]}
    return {"matchLabels": {"app": draw.pick(OFTEN_WEB)}}


def _term(draw: Draw, keys: tuple[str, ...]) -> dict:
    term: dict = {"topologyKey": draw.pick(keys)}
    selector = label_selector(draw)
    if selector is not None:
        term["labelSelector"] = selector
        if draw.chance(0.12):
            term[draw.pick(("matchLabelKeys", "mismatchLabelKeys"))] = ["version"]
    kind = draw.below(10)
    if kind == 0:
        term["namespaces"] = draw.some(tuple(NAMESPACES), 2)
    elif kind == 1:
        term["namespaceSelector"] = {}
    elif kind == 2:
        term["namespaceSelector"] = {"matchLabels": {"team": draw.pick(("red", "blue"))}}
    elif kind == 3:
        name = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [draw.pick(tuple(NAMESPACES))]}
        term["namespaceSelector"] = {"matchExpressions": [name]}
        if draw.chance(0.5):
            term["namespaces"] = [draw.pick(tuple(NAMESPACES))]
    return term


def _pod_terms(draw: Draw, keys: tuple[str, ...], counts: tuple[int, ...]) -> dict:
    rule: dict = {}
    if not draw.chance(0.15):
        rule["requiredDuringSchedulingIgnoredDuringExecution"] = [_term(draw, keys) for _ in range(draw.pick(counts))]
    if not rule or draw.chance(0.15):
        preferred = {"weight": draw.between(1, 100), "podAffinityTerm": _term(draw, keys)}
        rule["preferredDuringSchedulingIgnoredDuringExecution"] = [preferred]
    return rule


def pod_affinity(draw: Draw) -> dict:
    """`podAffinity`, `podAntiAffinity` or both."""
    kind = draw.below(10)
    found: dict = {}
    if kind < 4 or kind == 9:
        found["podAffinity"] = _pod_terms(draw, (ZONE, ZONE, RACK, HOSTNAME, NOWHERE), (1, 1, 1, 2))
    if kind >= 4:
        found["podAntiAffinity"] = _pod_terms(draw, (HOSTNAME, HOSTNAME, RACK, ZONE, NOWHERE), (1, 1, 2))
    return found


def spread(draw: Draw) -> list[dict]:
    constraints: dict[tuple, dict] = {}
    for _ in range(draw.pick((1, 1, 2))):
        hard = draw.chance(0.85)
        one: dict = {
            "maxSkew": draw.pick((1, 1, 1, 2)),
            "topologyKey": draw.pick((ZONE, ZONE, ZONE, RACK, HOSTNAME, HOSTNAME) if draw.chance(0.95) else (NOWHERE,)),
            "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        }
        selector = label_selector(draw)
        if selector is not None:
            one["labelSelector"] = selector
            if draw.chance(0.15):
                one["matchLabelKeys"] = ["version"]
        if hard and draw.chance(0.3):
            one["minDomains"] = draw.between(1, 4)
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if draw.chance(0.3):
                one[policy] = draw.pick(("Honor", "Ignore"))
        constraints[one["topologyKey"], one["whenUnsatisfiable"]] = one  # the API server refuses a second with the same
    return list(constraints.values())
