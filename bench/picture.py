"""The bench's pictures, what decisions cost and what packing gains, as SVG that reads well in light and dark. For run.py."""
import math
import statistics

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 78, 150, 62, 58
STYLE = """
  .paper { fill: #ffffff } text { font: 14px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #24292f }
  .title { font-size: 17px; font-weight: 600 } .small { font-size: 13px; fill: #57606a } .grid { stroke: #d8dee4; stroke-width: 1 }
  .s0 { stroke: #0b62b8; fill: #0b62b8 } .s1 { stroke: #c2410c; fill: #c2410c } .s2 { stroke: #0f7b5f; fill: #0f7b5f }
  .s3 { stroke: #7c3aed; fill: #7c3aed } .s4 { stroke: #6e7781; fill: #6e7781 }
  polyline { fill: none !important; stroke-width: 2.5 } .spread { stroke-width: 1.5; opacity: .55 } text.name { stroke: #ffffff; stroke-width: 5; paint-order: stroke; font-weight: 600 }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117 } text { fill: #e6edf3 } .small { fill: #9da7b3 } text.name { stroke: #0d1117 } .grid { stroke: #30363d }
    .s0 { stroke: #6cb6ff; fill: #6cb6ff } .s1 { stroke: #ffa26b; fill: #ffa26b } .s2 { stroke: #57d3a8; fill: #57d3a8 }
    .s3 { stroke: #b79bff; fill: #b79bff } .s4 { stroke: #9da7b3; fill: #9da7b3 }
  }"""


def curve_svg(points):
    """`points` as engine_bench prints them: name, nodes, us_per_decision of each run. Both axes are logarithmic."""
    names = list(dict.fromkeys(point["name"] for point in points))
    sizes = sorted({point["nodes"] for point in points})
    low = 10 ** math.floor(math.log10(min(min(point["us_per_decision"]) for point in points)))
    high = 10 ** math.ceil(math.log10(max(max(point["us_per_decision"]) for point in points)))

    def x(nodes):
        share = math.log(nodes / sizes[0]) / math.log(sizes[-1] / sizes[0])
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def y(us):
        return round(HEIGHT - BOTTOM - math.log(us / low) / math.log(high / low) * (HEIGHT - TOP - BOTTOM), 1)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
           "<title>Engine: cost of one decision against the number of nodes</title>", f"<style>{STYLE}\n</style>",
           f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
           f'<text class="title" x="{LEFT}" y="28">One decision of the engine, in µs, against the number of nodes</text>',
           f'<text class="small" x="{LEFT}" y="48">median of the runs; the bars span all of them; both axes are logarithmic</text>']
    tick = low
    while tick <= high * 1.001:
        out += [f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick)}" y2="{y(tick)}"/>',
                f'<text class="small" x="{LEFT - 10}" y="{y(tick) + 5}" text-anchor="end">{tick:g} µs</text>']
        tick *= 10
    for nodes in sizes:
        out += [f'<line class="grid" y1="{TOP}" y2="{HEIGHT - BOTTOM}" x1="{x(nodes)}" x2="{x(nodes)}"/>',
                f'<text class="small" x="{x(nodes)}" y="{HEIGHT - BOTTOM + 22}" text-anchor="middle">{nodes:,}</text>']
    out.append(f'<text class="small" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">nodes</text>')
    for index, name in enumerate(names):
        own = sorted((point for point in points if point["name"] == name), key=lambda point: point["nodes"])
        at = [(x(point["nodes"]), y(statistics.median(point["us_per_decision"]))) for point in own]
        out.append(f'<g class="s{index % 3}"><polyline points="{" ".join(f"{a},{b}" for a, b in at)}"/>')
        for point, (a, b) in zip(own, at):
            spread = point["us_per_decision"]
            out += [f'<line class="spread" x1="{a}" x2="{a}" y1="{y(min(spread))}" y2="{y(max(spread))}"/>', marker(index, a, b)]
        out.append(f'<text class="name s{index % 3}" x="{at[-1][0] + 12}" y="{at[-1][1] + 5}">{name}</text></g>')
    return "\n".join([*out, "</svg>"]) + "\n"


def marker(index, a, b):
    """A shape of its own for each line, for those who see no difference between the colours."""
    if index % 3 == 0:
        return f'<circle cx="{a}" cy="{b}" r="5"/>'
    if index % 3 == 1:
        return f'<rect x="{a - 4.5}" y="{b - 4.5}" width="9" height="9"/>'
    return f'<path d="M{a} {b - 6} L{a + 5.5} {b + 4} L{a - 5.5} {b + 4} Z"/>'


