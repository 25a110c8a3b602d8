"""The catalogue of a store: one list of events for all who write it, whoever comes first."""

import asyncio
from typing import Any

import msgspec
import pytest

import weft
from weft.core.goal.catalogue import Checkup, StepHealthChanged, StepRegistered, StepUnregistered, StepUpdated
from weft.core.goal.checks import BadStep
from weft.core.ids import Millis
from weft.errors import Conflict, Corrupt, NameTaken, UnknownStep
from weft.goals import LoadedSteps, load_steps
from weft.ports.definitions import Definition
from weft.ports.store import Store
from weft.runtime.catalogue_log import CATALOGUE, FEW_BYTES, StoredCatalogue
from weft.runtime.clock import SystemClock
from weft.runtime.goal_language import GOAL_LANGUAGES
from weft.stores.memory import MemoryStore
from weft.stores.sqlite import SqliteStore


def steps(**bodies: dict[str, Any]) -> LoadedSteps:
    return load_steps({"steps": {name: {"step": name, **body} for name, body in bodies.items()}}, GOAL_LANGUAGES)


def of(store: Store) -> StoredCatalogue:
    return StoredCatalogue(store.definitions, SystemClock())


def test_steps_that_are_registered_are_there_for_everybody_and_after_a_restart(tmp_path: Any) -> None:
    async def scenario() -> None:
        url = f"sqlite:///{tmp_path}/weft.db"
        first, second = SqliteStore(url), SqliteStore(url)
        await first.open()
        await second.open()
        here, there = of(first), of(second)
        await here.register(steps(a={"gives": ["x"]}))
        await there.register(steps(b={"needs": ["x"]}))
        assert sorted((await here.catalogue()).entries) == ["a", "b"]
        await first.close()
        await second.close()
        again = SqliteStore(url)
        await again.open()
        assert sorted((await of(again).catalogue()).entries) == ["a", "b"]
        await again.close()

    asyncio.run(scenario())


def test_everything_that_happened_is_in_the_log_in_order() -> None:
    async def scenario() -> list[Any]:
        catalogue = of(MemoryStore())
        await catalogue.register(steps(a={"gives": ["x"]}, b={"needs": ["x"]}))
        await catalogue.register(steps(a={"gives": ["x"]}))
        await catalogue.update(steps(a={"gives": ["x", "y"]}))
        await catalogue.report_health({"a": Checkup("unhealthy", "no answer"), "b": Checkup()})
        await catalogue.report_health({"a": Checkup("unhealthy", "no answer")})
        await catalogue.unregister("b")
        return [(one.number, type(one.event)) for one in await catalogue.history()]

    assert asyncio.run(scenario()) == [
        (1, StepRegistered),
        (1, StepRegistered),
        (2, StepUpdated),
        (3, StepHealthChanged),
        (4, StepUnregistered),
    ]


def test_what_is_refused_leaves_no_trace() -> None:
    async def scenario() -> None:
        catalogue = of(MemoryStore())
        await catalogue.register(steps(a={"gives": {"x": "string"}}))
        with pytest.raises(NameTaken):
            await catalogue.register(steps(b={}, a={"gives": ["y"]}))
        with pytest.raises(BadStep):
            await catalogue.register(steps(c={}, d={"needs": {"x": "number"}}))
        with pytest.raises(UnknownStep):
            await catalogue.unregister("a", "z")
        assert sorted((await catalogue.catalogue()).entries) == ["a"]
        assert len(await catalogue.history()) == 1

    asyncio.run(scenario())


class Overtaken:
    """Definitions in which somebody else writes just before each of our first writes."""

    def __init__(self, store: MemoryStore, rival: StoredCatalogue, times: int) -> None:
        self._inner = store.definitions
        self._rival = rival
        self._times = times
        self.get = store.definitions.get
        self.versions = store.definitions.versions

    async def put(self, definition: Definition) -> bool:
        if self._times > 0:
            self._times -= 1
            await self._rival.register(steps(**{f"r{self._times}": {}}))
        return await self._inner.put(definition)


def test_who_is_overtaken_reads_what_is_new_and_decides_again() -> None:
    async def scenario() -> None:
        store = MemoryStore()
        rival = of(store)
        overtaken = StoredCatalogue(Overtaken(store, rival, 3), SystemClock())  # type: ignore[arg-type]
        await overtaken.register(steps(mine={}))
        assert sorted((await rival.catalogue()).entries) == ["mine", "r0", "r1", "r2"]

    asyncio.run(scenario())


def test_a_rival_who_took_the_name_meanwhile_wins() -> None:
    async def scenario() -> None:
        store = MemoryStore()
        overtaken = StoredCatalogue(Overtaken(store, of(store), 1), SystemClock())  # type: ignore[arg-type]
        with pytest.raises(NameTaken):
            await overtaken.register(steps(r0={"gives": ["x"]}))

    asyncio.run(scenario())


def test_many_writers_at_once_lose_nothing() -> None:
    async def scenario() -> None:
        store = MemoryStore()
        await asyncio.gather(*(of(store.share()).register(steps(**{f"s{n}": {}})) for n in range(20)))
        assert len((await of(store).catalogue()).entries) == 20

    asyncio.run(scenario())


def test_a_catalogue_that_never_stands_still_says_so() -> None:
    class Busy(Overtaken):
        async def put(self, definition: Definition) -> bool:
            raise Conflict("somebody else")

    async def scenario() -> None:
        store = MemoryStore()
        with pytest.raises(Conflict, match="kept changing"):
            await StoredCatalogue(Busy(store, of(store), 0), SystemClock()).register(steps(a={}))  # type: ignore[arg-type]

    asyncio.run(scenario())


