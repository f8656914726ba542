"""A chart as SVG, PNG or a self-contained HTML page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from html import escape
from importlib.util import find_spec
from pathlib import Path
from textwrap import wrap
from typing import Any

from ..unseen import plain
from .data import FOLDER, ChartError, load_spec
from .figure import Figure
from .gaps import stretches
from .steps_axis import fit_steps

SUBTITLE_COLUMNS = 100
# Pixels before the next panel's axis, and per character of the name at the end of a line; and its most characters.
LABEL_GAP, LABEL_WIDTH, LONGEST_LABEL = 24, 7, 24
THEMES = ("light", "dark")
VEGA_LITE = "6.4"  # the version in static/vega.mjs
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
FONT = "system-ui, 'Helvetica Neue', 'Noto Sans', 'DejaVu Sans', sans-serif"
# The drawing code, in the order in which a page has it, and what stands in a frame until it has drawn.
VEGA, SCRIPTS = "vega.mjs", ("chart_view.js", "chart.js", "charts.js")
WAITING = '<p class="waiting">Drawing …</p>'
MISSING = "Drawing SVG and PNG needs vl-convert-python: pip install 'datasette-rltracer[plot]' (HTML works without it)"


@cache
def _colours() -> dict[str, dict[str, Any]]:
    colours: dict[str, dict[str, Any]] = json.loads((FOLDER / "theme.json").read_text("utf-8"))
    return colours


def theme_config(theme: str) -> dict[str, Any]:
    """Return Vega-Lite's configuration for "light" or "dark", in colours that colour-blind people tell apart."""
    colours = _colours()[theme]
    ink, muted, rule = colours["ink"], colours["muted"], colours["rule"]
    return {
        "font": FONT,
        "padding": {"left": 5, "top": 5, "right": 12, "bottom": 5},
        "view": {"stroke": None},
        "title": {
            "anchor": "start", "frame": "group", "color": ink, "fontSize": 14, "fontWeight": 600, "offset": 12,
            "subtitleColor": muted, "subtitleFontSize": 11.5, "subtitlePadding": 4,
        },
        "axis": {
            "domain": False, "ticks": False, "grid": False, "gridColor": rule, "labelColor": muted, "titleColor": muted,
            "labelFontSize": 11, "titleFontSize": 11.5, "titleFontWeight": "normal", "labelPadding": 6,
        },
        "axisYQuantitative": {"grid": True, "gridOpacity": 0.7},
        "axisXQuantitative": {"domain": True, "domainColor": rule, "ticks": True, "tickColor": rule, "tickSize": 4},
        "header": {
            "labelColor": ink, "labelFontSize": 12, "labelFontWeight": 600, "labelAnchor": "start", "labelLimit": 260,
            "labelPadding": 6,
        },
        "legend": {"labelColor": ink, "titleColor": muted, "labelFontSize": 11, "titleFontSize": 11.5,
                   "titleFontWeight": "normal"},
        "range": {"category": colours["category"], "diverging": colours["diverging"], "outcome": colours["outcome"]},
        "line": {"strokeWidth": 1.8, "strokeCap": "round", "strokeJoin": "round"},
        "bar": {"color": colours["category"][0]},
        "rule": {"color": muted, "strokeWidth": 1},
        "text": {"color": ink, "fontSize": 11.5},
        "style": {
            "sign": {"color": colours["background"]}, "unread": {"color": rule, "opacity": 0.55},
            "unread_words": {"color": ink, "fontSize": 11},
        },
    }  # fmt: skip


def chart_spec(figure: Figure) -> dict[str, Any]:
    """Return the spec of a chart as it suits its rows, under a title that says what no page around it would."""
    spec = load_spec(figure.chart)
    spec["title"] = {"text": figure.title, "subtitle": _wrapped([spec["title"]["subtitle"], figure.basis])}
    encoding = (spec["spec"] if "facet" in spec else spec)["encoding"]
    if figure.rows and encoding["x"]["title"] == "step":
        drawn = [(row["step_first"], row["step_last"]) for row in figure.rows]
        fit_steps(encoding, [*drawn, *((gap.step_first, gap.step_last) for gap in figure.gaps)])
        if "facet" in spec:
            longest = max(len(str(row["split"] or "no split")) for row in figure.rows)
            room = LABEL_GAP + LABEL_WIDTH * min(longest, LONGEST_LABEL)
            spec["spacing"]["column"] = max(spec["spacing"]["column"], room)
    return spec


def _wrapped(texts: Iterable[str]) -> list[str]:
    return [line for text in texts for line in wrap(text, SUBTITLE_COLUMNS)]


