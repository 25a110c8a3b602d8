"""``weft init``: make a small project that runs, with a test, a Dockerfile and a README."""

from __future__ import annotations

import re
import shlex
from importlib.resources import files
from pathlib import Path
from string import Template

from weft.cli.messages import say
from weft.errors import Refused, UsageError

FILES = {
    "app.py": "app.py.in",
    "test_app.py": "test_app.py.in",
    "pyproject.toml": "pyproject.toml.in",
    "Dockerfile": "Dockerfile.in",
    ".dockerignore": "dockerignore.in",
    ".gitignore": "gitignore.in",
    "README.md": "README.md.in",
}
"""The files of a new project, and the templates that they are made from."""
OF_GIT = {".git"}
"""What an empty directory may have."""


def make_project(folder: str) -> None:
    """Write the files of a new project into a directory that is new or empty. Raises Refused, UsageError."""
    path = Path(folder).absolute()
    names = {"name": _title(path.name) or "weft", "package": package_name(path.name)}
    templates = files("weft.cli") / "project"
    texts = {name: Template((templates / one).read_text("utf-8")).substitute(names) for name, one in FILES.items()}
    try:
        _check_empty(path)
        path.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            with (path / name).open("x", encoding="utf-8") as file:
                file.write(text)
    except FileExistsError as error:
        raise Refused(f"{error.filename} appeared meanwhile, and was not changed.") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.", hint="Name another directory.") from None
    print(path, flush=True)
    inside = "" if path == Path.cwd() else f"cd {shlex.quote(folder)} && "
    say(
        f"{', '.join(FILES)}",
        f"Run it: {inside}weft run order order_id=o-1",
        "Test it: pytest. Serve it, with the web UI: weft dev",
    )


def _check_empty(path: Path) -> None:
    if path.is_dir():
        found = sorted(one.name for one in path.iterdir() if one.name not in OF_GIT)
        if found:
            more = f" and {len(found) - 1} more" if len(found) > 1 else ""
            raise Refused(
                f"{path} is not empty: it has {found[0]}{more}. Nothing was written.",
                hint="Name a new directory: weft init shop",
                code="usage.not_empty",
            )
    elif path.exists():
        raise UsageError(f"{path} is a file.", hint="Name a new directory: weft init shop")


def _title(text: str) -> str:
    """Return a name for sentences of a project, without what ends a text of Python."""
    return re.sub(r'["\\\x00-\x1f\x7f-\x9f\u2028\u2029]+', " ", text).strip()


def package_name(text: str) -> str:
    """Return a name for the package of a project that every tool accepts."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return plain or "weft-app"