def test_many_steps_are_read_in_a_thread_and_once() -> None:
    async def scenario() -> None:
        store = MemoryStore()
        many = [f"s{n}" for n in range(300)]
        await of(store).register(steps(**{name: {} for name in many}))
        await of(store).register(steps(last={}))
        calls = 0

        async def in_thread(work: Any) -> Any:
            nonlocal calls
            calls += 1
            return await asyncio.to_thread(work)

        reader = StoredCatalogue(store.definitions, SystemClock(), in_thread)
        await asyncio.gather(*(reader.refresh() for _ in range(3)))
        assert list(reader.steps) == [*many, "last"]
        assert reader.number == 2
        assert calls == 3  # each read the first append, and two of them threw it away

    asyncio.run(scenario())


# --- hosts -------------------------------------------------------------------------------------------------------

DOUBLE = {
    "steps": {"double": {"script": {"lua": "return {y = 2 * x}"}, "needs": {"x": "integer"}, "gives": {"y": "integer"}}}
}


@pytest.mark.parametrize(("good", "read_in_thread"), [(500, True), (3, False)])
def test_events_are_read_one_by_one_and_a_damaged_append_is_not_read_in_part(
    good: int, *, read_in_thread: bool
) -> None:
    async def scenario() -> int:
        store, pauses = MemoryStore(), 0

        def give_way() -> None:
            nonlocal pauses
            pauses += 1

        events = [StepRegistered(step=step) for step in steps(**{f"s{number}": {} for number in range(good)}).steps]
        body = msgspec.json.encode([*events, {"type": "unheard_of"}])
        assert (len(body) > FEW_BYTES) == read_in_thread
        await store.definitions.put(
            Definition(name=CATALOGUE, version="1", style="catalogue", body=body, created_at=Millis(0))
        )
        catalogue = StoredCatalogue(store.definitions, SystemClock(), give_way=give_way)
        with pytest.raises(Corrupt):
            await catalogue.refresh()
        assert not catalogue.steps
        return pauses

    assert asyncio.run(scenario()) == (good if read_in_thread else 0)


def an_app(url: str) -> weft.App:
    app = weft.App(url)

    @app.step(gives="z")
    async def add(y: int) -> int:
        return y + 1

    return app


async def registered(url: str, document: dict[str, Any]) -> None:
    store = SqliteStore(url)
    await store.open()
    await of(store).register(load_steps(document, GOAL_LANGUAGES))
    await store.close()


async def looked(app: weft.App) -> None:
    """One round of a host's duties."""
    assert app.service.steps is not None
    await app.service.steps.refresh()


def test_a_host_plans_with_the_steps_of_its_store(tmp_path: Any) -> None:
    async def scenario() -> None:
        url = f"sqlite:///{tmp_path}/weft.db"
        await registered(url, DOUBLE)
        app = an_app(url)
        goal = app.goal("sum", "add")
        async with app:
            handle = await app.start(goal, {"x": 20})
            assert (await handle.result(timeout=120))["z"] == 41

    asyncio.run(scenario())


def test_a_host_hears_of_steps_that_come_and_go_while_it_runs(tmp_path: Any) -> None:
    async def scenario() -> None:
        url = f"sqlite:///{tmp_path}/weft.db"
        app = an_app(url)
        async with app:
            assert app.plan("add", given=["x"]).required == ["y"]
            await registered(url, DOUBLE)
            await looked(app)
            assert app.plan("add", given=["x"]).required == []
            store = SqliteStore(url)
            await store.open()
            await of(store).unregister("double")
            await store.close()
            await looked(app)
            assert app.plan("add", given=["x"]).required == ["y"]

    asyncio.run(scenario())


def test_an_app_and_its_store_that_contradict_each_other_are_not_hosted(tmp_path: Any) -> None:
    async def scenario() -> None:
        url = f"sqlite:///{tmp_path}/weft.db"
        await registered(url, {"steps": {"add": {"step": "another", "gives": ["z"]}}})
        with pytest.raises(NameTaken, match="add is registered in the store with a different definition"):
            async with an_app(url):
                raise AssertionError

    asyncio.run(scenario())


def test_a_step_that_both_have_in_the_same_words_is_one_step(tmp_path: Any) -> None:
    async def scenario() -> None:
        url = f"sqlite:///{tmp_path}/weft.db"
        await registered(url, DOUBLE)
        app = an_app(url)
        app.steps(DOUBLE)
        async with app:
            assert app.plan("add", given=["x"]).steps == ["add", "double"]

    asyncio.run(scenario())


def test_the_catalogue_is_no_run_and_no_workflow(tmp_path: Any) -> None:
    async def scenario() -> None:
        store = MemoryStore()
        await of(store).register(steps(a={}))
        assert store.content.runs == {}
        assert {one.style for one in await store.definitions.versions(CATALOGUE)} == {"catalogue"}

    asyncio.run(scenario())


def test_a_client_plans_with_the_steps_of_the_store(tmp_path: Any) -> None:
    async def scenario() -> None:
        url = f"sqlite:///{tmp_path}/weft.db"
        await registered(url, DOUBLE)
        async with weft.Client(url) as client:
            assert (await client.plan("double")).required == ["x"]
            assert (await client.plan("double", given={"x": 3})).required == []

    asyncio.run(scenario())


def test_a_step_that_an_app_gets_while_its_host_learns_is_kept() -> None:
    app = an_app("memory://")
    stored = {step.id: step for step in load_steps(DOUBLE, GOAL_LANGUAGES).steps}
    learning = app.registered.learning(stored)
    learning.run()

    @app.step(gives="late")
    async def later(z: int) -> int:
        return z

    assert not learning.finish()
    again = app.registered.learning(stored)
    again.run()
    assert again.finish()
    assert sorted(step.id for step in app.registered.planned()) == ["add", "double", "later"]