def drawable_spec(figure: Figure, theme: str = "light") -> dict[str, Any]:
    """Return the spec of a chart with its rows, text alternative, colours and background in it.

    What its figures rest on stands beneath its title: a picture has no caption. No line goes across its gaps.
    """
    spec: dict[str, Any] = _shown(
        chart_spec(figure)
        | {"datasets": {"rows": _joined(figure), "gaps": _gaps(figure)}, "description": figure.description}
    )
    return spec | {"background": _colours()[theme]["background"], "config": theme_config(theme)}


def _shown(value: Any) -> Any:
    """Return a value of JSON whose texts hide nothing, and may stand in SVG: the converter ends the process at others.

    For files alone: from a page rows are asked for by the very names that they hold.
    """
    if isinstance(value, str):
        return NOT_XML.sub("\ufffd", plain(value))
    if isinstance(value, dict):
        return {name: _shown(one) for name, one in value.items()}
    return [_shown(one) for one in value] if isinstance(value, (list, tuple)) else value


def _joined(figure: Figure) -> list[dict[str, Any]]:
    joined = stretches(figure.rows, figure.gaps)
    return [{**row, "stretch": stretch} for row, stretch in zip(figure.rows, joined, strict=True)]


def _gaps(figure: Figure) -> list[dict[str, Any]]:
    """Return the gaps as rows, each with how many windows share the width of the chart with it."""
    found = sorted(figure.gaps, key=lambda gap: gap.step_first)
    steps = [(one["step_first"], one["step_last"]) for one in figure.rows] if found else []
    spanned = max(last for _, last in steps) - min(steps)[0] + 1 if steps else 0
    return [{**gap._asdict(), "windows": spanned / (gap.step_last - gap.step_first + 1)} for gap in found]


def render_svg(spec: dict[str, Any]) -> bytes:
    """Return a drawable spec as SVG. Raises ChartError where vl-convert-python is not installed."""
    svg: str = _converter().vegalite_to_svg(spec, vl_version=VEGA_LITE)
    return svg.encode()


def render_png(spec: dict[str, Any], scale: float = 2.0) -> bytes:
    """Return a drawable spec as PNG, `scale` pixels per unit. Raises ChartError like render_svg."""
    png: bytes = _converter().vegalite_to_png(spec, vl_version=VEGA_LITE, scale=scale)
    return png


def _converter() -> Any:
    try:
        import vl_convert
    except ImportError:
        raise ChartError(MISSING) from None
    return vl_convert


def chart_content(figure: Figure) -> dict[str, Any]:
    """Return what static/chart_view.js draws from: the spec, its rows, where lines break, its words and both themes."""
    return {
        "chart": figure.chart,
        "spec": chart_spec(figure),
        "rows": figure.rows,
        "stretches": stretches(figure.rows, figure.gaps),
        "gaps": _gaps(figure),
        "description": figure.description,
        "themes": {
            theme: {"background": _colours()[theme]["background"], "config": theme_config(theme)} for theme in THEMES
        },
    }


def render_html(figure: Figure) -> bytes:
    """Return a chart as one HTML page that loads nothing: the same drawing code as in the browser, written into it.

    What its figures rest on stands beneath its title, as in a picture, and what they say beneath the drawing.
    """
    static = _static_folder()
    content = json.dumps(_shown(chart_content(figure)), ensure_ascii=True).replace("<", "\\u003c")
    title, about = escape(figure.title), escape(load_spec(figure.chart)["usermeta"]["rltracer"]["about"])
    basis = f"\n<p>{escape(figure.basis)}</p>" if figure.basis else ""
    sources = [(static / name).read_text("utf-8") for name in (VEGA, *SCRIPTS)]
    scripts = "\n".join(f'<script type="module">{_inline(source)}</script>' for source in sources)
    styles = (static / "charts.css").read_text("utf-8")
    return f"""<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{styles}</style>
<body class="rltracer-chart-page">
<figure class="rltracer-chart" data-chart="{escape(figure.chart)}">
<h2>{title}</h2>
<p>{about}</p>{basis}
<script type="application/json">{content}</script>
<div class="drawing">{WAITING}<noscript>Drawing it needs JavaScript.</noscript></div>
<figcaption>{escape(figure.words)}</figcaption>
</figure>
{scripts}
</body>
</html>
""".encode(errors="replace")


def _static_folder() -> Path:
    # Found without importing the plugin, which would need Datasette.
    found = find_spec("datasette_rltracer")
    if found is None or not found.submodule_search_locations:
        raise ChartError("The package datasette_rltracer, which holds the drawing code, is not installed")
    return Path(next(iter(found.submodule_search_locations))) / "static"


def _inline(script: str) -> str:
    # A script element ends at this text wherever it stands, and JavaScript reads the escaped slash as a slash.
    return script.replace("</script", "<\\/script")
