"""The frame of a chart in a page, which the browser draws it into, with the scripts for it, and a page of one alone."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from markupsafe import Markup

from rltracer_sqlite.amounts import LONGEST_NAME, shortened_name
from rltracer_sqlite.charts import Filters, load_spec
from rltracer_sqlite.charts.render import SCRIPTS, VEGA, WAITING

from .addresses import overview_url, run_url
from .chart_filters import chart_url, charts_url
from .frame import urls_beside
from .kept import static_url
from .text import plain, visible

if TYPE_CHECKING:
    from datasette.app import Datasette


def frame_of(datasette: Datasette, database: str, chart: str, filters: Filters) -> Markup:
    """Return the frame of a chart, with its title and what it shows: without JavaScript, a link to its numbers."""
    about = load_spec(chart)["usermeta"]["rltracer"]
    url = chart_url(datasette, database, chart, filters, ".json")
    return Markup(
        '<figure class="rltracer-chart" data-chart="{}" data-url="{}" id="chart-{}"><h2>{}</h2><p>{}</p>'
        '<div class="drawing">{}<noscript><a href="{}">The numbers as JSON</a>; drawing them needs JavaScript.'
        "</noscript></div></figure>"
    ).format(chart, url, chart, about["title"], about["about"], Markup(WAITING), url)


def scripts(datasette: Datasette) -> Markup:
    """Return what draws the frames of a page: Vega, which is fetched beside the page and run when a chart needs it."""
    link = Markup('<link rel="modulepreload" id="rltracer-vega" fetchpriority="low" href="{}">')
    script = Markup('<script type="module" src="{}"></script>')
    lines = [link.format(static_url(datasette, VEGA)), *(script.format(static_url(datasette, one)) for one in SCRIPTS)]
    return Markup("\n").join(lines)


def _way(datasette: Datasette, database: str, filters: Filters, run: str) -> Markup:
    """Return the links that stand above every page of ours, down to all charts with the same filters."""
    ways = (
        (datasette.urls.instance(), "home"),
        (datasette.urls.database(database), visible(database)),
        (overview_url(datasette, database), "rollouts"),
        (run_url(datasette, database, filters.run_id), Markup("run: ") + visible(shortened_name(run, LONGEST_NAME))),
        (charts_url(datasette, database, filters), "charts"),
    )
    return Markup(" / ").join(_link(address, words) for address, words in ways)


def _beside(datasette: Datasette, database: str, run_id: int) -> Markup:
    """Return the links that stand beside that way on every page of ours of a run: search and export stay in it."""
    urls = urls_beside(datasette, database, [("run_id", str(run_id))])
    named = {"runs": urls["browse_url"], "search": urls["search_url"], "export": urls["export_url"]}
    return Markup(" ").join(_link(address, words) for words, address in named.items() if address)


def _link(address: str, words: str) -> Markup:
    return Markup('<a href="{}">{}</a>').format(address, words)


def page_of_one(datasette: Datasette, database: str, chart: str, filters: Filters, run: str) -> str:
    """Return the HTML of a page that has one chart alone, and above it what all pages have; `run` is the run's name."""
    title = load_spec(chart)["usermeta"]["rltracer"]["title"]
    return f"""<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}: {escape(plain(run))}</title>
<link rel="stylesheet" href="{escape(static_url(datasette, "charts.css"))}">
<body class="rltracer-chart-page">
<nav class="way" aria-label="Way to this page">{_way(datasette, database, filters, run)} / \
<span aria-current="page">{escape(title)}</span></nav>
<nav class="beside-crumbs" aria-label="Search and export">{_beside(datasette, database, filters.run_id)}</nav>
{frame_of(datasette, database, chart, filters)}
{scripts(datasette)}
</body>
</html>
"""
