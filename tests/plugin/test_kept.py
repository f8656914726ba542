"""Which files browsers keep without asking again: ours, by an address that says what is in them."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from datasette.app import Datasette

from datasette_rltracer.kept import STATIC, static_url

NAMES = sorted(file.name for file in STATIC.iterdir())


async def get(datasette, url):
    return await datasette.client.get(url.removeprefix(datasette.setting("base_url").rstrip("/")))


@pytest.mark.asyncio
@pytest.mark.parametrize("base_url", ["/", "/prefix/"])
async def test_a_file_of_ours_is_kept_by_its_whole_address_only(base_url):
    datasette = Datasette(settings={"base_url": base_url})
    for name in NAMES:
        url = str(static_url(datasette, name))
        assert url.startswith(f"{base_url}-/static-plugins/")
        answer = await get(datasette, url)
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "max-age=31536000, immutable"
        for other in (urlsplit(url).path, f"{url}0", f"{url}&v=1", url.replace("?v=", "?w=")):
            assert "immutable" not in (await get(datasette, other)).headers.get("cache-control", "")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/-/static-plugins/datasette-rltracer/no.js", 404),
        ("/-/static-plugins/datasette-rltracer/../charts.js", 404),
        ("/-/static-plugins/other/charts.js", 404),
        ("/", 200),
    ],
)
async def test_nothing_else_is_kept(path, status):
    datasette = Datasette()
    version = static_url(datasette, "charts.js").rpartition("?")[2]
    for query in ("", "?v=", f"?{version}", "?v=%ff"):
        answer = await datasette.client.get(path + query)
        assert answer.status_code == status
        assert "immutable" not in answer.headers.get("cache-control", "")
