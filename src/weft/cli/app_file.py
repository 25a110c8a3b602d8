"""Import the user's file, find the ``weft.App`` in it, and explain what is wrong if there is none."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from weft.authoring.app import App
from weft.authoring.runnable import Runnable
from weft.core.findings import did_you_mean
from weft.errors import RunAtImport, UnknownWorkflow, UsageError, WeftError


class LoadedApp(msgspec.Struct, frozen=True):
    """An app, and the name of its file or module as the user wrote it."""

    app: App
    name: str

    def workflow(self, name: str) -> Runnable[Any]:
        """Return the newest version of a workflow of any style. Raises UnknownWorkflow, which names the file."""
        try:
            return self.app.registered.runnable_named(name)
        except UnknownWorkflow:
            names = self.app.registered.runnable_names()
            known = f"Known: {', '.join(names[:20])}." if names else "The app has no workflows: use @app.workflow."
            near = did_you_mean(name, names)
            message = f'No workflow "{name}" in {self.name}.{f" {near}" if near else ""}'
            raise UnknownWorkflow(message, hint=known) from None


def load_app(target: str, command: str = "a weft command") -> LoadedApp:
    """Load ``app.py``, ``app.py:name``, ``shop.app`` or ``shop.app:name``. Raises UsageError, RunAtImport."""
    place, _, name = target.partition(":") if not _is_drive(target) else (target, "", "")
    path = Path(place)
    is_file = path.suffix == ".py" or path.is_file()
    if is_file and not path.is_file():
        raise UsageError(f"There is no file {place}.", hint=f"Python files here: {_files_here()}")
    with _importing(place, command):
        module = _import_file(path) if is_file else _import_module(place)
    return LoadedApp(_app_in(module, place, name), place)


def file_of_app(target: str) -> Path:
    """Return the file of ``app.py:name``, or of the module of ``shop.app:name``, as far as it can be found."""
    place = target if _is_drive(target) else target.partition(":")[0]
    path = Path(place)
    if path.suffix == ".py" or path.is_file():
        return path.resolve()
    return Path.cwd().joinpath(*place.split(".")).resolve()


def _is_drive(target: str) -> bool:
    return len(target) > 2 and target[1] == ":" and target[2] in "/\\" and ":" not in target[2:]


def _files_here() -> str:
    names = sorted(path.name for path in Path().glob("*.py"))
    return f"{', '.join(names[:8])}{' …' if len(names) > 8 else ''}" if names else "none"


def _import_file(path: Path) -> ModuleType:
    """Import a file as ``python app.py`` would: its folder is on the path, and the module has the name of the file."""
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    # A file with the name of a loaded module, such as types.py, must not replace that module.
    name = path.stem if path.stem not in sys.modules else f"{path.stem}_app"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _import_module(name: str) -> ModuleType:
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    return importlib.import_module(name)


@contextmanager
def _importing(place: str, command: str) -> Iterator[None]:
    """Turn every exception during an import into an error that names the file."""
    os.environ["WEFT_IMPORTING"] = place
    try:
        yield
    except RunAtImport as error:
        called = error.context.get("called", "app.run()")
        raise RunAtImport(f"{place} calls {called} while {command} imports it.", hint=error.hint) from error
    except WeftError:
        raise
    except SystemExit as error:
        raise UsageError(
            f"{place} exits while it is imported.", hint='Put that code under: if __name__ == "__main__":'
        ) from error
    except Exception as error:
        raise UsageError(
            f"{place} cannot be imported: {_describe(error)}", hint="Correct the file, or name another one."
        ) from error
    finally:
        del os.environ["WEFT_IMPORTING"]


def _describe(error: Exception) -> str:
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg} ({Path(error.filename or '?').name}:{error.lineno})."
    # Name the innermost line of the user's code, not of the import system.
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith("<frozen")]
    users = [frame for frame in frames if Path(frame.filename) != Path(__file__) and "importlib" not in frame.filename]
    where = f" ({Path(users[-1].filename).name}:{users[-1].lineno})" if users else ""
    return f"{type(error).__name__}: {error}{where}."


def _app_in(module: ModuleType, place: str, name: str) -> App:
    if name:
        found = getattr(module, name, None)
        if isinstance(found, App):
            return found
        raise UsageError(f"{name} in {place} is not a weft.App.", hint=f"Apps there: {_app_names(module)}")
    apps = _apps(module)
    if len(set(map(id, apps.values()))) == 1:
        return next(iter(apps.values()))
    if not apps:
        raise UsageError(f"There is no weft.App in {place}.", hint="Add a line such as: app = weft.App()")
    raise UsageError(f"{place} has several apps: {', '.join(apps)}.", hint=f"Name one: {place}:{next(iter(apps))}")


def _apps(module: ModuleType) -> dict[str, App]:
    return {name: value for name, value in vars(module).items() if isinstance(value, App)}


def _app_names(module: ModuleType) -> str:
    return ", ".join(_apps(module)) or "none"
