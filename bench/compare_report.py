"""The table and the picture of bench/compare."""

import html
import math

BEGIN = "<!-- bench/compare writes from here -->"
END = "<!-- to here -->"

# Further figures of a row: what the table says of them, from its medians.
MORE = {
    "delivery": "delivery p50/p99 {delivery_p50:.2f}/{delivery_p99:.2f} ms",
    "confirm": "confirm p50/p99 {confirm_p50:.2f}/{confirm_p99:.2f} ms",
    "sync": "one 4 KiB append and fdatasync {sync_ms:.2f} ms",
    "drain": "drain {rate:,.0f} msg/s",
    "memory": "{rss_mb:.0f} MB resident",
    "growth": "{growth_mb:+.0f} MB in the second half",
    "wal-live": "live WAL {wal_live_mb:.0f} MB",
    "restart": "restart {restart_s:.2f} s, after kill -9 {restart_after_kill_s:.2f} s",
    "queue-kb": "a queue {queue_kb:.1f} KB",
    "start": "start with the queues {start_s:.2f} s",
}


def number(value):
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def short(result):
    """A line for those who watch."""
    return "  ".join(f"{key} {value if isinstance(value, bool) else number(value)}"
                     for key, value in result.items() if value is not None)


def further(row, median):
    """The row's other figures, as far as this broker has them."""
    parts = []
    for name in row.more:
        try:
            parts.append(MORE[name].format(**median))
        except KeyError:
            pass
    return parts


def cell(row, median):
    if median is None:
        return "–"
    return "<br>".join([number(median[row.main]), *further(row, median)])


def ratio(row, medians, peer):
    if row.unit != "msg/s" or peer not in medians or not medians[peer].get(row.main):
        return "–"
    return f"{medians['stoatd'][row.main] / medians[peer][row.main]:.2f}"


def table(medians, rows):
    lines = [
        "| workload | stoatd | RabbitMQ | ratio | ceiling | ratio | CPU µs/msg | elided | to reach "
        "| met |",
        "|---|--:|--:|--:|--:|--:|--:|--:|---|---|",
    ]
    for name, by_kind in medians.items():
        row = rows[name]
        own = by_kind["stoatd"]
        cpu = f"{own['cpu_us']:.2f}" if own.get("cpu_us") else "–"
        elided = f"{own['elided']:.0%}" if own.get("elided") is not None else "–"
        verdict = {True: "yes", False: "**no**", None: "–"}[row.reached(by_kind, medians)]
        if not all(median["clean"] for median in by_kind.values()):
            verdict += " (not clean)"
        lines.append(
            f"| {row.title}, {row.unit} | {cell(row, own)} | {cell(row, by_kind.get('rabbitmq'))} "
            f"| {ratio(row, by_kind, 'rabbitmq')} | {cell(row, by_kind.get('ceiling'))} "
            f"| {ratio(row, by_kind, 'ceiling')} | {cpu} | {elided} | {row.goal} | {verdict} |")
    return lines


# --- the picture ---

WIDTH, LEFT, RIGHT = 860, 330, 90
BAR, GAP, TOP = 13, 16, 44
BROKERS = (("stoatd", "stoatd"), ("rabbitmq", "RabbitMQ"), ("ceiling", "ceiling"))
STYLE = """
  text { font: 12px sans-serif; fill: #24292f }
  .title { font-weight: bold } .small { font-size: 11px; fill: #57606a }
  .stoatd { fill: #1a7f5a } .rabbitmq { fill: #d97706 } .ceiling { fill: #a8b1ba }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .small { fill: #9198a1 }
    .stoatd { fill: #3fb68b } .rabbitmq { fill: #f0a04b } .ceiling { fill: #59636e }
  }
"""


def picture(medians, rows):
    """Bars of messages a second on a logarithmic scale, a group for each workload."""
    shown = {name: by_kind for name, by_kind in medians.items() if rows[name].bars}
    values = [median[rows[name].main] for name, by_kind in shown.items()
              for median in by_kind.values() if median[rows[name].main] > 0]
    if not values:
        return None
    low = 10 ** math.floor(math.log10(min(values)))
    high = max(values)
    scale = (WIDTH - LEFT - RIGHT) / max(math.log10(high / low), 0.1)
    parts, y = [], TOP
    for name, by_kind in shown.items():
        kinds = [(kind, label) for kind, label in BROKERS if kind in by_kind]
        middle = y + len(kinds) * BAR / 2 + 4
        parts.append(f'<text x="{LEFT - 8}" y="{middle:.0f}" text-anchor="end">'
                     f"{html.escape(rows[name].title)}</text>")
        for kind, label in kinds:
            value = by_kind[kind][rows[name].main]
            width = max(math.log10(max(value, low) / low) * scale, 1)
            parts.append(f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{width:.0f}" '
                         f'height="{BAR - 2}"><title>{label} {number(value)}</title></rect>')
            parts.append(f'<text class="small" x="{LEFT + width + 5:.0f}" y="{y + BAR - 3}">'
                         f"{number(value)}</text>")
            y += BAR
        y += GAP
    legend, x = [], LEFT
    for kind, label in BROKERS:
        legend.append(f'<rect class="{kind}" x="{x}" y="18" width="11" height="11"/>'
                      f'<text x="{x + 16}" y="28">{label}</text>')
        x += 100
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" '
            f'viewBox="0 0 {WIDTH} {y}" role="img">')
    title = '<text class="title" x="8" y="28">Messages a second, logarithmic</text>'
    return "\n".join([head, f"<style>{STYLE}</style>", title, *legend, *parts, "</svg>", ""])


# --- the page ---

def write(page, machine, rounds, seconds, lines, svg):
    """Puts the table between the marks of the page, and the picture beside it."""
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise RuntimeError(f"{page} lacks the marks that the table goes between")
    middle = [BEGIN, "", f"Measured on {machine}: medians of {rounds} rounds, {seconds:g} s a plain "
              "row.", "", *lines, ""]
    if svg is not None:
        drawing = page.with_suffix(".svg")
        drawing.write_text(svg, encoding="utf-8")
        middle += [f"![Messages a second of each workload and broker]({drawing.name})", ""]
    page.write_text(before + "\n".join(middle) + END + after, encoding="utf-8")
