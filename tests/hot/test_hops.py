"""Which appends are hops: events and at most references to blobs, of a run whose row names the WAL in use."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import fields

import weft
from tests.code.timeless import calm
from tests.contract.kit import RUN, append
from tests.hot.hot_desk import END, HotDesk
from tests.hot.hot_scene import HotScene, hot_scene
from weft.core import commands as c
from weft.core.effects import PerformTask
from weft.core.events import Policy
from weft.core.graph.node_start import HTTP
from weft.core.ids import EntryId, Epoch, RunId, RunUid, Seq
from weft.core.values import blob_ref
from weft.ports.store import Append
from weft.runtime.run.draft import Draft, PendingCommand
from weft.runtime.run.write_through import must_be_through
from weft.stores.hot.entries import ENTRY_APPENDS_MAX, ENTRY_BYTES_MAX, encode, size_max
from weft.stores.hot.hot_lane import entries
from weft.stores.hot.owned_runs import is_plain

OF_A_HOP = {"uid", "epoch", "seq", "events", "refs"}
"""What a WAL keeps of an append."""
NOT_WRITTEN = {"mail_taken", "answers"}
"""What a store compares or answers."""
REF = blob_ref("0" * 64, 2)
FAR = "https://10.0.0.1/"
"""A private address, so that no request is sent."""


@pytest.mark.parametrize("field", sorted({one.name for one in fields(Append)} - OF_A_HOP - NOT_WRITTEN))
def test_an_append_with_anything_that_a_wal_does_not_keep_is_no_hop(field: str) -> None:
    assert is_plain(append(refs=["a"], mail_taken=3))
    assert not is_plain(append(**{field: 7}))


def test_an_append_without_events_is_no_hop() -> None:
    assert not is_plain(append(count=0, refs=["a"]))


def test_an_append_that_is_larger_than_an_entry_goes_to_the_store() -> None:
    async def acts(scene: HotScene) -> None:
        await scene.hop(refs=["x" * ENTRY_BYTES_MAX])
        assert (scene.entries(), scene.stored().seq) == (0, 1)

    hot_scene(acts)


@pytest.mark.parametrize(("count", "ref", "parts"), [(2 * ENTRY_APPENDS_MAX + 1, 1, 3), (5, ENTRY_BYTES_MAX // 3, 3)])
def test_a_batch_that_does_not_fit_into_an_entry_is_written_as_several(count: int, ref: int, parts: int) -> None:
    batch = [append(str(number), refs=["x" * ref]) for number in range(count)]

    found = list(entries(batch))

    assert [one for part, _ in found for one in part] == batch
    assert len(found) == parts
    for part, packed in found:
        assert len(part) <= ENTRY_APPENDS_MAX
        assert len(packed) <= ENTRY_BYTES_MAX
        assert packed == encode(part)
        assert sum(map(size_max, part)) <= ENTRY_BYTES_MAX


def test_a_run_that_is_not_attached_has_no_hops_not_even_those_that_were_asked_for() -> None:
    async def acts(scene: HotScene) -> None:
        lane = scene.store.hot_lane
        asked = append(RUN)
        assert lane.is_hot(asked)
        assert lane.wal is not None
        later = lane.wal + 1
        await scene.store.server.begin(later)
        lane.use(later)

        assert not lane.is_hot(asked)
        assert not await lane.write([asked], encode([asked]))
        assert scene.entries() == 0

    hot_scene(acts)


# --- work that is answered from outside the process -------------------------------------------------------------------


def hops_of(app: weft.App, what: Any, given: dict[str, Any]) -> list[str]:
    """Run something to its end. Returns the kinds of the events that were hops."""
    desk = HotDesk(app, policy=END)

    async def scene() -> None:
        run = await app.start(what, given, id="run")
        with pytest.raises(weft.RunFailed, match="not a public address"):
            await run.result()

    desk.play(scene)
    return desk.hopped()


def documents(answer: str) -> dict[str, Any]:
    render = {"http": {"url": FAR, "answer": answer}, "needs": {"video": "string"}, "gives": {"link": "string"}}
    return {"weft": "steps/1", "steps": {"render": render}}


def node_with_a_request(app: weft.App, answer: str) -> tuple[Any, dict[str, Any]]:
    return graph_with(app, {"http": {"url": FAR, "method": "POST", "answer": answer}}), {}


def node_with_a_step_of_a_document(app: weft.App, answer: str) -> tuple[Any, dict[str, Any]]:
    app.steps(documents(answer))
    return graph_with(app, {"step": "render", "with": {"video": "v"}}), {}


def goal_with_a_step_of_a_document(app: weft.App, answer: str) -> tuple[Any, dict[str, Any]]:
    @app.step(gives="video")
    async def pick(n: int) -> str:
        return "v"

    app.steps(documents(answer))
    return app.goal("rendered", "render"), {"n": 1}


def graph_with(app: weft.App, call: dict[str, Any]) -> Any:
    @app.step
    async def first() -> None: ...

    nodes = [{"id": "first", "step": "first"}, {"id": "call", **call}]
    return app.graph({"name": "flow", "nodes": nodes, "edges": [{"from": "first", "to": "call"}]})


@pytest.mark.parametrize("make", [node_with_a_request, node_with_a_step_of_a_document, goal_with_a_step_of_a_document])
def test_work_that_is_answered_later_is_in_the_store_before_it_is_sent(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it were lost, its number would be used again, and the answer taken for another's."""
    monkeypatch.setenv("WEFT_WEBHOOK_URL", "https://weft.example/api/v1/webhooks")
    monkeypatch.setenv("WEFT_WEBHOOK_SECRET", "a secret of sixteen bytes")

    for answer, is_hop in (("now", True), ("later", False)):
        app = weft.App()
        assert ("task_succeeded" in hops_of(app, *make(app, answer))) is is_hop, answer


@pytest.mark.parametrize(
    ("given", "is_through"), [(b'{"answer":"now"}', False), (b'{"answer":"later"}', True), (REF, True)]
)
def test_a_request_is_judged_by_what_it_is_given(given: bytes, is_through: bool) -> None:
    """What is in a blob is not read for this, and may be answered later."""
    call = PerformTask(EntryId(1), 2, 1, HTTP, Raw(given), "key", "call", Policy(effect="pure"))

    assert judged(Draft(uid=RunUid(RUN), epoch=Epoch(1), seq=Seq(1), effects=[call])) is is_through


@pytest.mark.parametrize("is_waited_for", [False, True])
def test_a_refusal_that_somebody_waits_for_is_in_the_store_with_what_it_was_decided_on(is_waited_for: bool) -> None:
    posted = PendingCommand(c.ResumeRun(), reply=(lambda _: None) if is_waited_for else None)
    refused = ((posted, weft.Refused("It is not paused.")),)

    assert judged(Draft(uid=RunUid(RUN), epoch=Epoch(1), seq=Seq(1), refused=refused)) is is_waited_for


def judged(draft: Draft) -> bool:
    """Whether a draft of a run that is going on must be in the store before it counts."""
    app = weft.App()

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        return await ctx.receive("n", int)

    async def scene() -> bool:
        run = await app.start(flow(), id="run")
        await calm()
        found = must_be_through(desk.host.runs.by_id[RunId("run")], draft)
        await run.cancel()
        return found

    desk = HotDesk(app, policy=END)
    return desk.play(scene)