def traces_svg(result, name="default"):
    """GPU allocation against what arrived, from 80 % on; the batch of all pods is a point, as it is planned at the end."""
    lists = result["lists"]
    one = next((found for found in lists if found["list"].endswith(name)), lists[0])
    curves = {way["name"]: way["curve"]["allocated"] for way in one["ways"]}
    first, last, low = 80, len(curves["fgd"]), 80
    shown = [("batch", "--batch all", "s2"), ("berth", "berth", "s0"), ("fgd", "fgd", "s1"), ("best-fit", "best-fit", "s3"),
             ("random", "random", "s4")]

    def x(arrived):
        return round(LEFT + (arrived - first) / (last - first) * (WIDTH - LEFT - RIGHT), 1)

    def y(percent):
        return round(HEIGHT - BOTTOM - (percent - low) / (100 - low) * (HEIGHT - TOP - BOTTOM), 1)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
           "<title>GPU allocation while pods arrive</title>", f"<style>{STYLE}\n</style>",
           f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
           f'<text class="title" x="{LEFT}" y="28">GPUs in use, of the fleet\'s, while pods arrive</text>',
           f'<text class="small" x="{LEFT}" y="48">list {one["list"].removeprefix("openb_pod_list_")}, seed '
           f'{result["first_seed"]}; the axes begin at {low} %</text>']
    for percent in range(low, 101, 5):
        out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(percent)}" y2="{y(percent)}"/>'
                   f'<text class="small" x="{LEFT - 8}" y="{y(percent) + 4}" text-anchor="end">{percent} %</text>')
    for arrived in range(first, last + 1, 10):
        out.append(f'<text class="small" x="{x(arrived)}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{arrived} %</text>')
    out.append(f'<text class="small" x="{x((first + last) / 2)}" y="{HEIGHT - 14}" text-anchor="middle">GPUs that the pods '
               "asked for, of the fleet's</text>")
    label = 0.0
    for key, words, color in shown:
        curve = curves[key]
        if key == "batch":
            out.append(f'<circle class="{color}" cx="{x(last)}" cy="{y(curve[-1])}" r="5"/>')
        else:
            points = " ".join(f"{x(p)},{y(max(curve[p - 1], low))}" for p in range(first, last + 1))
            out.append(f'<polyline class="{color}" points="{points}"/>')
        label = max(y(curve[-1]) + 5, label + 18)
        out.append(f'<text class="name" x="{WIDTH - RIGHT + 12}" y="{label}">{words} {curve[-1]:.1f} %</text>')
    return "\n".join(out + ["</svg>"]) + "\n"


def rows_svg(title, words, rows, series, axis):
    """One line for each of `rows` (its name and its values, in per cent) with a mark for each of `series` (name and colour):
    what was reached, one beside the other. At its right stands what the second gains over the first."""
    left, right, top, step = 260, 84, 96, 34
    height = top + step * len(rows) + BOTTOM
    low = 10 * math.floor(min(min(values) for _, values in rows) / 10)

    def x(percent):
        return round(left + (percent - low) / (100 - low) * (WIDTH - left - right), 1)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">', f"<title>{title}</title>",
           f"<style>{STYLE}\n</style>", f'<rect class="paper" width="{WIDTH}" height="{height}" rx="8"/>',
           f'<text class="title" x="24" y="28">{title}</text>', f'<text class="small" x="24" y="48">{words}</text>']
    for percent in range(low, 101, 10 if 100 - low > 30 else 5):
        out += [f'<line class="grid" x1="{x(percent)}" x2="{x(percent)}" y1="{top - 12}" y2="{height - BOTTOM}"/>',
                f'<text class="small" x="{x(percent)}" y="{height - BOTTOM + 20}" text-anchor="middle">{percent} %</text>']
    out.append(f'<text class="small" x="{x((low + 100) / 2)}" y="{height - 14}" text-anchor="middle">{axis}</text>')
    at = left
    for index, (name, color) in enumerate(series):
        out += [f'<g class="{color}">{marker(index, at, 70)}</g>', f'<text x="{at + 12}" y="75">{name}</text>']
        at += 12 + 8 * len(name) + 28
    out.append(f'<text class="small" x="{WIDTH - 16}" y="75" text-anchor="end">points</text>')
    for number, (name, values) in enumerate(rows):
        y = top + step * (number + 0.5)
        out += [f'<text x="{left - 16}" y="{y + 5}" text-anchor="end">{name}</text>',
                f'<line class="{series[1][1]}" stroke-width="2.5" x1="{x(values[0])}" x2="{x(values[1])}" y1="{y}" y2="{y}"/>']
        out += [f'<g class="{color}">{marker(index, x(value), y)}</g>' for index, ((_, color), value) in enumerate(zip(series, values))]
        out.append(f'<text x="{WIDTH - 16}" y="{y + 5}" text-anchor="end">{values[1] - values[0]:+.1f}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def mig_svg(result, stream="they leave, the rest is dropped", load=1.0):
    shown = [row for row in result["streams"] if (row["stream"], row["load"]) == (stream, load)]
    rows = [(row["mix"], [statistics.mean(run[who] for run in row["runs"]) for who in ("first_fit", "berth", "bound")])
            for row in shown]
    rows.append(("mean of the mixes", [statistics.mean(values[who] for _, values in rows) for who in range(3)]))
    return rows_svg("Memory slices allocated of 100 A100s, by mix of profiles",
                    f"slices leave, what finds no place is dropped; {100 * load:.0f} % of the fleet's slices are asked for", rows,
                    [("first-fit", "s1"), ("Berth", "s0"), ("at most", "s4")], "of the fleet's memory slices, mean over time; the axis does not begin at 0")


def sets_svg(rows):
    found = {(row["list"], row["weights"], row["as_a_set"]): row["allocated"] for row in rows}
    shown = [(f"{name}{', fragmentation-aware' if 'fragmentation' in weights else ''}",
              [found[name, weights, False], found[name, weights, True]])
             for name, weights in dict.fromkeys((row["list"], row["weights"]) for row in rows)]
    return rows_svg("GPUs allocated when all pods of a list wait at once", "default weights, and with fragmentation-aware: 5",
                    shown, [("one by one", "s1"), ("as a set", "s0")], "of the nodes' GPUs; the axis does not begin at 0")
