"""Programs that kill themselves in their middle, after so many calls, whatever the speed of the machine."""

from __future__ import annotations

import signal
import subprocess
import sys

from tests.faults.runs import REPOSITORY, SECONDS

# What is imported before the count begins is not counted: its calls depend on what was imported and compiled already.
PROGRAM = """
import os, signal, sys
left, since = int(sys.argv.pop(1)), {since!r}
def watch(frame, event, argument):
    global left, since
    if since and frame.f_code.co_name != since:
        return
    since = ""
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
{imports}
sys.setprofile(watch)
{command}
"""


def killed(imports: str, command: str, after: int, *arguments: object, since: str = "") -> bool:
    """Run a command that is killed when so many functions have been called or have returned since it began.

    With `since` they are counted from the first call of that function on. Say whether it was, and had not ended before.
    """
    program = PROGRAM.format(imports=imports, command=command, since=since)
    done = subprocess.run(
        [sys.executable, "-c", program, str(after), *map(str, arguments)],
        capture_output=True, text=True, check=False, cwd=REPOSITORY, timeout=SECONDS,
    )  # fmt: skip
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0
