"""Write the generated parts of the documentation, or check with --check that they are up to date."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ["README.md", "CHANGELOG.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md"))]


def main() -> int:
    from cogapp import Cog

    os.chdir(ROOT)  # the pages name files as a reader in the root does
    check = "--check" in sys.argv
    sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]
    flags = ["--check", "--diff"] if check else ["-r"]
    pages = [str(ROOT / page) for page in PAGES if "[[[cog" in (ROOT / page).read_text(encoding="utf-8")]
    failed = Cog().main(["cog", "-n", "UTF-8", *flags, *pages])
    return max(failed or 0, _metadata(check))


def _metadata(check: bool) -> int:
    from rltracer_sqlite.cli.metadata import as_yaml

    file, text = ROOT / "metadata.yml", as_yaml("run")
    if not check:
        file.write_text(text, encoding="utf-8")
    elif not file.exists() or file.read_text(encoding="utf-8") != text:
        print("metadata.yml is not up to date: run make docs")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
