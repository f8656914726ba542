"""The form of the export page: where it is, and what it sends as it stands."""

from __future__ import annotations

import re

PAGE = "/-/rltracer/run/export"


def form_fields(html: str) -> dict[str, str]:
    """Return what the form of the export page sends as it stands, the boxes without a tick as an empty text."""
    form = re.sub(r"<button.*?>", "", html.partition('<form class="export"')[2].partition("</form>")[0])
    fields = dict(re.findall(r'<input type="(?:number|text|hidden)" name="([^"]+)" value="([^"]*)"', form))
    fields |= dict.fromkeys(re.findall(r'type="checkbox" name="([^"]+)" value="1">', form), "")
    for name, options in re.findall(r'<select name="([^"]+)">(.*?)</select>', form, re.DOTALL):
        fields[name] = (re.findall(r'value="([^"]*)" selected', options) or [""])[0]
    return fields
