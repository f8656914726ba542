"""Small jobs in a simulated Linux sandbox, worked on through the tool `bash`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from random import Random

from .task import Attempt, Draft, Record, Task

MAX_TURNS = 8
SYSTEM = "You work in a Linux sandbox through the tool `bash`. When the job is done, report in one or two sentences."
FULL = "/var/log is full. Make 1 GB of space there, without stopping the worker and without losing its log file."
BUSY = "`/app/serve` does not start: its port 8080 is in use. Make it answer on http://localhost:$PORT/health."
NOT_JSON = "error: the arguments are not valid JSON, nothing was run"
LOOK = "head -n 2 /app/access.log"


def _tool(name: str, description: str, **parameters: str) -> Record:
    properties = {key: {"type": kind} for key, kind in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": [next(iter(properties))]}
    return {"type": "function", "name": name, "description": description, "parameters": schema}


TOOLS = (
    _tool("bash", "Run a command in the sandbox and return what it prints.", command="string", timeout="integer"),
    _tool("delegate", "Hand a part of the job to a fresh agent and return its report.", job="string"),
)


def access_log(seed: str, lines: int) -> list[str]:
    """Return the lines of a web server's log in which 500 is a status, a number of bytes and part of a path."""
    rng = Random(seed)
    log, second = [], 8 * 3600
    for _ in range(lines):
        second += rng.randrange(1, 40)
        clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
        path = rng.choice(("/", "/cart", "/login", "/search?q=tea", f"/item/{rng.randrange(480, 520)}", "/item/500"))
        status = rng.choice((200, 200, 200, 200, 304, 404, 500))
        size = rng.choice((500, 1500, rng.randrange(300, 9000)))
        client = f"10.0.3.{rng.randrange(2, 60)}"
        log.append(f'{client} - - [01/Sep/2026:{clock} +0000] "GET {path} HTTP/1.1" {status} {size}')
    return log


def count_errors(log: Sequence[str]) -> int:
    """Return how many lines have status 500."""
    return sum(line.split()[8] == "500" for line in log)


def _finish(draft: Draft, passed: bool, report: str | None) -> None:
    if report is None:
        draft.stop = "max_turns"
    else:
        draft.say(report)
    brevity = 1 - (draft.turns() - 1) / MAX_TURNS if passed else 0.0
    draft.score(passed, {"tests_passed": (float(passed), 1.0), "brevity": (brevity, 0.2)})


def _count(log: Sequence[str], draft: Draft, passed: bool, rng: Random) -> None:
    statuses = Counter(line.split()[8] for line in log)
    if passed:
        draft.bash(LOOK, "\n".join(log[:2]), "The format first. The status is the ninth field.")
        if rng.random() < 0.5:
            draft.bash("awk '$9 == 500' /app/access.log | wc -l", f"{statuses['500']}")
        else:
            table = "\n".join(f"{count:7} {status}" for status, count in sorted(statuses.items()))
            draft.bash("awk '{print $9}' /app/access.log | sort | uniq -c", table)
        value = statuses["500"]
    else:
        value = rng.choice((_grep_anywhere, _grep_line_end, _count_by_eye))(log, draft, rng)
    draft.bash(f"echo {value} > /app/answer.txt && cat /app/answer.txt", f"{value}")
    _finish(draft, passed, f"{value} requests were answered with status 500; the number is in /app/answer.txt.")


def _grep_anywhere(log: Sequence[str], draft: Draft, rng: Random) -> int:
    value = sum("500" in line for line in log)
    draft.bash("grep -c 500 /app/access.log", f"{value}", "Every line with a 500 in it is such a request.")
    draft.slip("is such a request")
    return value


def _grep_line_end(log: Sequence[str], draft: Draft, rng: Random) -> int:
    broken = '{"command": "grep -c \'500$\' /app/access.log'
    draft.answer(draft.call("bash", broken, "The status is at the end of the line, so I anchor it there."), NOT_JSON)
    draft.slip("at the end of the line")
    value = sum(line.endswith("500") for line in log)
    draft.bash("grep -c '500$' /app/access.log", f"{value}", "I forgot to close the string. Once more.")
    return value


def _count_by_eye(log: Sequence[str], draft: Draft, rng: Random) -> int:
    draft.bash("cat /app/access.log", "\n".join(log), "I print the file and count the lines.")
    draft.slip("count the lines")
    return count_errors(log) - rng.randrange(3, 9)


DISK = "Filesystem      Size  Used Avail Use% Mounted on\n/dev/vdb        4.0G  4.0G     0 100% /var/log"
SIZES = "96M\t/var/log/app/old.log.gz\n3.8G\t/var/log/app/worker.log\n4.0G\t/var/log"
USERS = "                     USER   PID ACCESS COMMAND\n/var/log/app/worker.log: app  412 F.... worker"


def _free_space(draft: Draft, passed: bool, rng: Random) -> None:
    draft.bash("df -h /var/log", DISK)
    draft.bash("du -ah /var/log | sort -h | tail -n 3", SIZES)
    report: str | None = None
    if passed:
        thought = "Is it in use? If a process holds it open, deleting it would not free the space."
        draft.bash("fuser -v /var/log/app/worker.log", USERS, thought)
        free = DISK.replace("4.0G     0 100%", "212M  3.8G   6%")
        draft.bash("truncate -s 0 /var/log/app/worker.log && df -h /var/log", free, "So I empty it in place.")
        report = "worker.log (3.8 GB) was emptied with `truncate`, and /var/log is at 6 %. The worker kept running."
    elif rng.random() < 0.5:
        draft.bash("rm /var/log/app/worker.log", "", "The big one is worker.log. Delete it, and its 3.8 GB are free.")
        draft.slip("Delete it")
        report = "I deleted worker.log. That frees 3.8 GB, so /var/log has space again."
    else:
        for tool in ("gzip", "xz", "bzip2", "gzip -1", "zstd", "gzip -9"):
            failed = f"{tool.split()[0]}: /var/log/app/worker.log: No space left on device"
            draft.bash(f"{tool} /var/log/app/worker.log", failed, "Compressing keeps the data and makes it smaller.")
            if tool == "gzip":
                draft.slip("Compressing")
    _finish(draft, passed, report)


