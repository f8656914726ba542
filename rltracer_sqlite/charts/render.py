"""A chart as SVG, PNG or a self-contained HTML page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.util import find_spec
from pathlib import Path
from textwrap import wrap
from typing import Any

from .data import FOLDER, ChartError, load_spec

SUBTITLE_COLUMNS = 100
THEMES = ("light", "dark")
VEGA_LITE = "6.4"  # the version in static/vega.mjs
FONT = "system-ui, 'Helvetica Neue', 'Noto Sans', 'DejaVu Sans', sans-serif"
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
        "style": {"sign": {"color": colours["background"]}},
    }  # fmt: skip


def drawable_spec(
    chart: str,
    rows: list[dict[str, Any]],
    description: str,
    theme: str = "light",
    unread: str = "",
    stretches: Sequence[int] = (),
) -> dict[str, Any]:
    """Return the spec of a chart with its rows, text alternative, colours and background in it.

    What was not read stands beneath its title: a picture has no caption. A line joins rows whose `stretches`, as
    `gaps.stretches` gives them, are equal.
    """
    spec = load_spec(chart)
    if stretches:
        rows = [{**row, "stretch": stretch} for row, stretch in zip(rows, stretches, strict=True)]
    if unread:
        spec["title"]["subtitle"] = [spec["title"]["subtitle"], *wrap(unread, SUBTITLE_COLUMNS)]
    spec.update(
        datasets={"rows": rows},
        description=description,
        background=_colours()[theme]["background"],
        config=theme_config(theme),
    )
    return spec


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


def chart_content(
    chart: str, rows: list[dict[str, Any]], description: str, stretches: Sequence[int] = ()
) -> dict[str, Any]:
    """Return what static/charts.js draws from: the spec, its rows, where lines break, its words and both themes."""
    return {
        "chart": chart,
        "spec": load_spec(chart),
        "rows": rows,
        "stretches": list(stretches),
        "description": description,
        "themes": {
            theme: {"background": _colours()[theme]["background"], "config": theme_config(theme)} for theme in THEMES
        },
    }


def render_html(chart: str, rows: list[dict[str, Any]], description: str, stretches: Sequence[int] = ()) -> bytes:
    """Return a chart as one HTML page that loads nothing: the same drawing code as in the browser, written into it."""
    static = _static_folder()
    content = json.dumps(chart_content(chart, rows, description, stretches), ensure_ascii=True).replace("<", "\\u003c")
    title = escape(load_spec(chart)["usermeta"]["rltracer"]["title"])
    sources = [(static / name).read_text("utf-8") for name in ("vega.mjs", "charts.js")]
    scripts = "\n".join(f'<script type="module">{_inline(source)}</script>' for source in sources)
    styles = (static / "charts.css").read_text("utf-8")
    return f"""<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{styles}</style>
<body class="rltracer-chart-page">
<figure class="rltracer-chart" data-chart="{escape(chart)}">
<script type="application/json">{content}</script>
</figure>
{scripts}
</body>
</html>
""".encode()


def _static_folder() -> Path:
    # Found without importing the plugin, which would need Datasette.
    found = find_spec("datasette_rltracer")
    if found is None or not found.submodule_search_locations:
        raise ChartError("The package datasette_rltracer, which holds the drawing code, is not installed")
    return Path(next(iter(found.submodule_search_locations))) / "static"


def _inline(script: str) -> str:
    # A script element ends at this text wherever it stands, and JavaScript reads the escaped slash as a slash.
    return script.replace("</script", "<\\/script")
