"""Record the calls of steps in a world, and answer them with fakes. Both survive crashes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from weft.authoring.app import App
from weft.authoring.resources import Resource
from weft.authoring.steps import Step
from weft.core.effects import PerformTask
from weft.core.ids import EntryId, RunUid
from weft.errors import UsageError
from weft.runtime.worker.flight import Flight
from weft.steps.codec import Codec
from weft.steps.task import MODEL, Executor, PerformedElsewhere, StepBody

if TYPE_CHECKING:
    from weft.testing.models import ModelBook
    from weft.testing.recorded_tools import RecordedTools


class StepCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a step, performed or answered by its fake."""

    args: dict[str, Any]
    """The arguments by name, as the function gets them."""
    key: str
    """The idempotency key, which is the same in every attempt and after a crash."""
    attempt: int
    run_id: str


class CallBook:
    """All calls of a world, and its fakes."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._calls: dict[str, list[StepCall]] = {}
        self._fakes: dict[str, list[Any]] = {}
        self._given: dict[tuple[str, str, int], int] = {}
        self._resources: dict[str, Any] = {}
        self._models: ModelBook | None = None
        self.recorded: RecordedTools | None = None
        """Recorded results, which answer all steps that have no fake."""
        self.places: dict[tuple[RunUid, EntryId], tuple[str, str]] = {}
        """The step and location of every dispatched task."""

    def name_of(self, step: object) -> str:
        """Return the registered name of a step. Raises UsageError if it is neither a step nor a name."""
        if isinstance(step, Step):
            return step.body.name
        if isinstance(step, str):
            return step
        raise UsageError(f"{step!r} is not a step.", hint="Pass a function with @app.step, or the name of a ctx.step.")

    def fake(self, step: object, results: tuple[Any, ...]) -> None:
        if isinstance(step, Resource):
            self._fake_resource(step, results)
            return
        name = self.name_of(step)
        if not results:
            raise UsageError(f"world.fake({name}) has no results.", hint="Pass results or exceptions.")
        self._fakes[name] = list(results)
        self._given = {place: n for place, n in self._given.items() if place[0] != name}

    def _fake_resource(self, resource: Resource[Any], values: tuple[Any, ...]) -> None:
        if len(values) != 1:
            raise UsageError(
                f"world.fake({resource.name}) has {len(values)} values, but a resource is faked by one.",
                hint="Pass what the steps get, or an exception if it cannot be opened.",
            )
        self._resources[resource.name] = values[0]

    def faked_resource(self, resource: Resource[Any]) -> tuple[bool, Any]:
        """Return whether a resource is faked, and by what."""
        return resource.name in self._resources, self._resources.get(resource.name)

    def calls(self, step: object) -> list[StepCall]:
        return list(self._calls.get(self.name_of(step), ()))

    def watched(self, flight: Flight) -> StepBody | None:
        """Return a step body that records its calls in this book."""
        effect = flight.effect
        self.places[flight.uid, effect.task] = (effect.step, effect.location)
        if effect.step == MODEL and effect.step not in self._fakes:
            return self._asking_model(flight)
        if flight.body is None and effect.step not in self._fakes and self.recorded is None:
            return None
        return FakedStep(self, flight.body, effect, flight.run_id)

    @property
    def models(self) -> ModelBook:
        """The scripts and calls of models. What they need is imported with the first one."""
        if self._models is None:
            from weft.testing.models import ModelBook  # noqa: PLC0415

            self._models = ModelBook()
        return self._models

    def _asking_model(self, flight: Flight) -> StepBody | None:
        """Return the body of a model call that asks a scripted model."""
        from weft.agents.models.step import ModelStep  # noqa: PLC0415 - only worlds with models import it

        body = flight.body
        if not isinstance(body, ModelStep):
            return body
        return body.asking(self.models.ports(self._app.registered.models.aliases, flight.effect, flight.run_id))

    def note(self, effect: PerformTask, run_id: str, args: dict[str, Any]) -> None:
        call = StepCall(args=args, key=effect.key, attempt=effect.attempt, run_id=run_id)
        self._calls.setdefault(effect.step, []).append(call)

    def arguments(self, step: str, given: bytes) -> dict[str, Any]:
        found = self._app.registered.find_step(step)
        return found.signature.unpack(given, what=found.name) if found is not None else {}

    def result_codec(self, step: str) -> Codec[Any]:
        found = self._app.registered.find_step(step)
        return found.signature.result if found is not None else Codec.of(Any)

    def answer(self, effect: PerformTask) -> tuple[bool, Any]:
        """Return whether this call is faked, and the result of the fake.

        Each attempt gets the next result. An attempt that is dispatched again gets the same result.
        """
        fakes = self._fakes.get(effect.step)
        if fakes is None:
            return False, None
        place = (effect.step, effect.key, effect.attempt)
        if place not in self._given:
            self._given[place] = sum(1 for step, _, _ in self._given if step == effect.step)
        return True, fakes[min(self._given[place], len(fakes) - 1)]


class FakedStep:
    """A step whose calls are recorded, and answered by its fake if there is one."""

    __slots__ = ("_body", "_book", "_effect", "_run_id", "name")

    def __init__(self, book: CallBook, body: StepBody | None, effect: PerformTask, run_id: str) -> None:
        self.name = effect.step
        self._book = book
        self._body = body
        self._effect = effect
        self._run_id = run_id

    async def perform(self, given: bytes, executor: Executor) -> bytes:
        args = self._book.arguments(self.name, given)
        self._book.note(self._effect, self._run_id, args)
        faked, fake = self._book.answer(self._effect)
        if not faked and self._book.recorded is not None and not self._effect.inline:
            return self._book.recorded.result(self.name, given, self._effect.key)
        if not faked:
            assert self._body is not None
            return await self._body.perform(given, executor)
        value = await _fake_value(fake, args)
        return self._book.result_codec(self.name).encode(value, what=f"the fake of {self.name} returned")

    def is_final(self, error: BaseException) -> bool:
        if isinstance(error, PerformedElsewhere) or (isinstance(error, UsageError) and self._book.recorded):
            return True
        return self._body is not None and self._body.is_final(error)


async def _fake_value(fake: Any, args: dict[str, Any]) -> Any:
    if isinstance(fake, BaseException):
        raise fake.with_traceback(None)
    if isinstance(fake, type):
        if issubclass(fake, BaseException):
            raise fake
        return fake
    if not callable(fake):
        return fake
    value = fake(**args)
    return await value if inspect.isawaitable(value) else value


Fake = Callable[..., Any] | BaseException | Any
