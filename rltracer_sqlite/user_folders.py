"""Where this user's own files are: the list of roots, and what is kept to save time. RLTRACER_HOME moves both."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "RLTRACER_HOME"


def config_folder() -> Path:
    """Return the folder of the list of roots: that of the user's configuration, or RLTRACER_HOME itself."""
    if home := os.environ.get(VARIABLE):
        return Path(home)
    from platformdirs import user_config_path

    return user_config_path("rltracer")


def cache_folder() -> Path:
    """Return the folder of what can be made again: the user's cache folder, or `cache` in RLTRACER_HOME."""
    if home := os.environ.get(VARIABLE):
        return Path(home) / "cache"
    from platformdirs import user_cache_path

    return user_cache_path("rltracer")
