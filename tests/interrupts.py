"""What a program of a test begins with, so that SIGINT reaches it as Ctrl-C does.

A suite that runs in the background of a shell ignores SIGINT, and what it starts inherits that.
"""

from __future__ import annotations

TAKE_INTERRUPTS = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
