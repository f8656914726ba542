"""The command line: `rltracer` with its subcommands, each imported when it is called.

The exit code of every command is by one rule. Where the command line is wrong by itself, whatever there is to read, it
is 2, and click.UsageError or BadParameter is raised: a command or an option that there is not, an argument that is
missing or in the wrong place, a value that can never be valid, options that exclude each other. Where what it names is
not there, is not one only, or cannot be read or written, it is 1, and click.ClickException or an error of the library
is raised: a file, a run, a step, a split, an environment, a prompt, a trajectory, a column. What was done, though it
found nothing, is 0; `stopped` and `closed_pipe` have the codes of what was ended from outside.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

# name: (module, help line). The help stands here so that listing the commands imports none of them.
COMMANDS = {
    "analyze": ("analyze", "Pass rates per prompt and window as CSV, JSON and a Markdown report."),
    "demo": ("demo", "Write a small sample run, index it and serve it with Datasette."),
    "export": ("export", "Write training data: SFT rows, RL prompts or preference pairs."),
    "fts": ("fts", "Make the prompts and messages of an index searchable."),
    "index": ("index", "Index runs into a SQLite database (the same as rltracer-index)."),
    "inspect": ("inspect", "Look at a run, a step, a prompt or a trajectory in the terminal."),
    "metadata": ("metadata", "Print Datasette metadata for an index."),
    "sources": ("sources", "List the kinds of files that are read, show a mapping, or propose one."),
    "plot": ("plot", "Draw a chart of an index in the terminal, or as SVG, PNG or HTML."),
    "success": ("success", "Show or change what counts as a success, without reading a file."),
    "retemplate": ("retemplate", "Replace the prompts of exported SFT rows by those of another template."),
    "search": ("search", "List the trajectories whose messages say some words."),
    "serve": ("serve", "Browse all runs below a folder, each step indexed when it is opened."),
    "runs": ("runs", "List the runs of an index, remove one, or say where it is now."),
    "roots": ("roots", "List, add or remove the folders that an index may lead to."),
}


CONTEXT = {"help_option_names": ["-h", "--help"]}


class Group(click.Group):
    """A group that answers an unknown command with the one that is meant, or whose name is most like it."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in (known := self.list_commands(ctx)) and not args[0].startswith("-"):
            from .slips import command_meant

            ctx.fail(f"No such command {args[0]!r}.{command_meant(args[0], known)}")
        return super().resolve_command(ctx, args)


class LazyGroup(Group):
    """A group whose subcommands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f".{COMMANDS[cmd_name][0]}", __name__)
        return module.command  # type: ignore[no-any-return]

    def invoke(self, ctx: click.Context) -> Any:
        from .stopped import LEFT, telling

        with telling(lambda: LEFT.get(ctx.invoked_subcommand or "", "")):
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in sorted(COMMANDS.items())])


@click.group(cls=LazyGroup, context_settings=CONTEXT)
@click.version_option(package_name="datasette-rltracer")
def group() -> None:
    """See what a model actually did: browse, query and export the rollouts of an RL training run.

    A command that shows figures of a run says on stderr what of it was not read: problems, files that are gone or wait
    for the end of a line, steps.

    What a command writes lies in a folder that is there; none is made for it. The exit code is 0 when all went well, 1
    when what is named, such as a file, a run, a step, a split or a prompt, is not there, or could not be read or
    written, 2 when the command line is wrong by itself, 130 or 143 where Ctrl-C or SIGTERM stopped it before it was
    done, and 141 where the reader of its output has left, as head does. A line that cannot be read is a
    problem, and a file that waits for the end of a line is read later: 0. What goes on until it is stopped, --watch,
    serve and demo, is done then: 0.
    """


def main() -> None:
    """Run `rltracer`; an error that a person can mend is one sentence and exit code 1."""
    run(group)


def run(command: click.Command) -> None:
    """Run a command, turning the library's own errors into a sentence on stderr."""
    from ..stopping import interrupts
    from .closed_pipe import closed_pipes
    from .stopped import is_interrupt, say_stopped

    _escape_what_cannot_be_printed()
    with closed_pipes(), interrupts() as exit_code:
        try:
            _run(command)
        except BaseException as error:
            if not is_interrupt(error):
                raise
            say_stopped(error)
        sys.exit(exit_code())


def _escape_what_cannot_be_printed() -> None:
    """Let a character that the encoding of a stream lacks be written as an escape, such as a bar in Latin-1."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() not in ("utf-8", "utf8"):
            from .visible import ESCAPING

            stream.reconfigure(errors=ESCAPING)


def _run(command: click.Command) -> NoReturn:
    from .say import say, show_error
    from .stopped import Interrupted, is_interrupt

    try:
        refuse_empty(sys.argv[1:])
        sys.exit(command.main(prog_name=None, standalone_mode=False))
    except (BrokenPipeError, Interrupted):
        raise
    except click.ClickException as error:
        from .slips import with_way_on

        show_error(with_way_on(error))
        sys.exit(error.exit_code)
    except Exception as error:  # the edge: what a person can mend is said in a sentence, anything else is a bug
        from .failures import explained  # which imports what only an error needs

        sentence = None if is_interrupt(error) else explained(error)
        if sentence is None:
            raise
        say(f"Error: {sentence}", err=True)
        sys.exit(1)


def refuse_empty(arguments: Sequence[str]) -> None:
    """Raise UsageError for an empty argument: most come of a variable that is not set, and would be as good as none."""
    for before, argument in zip(["", *arguments], arguments, strict=False):
        is_option = argument.startswith("--") and argument.endswith("=")
        if not argument or is_option:
            after = argument if is_option else before
            which = f"The argument after {after}" if after else "The first argument"
            raise click.UsageError(f"{which} is empty. Give it a value; the current folder is written as a dot.")
