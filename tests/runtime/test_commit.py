"""Group commit: what is decided while one commit is on its way goes into the next, and one bad run harms no other."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

import pytest

from tests.code.timeless import calm, play
from tests.runtime.flaky import FlakyStore, Script
from weft.core.ids import Epoch, HostId, Millis, RunId, RunUid, Seq
from weft.ports.new_run import NewRun
from weft.ports.store import Outcome
from weft.runtime import commit as committing
from weft.runtime.commit import GroupWriter
from weft.runtime.run.draft import Draft

HOST = HostId("host")


class Run:
    """A writer with drafts of one event each."""

    def __init__(self, name: str, committer: GroupWriter) -> None:
        self.uid = RunUid(name)
        self.committer = committer
        self.drafts: deque[Draft] = deque()
        self.outcomes: list[str] = []
        self.mail_taken = 0
        self.seq = 0

    def write(self, *, base: int | None = None) -> Draft:
        draft = Draft(uid=self.uid, epoch=Epoch(1), seq=Seq(self.seq if base is None else base))
        if self.seq == 0 and base is None:
            draft.create = NewRun(
                uid=self.uid,
                id=RunId(self.uid),
                workflow="w",
                version="1",
                style="code",
                created_at=Millis(1),
                owner=HOST,
            )
        draft.record(b'{"kind":"run_paused"}', Millis(5))
        self.seq += 1
        self.drafts.append(draft)
        self.committer.submit(self)
        return draft

    def take_draft(self) -> Draft | None:
        return self.drafts.popleft() if self.drafts else None

    def committed(self, draft: Draft, outcome: Outcome) -> None:
        self.outcomes.append(outcome.value)
        if self.drafts:
            self.committer.submit(self)

    def unknown(self, draft: Draft, error: Exception, *, guilty: bool) -> None:
        self.outcomes.append("guilty" if guilty else "unknown")


def with_committer(scene: Any, *mishaps: Any) -> Script:
    script = Script(*mishaps)

    async def run() -> None:
        store = FlakyStore(script)
        committer = GroupWriter(store.log, store.blobs, HOST)
        committer.start()
        await scene(committer, store, script)
        await committer.stop()

    play(run())
    return script


def test_what_is_submitted_while_a_commit_is_under_way_goes_into_the_next_one_ordered_by_run() -> None:
    async def scene(committer: GroupWriter, store: FlakyStore, script: Script) -> None:
        script.gate = asyncio.Event()
        runs = [Run(name, committer) for name in "cab"]
        runs[0].write()
        await calm()
        for run in runs[1:]:
            run.write()
        runs[0].write()
        await calm()
        script.gate.set()
        await calm()
        assert script.batches == [["c"], ["a", "b", "c"]]
        assert [run.outcomes for run in runs] == [["accepted"] * 2, ["accepted"], ["accepted"]]
        assert (committer.batches, committer.appends) == (2, 4)

    with_committer(scene)


def test_one_append_per_run_and_batch() -> None:
    async def scene(committer: GroupWriter, store: FlakyStore, script: Script) -> None:
        run = Run("a", committer)
        for _ in range(3):
            run.write()
        await calm()
        assert script.batches == [["a"]] * 3
        assert run.outcomes == ["accepted"] * 3

    with_committer(scene)


def test_a_refused_append_harms_no_other() -> None:
    async def scene(committer: GroupWriter, store: FlakyStore, script: Script) -> None:
        runs = [Run(name, committer) for name in "abc"]
        for run in runs:
            run.write()
        await calm()
        runs[1].write(base=7)
        runs[0].write()
        runs[2].write()
        await calm()
        assert [run.outcomes[-1] for run in runs] == ["accepted", "stale_seq", "accepted"]

    with_committer(scene)


def test_an_error_out_of_a_commit_is_unknown_for_every_append_in_it() -> None:
    async def scene(committer: GroupWriter, store: FlakyStore, script: Script) -> None:
        runs = [Run(name, committer) for name in "ab"]
        for run in runs:
            run.write()
        await calm()
        assert [run.outcomes for run in runs] == [["unknown"], ["unknown"]]

    with_committer(scene, "lost after")


def test_a_batch_that_the_store_chokes_on_is_taken_apart_and_the_guilty_run_named() -> None:
    async def scene(committer: GroupWriter, store: FlakyStore, script: Script) -> None:
        runs = [Run(name, committer) for name in "abc"]
        script.poison = "b"
        for run in runs:
            run.write()
        await calm()
        assert [run.outcomes for run in runs] == [["unknown"]] * 3
        for run in runs:
            run.seq = 0
            run.write()
        await calm()
        assert [run.outcomes[-1] for run in runs] == ["accepted", "guilty", "accepted"]
        assert script.batches[1:] == [["a"], ["b"], ["c"]]

    with_committer(scene)


def test_a_passing_trouble_makes_nobody_guilty() -> None:
    async def scene(committer: GroupWriter, store: FlakyStore, script: Script) -> None:
        run = Run("a", committer)
        run.write()
        await calm()
        assert run.outcomes == ["unknown"]

    with_committer(scene, "lost before")


def test_an_error_that_names_no_data_makes_nobody_guilty_even_alone() -> None:
    async def scene(committer: GroupWriter, store: FlakyStore, script: Script) -> None:
        run = Run("a", committer)
        run.write()
        await calm()
        assert run.outcomes == ["unknown"]

    with_committer(scene, "broken")


def test_a_store_that_keeps_refusing_is_asked_less_and_less_often_and_is_known_for_it() -> None:
    async def scene(committer: GroupWriter, store: FlakyStore, script: Script) -> None:
        run = Run("a", committer)
        loop = asyncio.get_running_loop()
        began, pauses, last = loop.time(), [], loop.time()
        for n in range(1, 7):
            run.seq = 0
            run.write()
            while len(script.batches) < n:
                await asyncio.sleep(0.01)
            pauses.append(round(loop.time() - last, 1))
            last = loop.time()
            await calm()
            assert (committer.trouble() is not None) is (n >= 3)
        assert sorted(pauses) == pauses
        assert 0.5 < loop.time() - began < 5
        run.seq = 0
        run.write()
        while len(script.batches) < 7:
            await asyncio.sleep(0.01)
        await calm()
        assert run.outcomes == ["unknown"] * 6 + ["accepted"]
        assert committer.trouble() is None

    with_committer(scene, *["lost before"] * 6)


def test_blobs_are_put_before_the_append_that_names_them() -> None:
    async def scene(committer: GroupWriter, store: FlakyStore, script: Script) -> None:
        script.gate = asyncio.Event()
        run = Run("a", committer)
        run.write().puts["digest"] = b"x" * 100
        await calm()
        assert len(store.content.blobs) == 1
        assert store.content.runs == {}
        script.gate.set()
        await calm()
        assert run.outcomes == ["accepted"]

    with_committer(scene)


def test_nothing_is_committed_after_stopping() -> None:
    async def scene(committer: GroupWriter, store: FlakyStore, script: Script) -> None:
        await committer.stop()
        run = Run("a", committer)
        run.write()
        await calm()
        assert script.batches == []

    with_committer(scene)


def test_a_run_whose_name_comes_last_is_not_behind_others_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committing, "APPENDS_PER_BATCH_MAX", 2)

    order: list[str] = []

    class Noted(Run):
        def committed(self, draft: Draft, outcome: Outcome) -> None:
            order.append(self.uid)
            super().committed(draft, outcome)

    async def scene(committer: GroupWriter, *_: object) -> None:
        for run in [Noted(name, committer) for name in "zabcd"]:
            for _ in range(20):
                run.write()
        await calm()

    with_committer(scene)
    assert "z" in order[:5]
    assert len(order) == 100