START = ("/app/serve", "serve: listen tcp :8080: bind: Address already in use")
OWNER = ("ss -ltnp 'sport = :8080'", 'LISTEN 0 128 0.0.0.0:8080 0.0.0.0:* users:(("port-holder",pid=1,fd=3))')
TRIES = (
    ("kill 1", "bash: kill: (1) - Operation not permitted"),
    ("sudo kill 1", "bash: sudo: command not found"),
    ("fuser -k 8080/tcp", "8080/tcp:             1\nCould not kill process 1: Operation not permitted"),
    ("sleep 5; /app/serve", START[1]),
    ("pkill -f 8080; /app/serve", f"pkill: killing pid 1 failed: Operation not permitted\n{START[1]}"),
    ("cat /proc/1/cmdline", "/sbin/port-holder"),
)


def _port_in_use(draft: Draft, passed: bool, rng: Random) -> None:
    draft.bash(*START)
    draft.bash(*OWNER, "Somebody has the port. Whoever it is has to go.")
    report: str | None = None
    if rng.random() < 0.4:
        draft.bash("sed -i 's/8080/8081/' /app/config.toml.example", "", "Or I let the server use another port.")
        report = "The port is set to 8081 in the configuration, so the server will start now."
    else:
        for command, output in rng.sample(TRIES, len(TRIES)):
            draft.bash(command, output)
    _finish(draft, False, report)


def lose_sandbox(draft: Draft, passed: bool, rng: Random) -> None:
    """Stop in the middle of a command because the sandbox has died."""
    draft.call("bash", {"command": "sort /app/access.log | uniq -c | sort -rn"}, "Sort everything first.")
    draft.stop = "error"
    trace = 'Traceback (most recent call last):\n  File "sandbox.py", line 88, in run\nSandboxError: exit code 137'
    draft.errors = [{"type": "SandboxError", "message": "The sandbox stopped with exit code 137.", "traceback": trace}]


def compact(draft: Draft, passed: bool, rng: Random) -> None:
    """Fill the context, then go on from a summary: a second root in the message graph."""
    for command, output in (START, OWNER, TRIES[0], TRIES[2]):
        draft.bash(command, output)
    draft.last = None
    draft.add({"role": "system", "content": SYSTEM})
    summary = "Port 8080 is held by pid 1, which belongs to root; `kill` and `fuser -k` are not permitted."
    draft.add({"role": "user", "content": f"[The conversation so far was compacted.] {BUSY} {summary}"})
    draft.bash("ls /app", "README  config.toml.example  serve", "Not by force, then. What can be configured?")
    draft.info = {"compactions": 1}
    _finish(draft, False, "I could not start the server: port 8080 belongs to a process of root that I may not stop.")


def delegate(log: Sequence[str], draft: Draft, passed: bool, rng: Random) -> None:
    """Let a sub-agent count: a second root that is tied to the first by call and return."""
    value = count_errors(log)
    job = "Count the lines of /app/access.log whose ninth field is exactly 500. Report the number only."
    call = draft.call("delegate", {"job": job}, "Counting can be handed on; I write the file myself.")
    draft.last = None
    draft.add({"role": "system", "content": "You do one job in a Linux sandbox and report its result."})
    draft.add({"role": "user", "content": job})
    first = draft.call("bash", {"command": "awk '$9 == 500' /app/access.log | wc -l"})
    draft.tie(first, call, "subagent_call")
    draft.answer(first, f"{value}")
    reply = draft.say(f"{value}")
    draft.answer(call, f"{value}")
    second = draft.call("bash", {"command": f"echo {value} > /app/answer.txt"})
    draft.tie(second, reply, "subagent_return")
    draft.answer(second, "")
    _finish(draft, True, f"/app/answer.txt holds {value}, as counted by the other agent.")


def job(name: str, idx: int, prompt: str, answer: str, attempt: Attempt) -> Task:
    """Return a job in the sandbox as a task."""
    return Task(name, "shell-jobs", "ShellTask", idx, prompt, SYSTEM, answer, attempt, tools=TOOLS, max_turns=MAX_TURNS)


def count_job(name: str, idx: int, log: Sequence[str]) -> Task:
    """Return the job of counting a status in a log."""
    prompt = "How many requests in /app/access.log were answered with status 500? Write the number to /app/answer.txt."
    prompt += f" The log has {len(log)} lines."
    return job(name, idx, prompt, str(count_errors(log)), partial(_count, log))


LOG = access_log("requests", 300)
TRAIN = (
    count_job("count-500", 0, LOG),
    job("disk-full", 1, FULL, "1 GB free, worker alive", _free_space),
    job("port-in-use", 2, BUSY, "healthy", _port_in_use),
)
EVAL = (count_job("count-500-held-out", 100, access_log("more requests", 240)),)
delegate_count = partial(delegate, LOG)
