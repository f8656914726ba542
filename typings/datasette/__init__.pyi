# What this project uses of Datasette, which has no types of its own: the lines 0.65 and 1.0 together. A name that only
# one of them has says so, and is used in datasette_rltracer/compat.py alone.
from pluggy import HookimplMarker

hookimpl: HookimplMarker
