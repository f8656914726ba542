"""The command line of the fuzz targets."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from traceback import format_exception

import click

from .engines import has_atheris, run_atheris, run_random
from .target import MODULES, target_named

FOLDER = Path(__file__).parent


@click.command()
@click.argument("name", metavar="TARGET", type=click.Choice(sorted(MODULES)), required=False)
@click.option("--seconds", type=click.IntRange(1), default=60, show_default=True, help="How long to run.")
@click.option("--engine", type=click.Choice(["atheris", "random"]), help="Default: atheris, where it is installed.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random engine.")
@click.option("--work", type=click.Path(path_type=Path), default=Path("build/fuzz"), show_default=True,
              help="Where the corpus and inputs that fail are kept.")  # fmt: skip
@click.option("--replay", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Give one file once.")
def main(name: str | None, seconds: int, engine: str | None, seed: int, work: Path, replay: Path | None) -> None:
    """Give TARGET changed inputs until the time is over or what must hold does not. Without a TARGET, list them."""
    if name is None:
        for known in MODULES:
            click.echo(f"{known:15} {target_named(known).says}")
        return
    if replay:
        target_named(name).check(replay.read_bytes())
        click.echo("It holds.")
        return
    if (engine or ("atheris" if has_atheris() else "random")) == "atheris":
        run_atheris(name, work / name / "corpus", seconds, work / name / "failed")
        return
    ran = run_random(target_named(name), seconds, seed=seed)
    if ran.crash is not None and ran.error is not None:
        file = work / name / "failed" / sha256(ran.crash).hexdigest()[:16]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(ran.crash)
        click.echo("".join(format_exception(ran.error)), err=True)
        raise click.ClickException(f"The target failed after {ran.executions:,} executions; the input is in {file}.")
    click.echo(f"{ran.executions:,} executions in {ran.seconds:.0f} s, none failed.")


if __name__ == "__main__":
    main()
