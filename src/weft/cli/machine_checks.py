"""Checks of ``weft doctor`` that need no store: Python, packages, settings, the port, and the web UI."""

from __future__ import annotations

import platform
import re
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec

from weft.cli.checkup import DoctorLine, fail, ok, warn
from weft.core.findings import closest
from weft.errors import WeftError
from weft.extras import MODULES
from weft.settings import VARIABLES, given_variables, project_table

PYTHONS = ((3, 11), (3, 15))
"""The first version of Python that is supported, and the first that is not."""
PROBE_SECONDS = 2.0
BY_SCHEME = {"postgresql": "postgres", "postgres": "postgres", "https": "http", "http": "http"}


def check_python() -> Iterator[DoctorLine]:
    """Check the version of Python."""
    first, last = PYTHONS
    text = f"{platform.python_implementation()} {platform.python_version()}, {sys.executable}"
    if first <= sys.version_info[:2] < last:
        yield ok("python", text)
    else:
        yield fail("python", text, f"Weft supports Python {first[0]}.{first[1]} to {last[0]}.{last[1] - 1}.")


def check_packages() -> Iterator[DoctorLine]:
    """Check that all packages are there that Weft needs, and name its version."""
    needed = [line for line in requires("weft") or () if "extra ==" not in line]
    missing = [name for name in map(_package, needed) if not _is_installed(name)]
    if missing:
        yield fail(
            "packages", f"weft {version('weft')} lacks {', '.join(missing)}", "pip install --force-reinstall weft"
        )
        return
    shown = ", ".join(f"{name} {version(name)}" for name in ("apsw", "msgspec", "typer"))
    yield ok("packages", f"weft {version('weft')}, {len(needed)} packages, among them {shown}")


def _package(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    return found.group() if found is not None else requirement


def _is_installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def check_extras(address: str) -> Iterator[DoctorLine]:
    """Check that the extras are installed that the store or server needs, and list the others."""
    missing = {name: [one for one in modules if find_spec(one) is None] for name, modules in MODULES.items()}
    needed = BY_SCHEME.get(address.partition(":")[0], "")
    if needed and missing[needed]:
        todo = f'pip install "weft[{needed}]"'
        yield fail("extras", f"{needed} is not installed: {', '.join(missing[needed])} missing", todo)
    there = [name for name, modules in missing.items() if not modules]
    absent = [name for name, modules in missing.items() if modules and name != needed]
    text = f"installed: {', '.join(there) or 'none'}"
    yield ok("extras", f"{text}; not installed: {', '.join(absent)}" if absent else text)


def check_settings() -> Iterator[DoctorLine]:
    """Check for settings that nothing reads. Their values are not printed."""
    known = {setting.name for setting in VARIABLES}
    given = given_variables()
    for name in given:
        if name not in known:
            near = closest(name, known)
            meant = f"Did you mean {near}?" if near else "Unset it, or see docs/settings.md."
            yield warn("settings", f"{name} is set, and Weft has no such setting", meant)
    try:
        table = project_table()
    except WeftError as error:
        yield fail("settings", error.message, error.hint)
        return
    names = [name for name in given if name in known] + [f"[tool.weft] {name}" for name in table]
    yield ok("settings", f"set: {', '.join(names)}" if names else "none are set")


def check_web() -> Iterator[DoctorLine]:
    """Check that the files of the web UI are there."""
    if find_spec("uvicorn") is None:
        return
    from weft.server.web.files import installed_files

    if installed_files().index is not None:
        yield ok("web UI", "its files are installed")
    else:
        yield warn("web UI", "its files are not in this installation", "In a clone: make ui. The API works without it.")


def check_port(port: int) -> Iterator[DoctorLine]:
    """Check that weft serve can listen on a port, or that a server of Weft does."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            taken = error
        else:
            yield ok("port", f"{port} is free")
            return
    if _is_weft(port):
        yield ok("port", f"a server of Weft listens on {port}")
    else:
        todo = "Use another one: weft serve --port 8421"
        yield warn("port", f"{port} cannot be used: {taken.strerror}; another program may have it", todo)


def _is_weft(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=PROBE_SECONDS) as answer:
            return answer.status == 200 and b"status" in answer.read(1_000)
    except (OSError, ValueError, urllib.error.URLError):
        return False
