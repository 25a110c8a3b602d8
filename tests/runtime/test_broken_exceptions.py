"""An exception of user code that cannot be formatted is a failure like any other: the host goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import weft
from tests.code.desk import Desk


def interrupt(*_: Any) -> Any:
    raise KeyboardInterrupt("formatting")


class NoArgs(ValueError):
    args = property(interrupt)  # type: ignore[assignment]


class NoText(ValueError):
    __str__ = interrupt
    __repr__ = interrupt


class NoTraceback(ValueError):
    __traceback__ = property(interrupt)  # type: ignore[assignment]


class NoNotes(ValueError):
    __notes__ = property(interrupt)  # type: ignore[assignment]


class NoCause(ValueError):
    __cause__ = property(interrupt)  # type: ignore[assignment]


class NoAttributes(ValueError):
    __dict__ = property(interrupt)  # type: ignore[assignment]


class NoMarks(ValueError):
    in_doubt = property(interrupt)
    retry_after_ms = property(interrupt)


class SilentTimeout(TimeoutError):
    __str__ = interrupt


class SilentRuntimeError(RuntimeError):
    __str__ = interrupt


class SilentStop(StopIteration):
    __str__ = interrupt


class Leaves(ValueError):
    def __str__(self) -> str:
        raise SystemExit(3)


BROKEN = {
    cls.__name__: cls
    for cls in (
        NoArgs,
        NoText,
        NoTraceback,
        NoNotes,
        NoCause,
        NoAttributes,
        NoMarks,
        SilentTimeout,
        SilentRuntimeError,
        SilentStop,
        Leaves,
    )
}
app = weft.App("memory://")
declared: list[type[BaseException]] = [cls for cls in BROKEN.values() if not issubclass(cls, StopIteration)]


@app.step(timeout="1m")
async def on_the_loop(name: str) -> None:
    raise BROKEN[name]("out")


@app.step(effect="irreversible")
def in_a_thread(name: str) -> None:
    raise BROKEN[name]("out")


@app.step(raises=declared)
async def as_itself(name: str) -> None:
    raise BROKEN[name]("out")


@app.step(run_in="process")
def in_a_process(name: str) -> None:
    raise BROKEN[name]("out")


@app.workflow
async def calls(ctx: weft.Context, name: str) -> list[bool]:
    found: list[Any] = [await ctx.try_step(call) for call in (on_the_loop(name), in_a_thread(name), as_itself(name))]
    try:
        await as_itself(name)
    except Exception as error:
        found.append(weft.Err(weft.Failure(type(error).__name__, "")))
    return [isinstance(one, weft.Err) for one in found]


@app.workflow
async def raises(ctx: weft.Context, name: str) -> None:
    raise BROKEN[name]("out")


@app.workflow
async def raises_in_branches(ctx: weft.Context, name: str) -> None:
    async def part() -> None:
        raise BROKEN[name]("out")

    await ctx.join("parts", {"a": part(), "b": part()})


@app.workflow
async def elsewhere(ctx: weft.Context, names: list[str]) -> list[str]:
    found = [await ctx.try_step(in_a_process(name)) for name in names]
    return [one.failure.type for one in found if isinstance(one, weft.Err)]


@pytest.mark.parametrize("name", BROKEN)
def test_a_step_fails_with_an_exception_that_cannot_be_formatted(name: str) -> None:
    assert Desk(app).run(calls(name)) == [True] * 4


@pytest.mark.parametrize("workflow", [raises, raises_in_branches], ids=lambda one: str(one.name))
@pytest.mark.parametrize("name", BROKEN)
def test_a_run_fails_with_an_exception_that_cannot_be_formatted(name: str, workflow: Any) -> None:
    assert Desk(app).fail(workflow(name)).type in (name, "BranchesFailed", "RuntimeError")


def test_an_exception_of_another_process_cannot_be_formatted() -> None:
    async def scenario() -> list[str]:
        async with app:
            handle = await app.start(elsewhere(["NoArgs", "NoText"]))
            return await handle.result(timeout="60s")

    assert asyncio.run(scenario()) == ["NoArgs", "NoText"]
