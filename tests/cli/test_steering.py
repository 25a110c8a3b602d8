"""Commands to a run that nobody hosts are kept, said to be kept, and seen by the next host; wrong ones are refused."""

import getpass
import io
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Weft
from tests.cli.shop import APP
from tests.code.hosted_store import Store
from tests.code.timeless import calm, play
from weft import App, Context
from weft.cli.run_control import say_who
from weft.core.ids import HostId, RunId

NOBODY = "weft: no process hosts the run now; the next host will act on this.\n"


def document(weft: Weft, *words: str) -> Any:
    return weft(*words, "--json").json()


def host_it(weft: Weft) -> None:
    """Let a host come by: any run of the app hosts all of them for its time."""
    assert weft("run", "app.py", "hello", "name=a").code == 0


def test_a_message_is_kept_for_the_next_host(waiting: Weft) -> None:
    said = waiting("send", "p-1", "quote", "42")

    assert (said.code, said.out, said.err) == (0, '"quote" kept for p-1\n', NOBODY)
    host_it(waiting)
    (question,) = document(waiting, "inbox")["questions"]
    assert question["title"] == "Ship for 42?"


def test_a_host_that_has_not_acted_yet_is_not_said_to_be_missing(capsys: pytest.CaptureFixture[str]) -> None:
    async def scene() -> None:
        store, app = Store(), App("memory://")

        @app.workflow
        async def idle(ctx: Context) -> None:
            await ctx.receive("go")

        async with store.host(app):
            await app.start("idle", id="i-1")
            await calm()
        service = store.without_host(app)
        row = await service.row(RunId("i-1"))
        await say_who(service, row, "nobody hosts it")
        await service.store.hosts.join(HostId("busy"), lease_ms=3_600_000, about={"workflows": ["idle"]})
        await say_who(service, row, "nobody hosts it")

    play(scene())
    first, second = capsys.readouterr().err.splitlines()
    assert first == "weft: nobody hosts it"
    assert second == "weft: its host has not acted on this yet. To look at it: weft explain i-1"


def test_what_a_run_waits_for_is_listed_and_explained(waiting: Weft) -> None:
    assert 'a message "quote"' in waiting("list").out
    explained = document(waiting, "explain", "p-1")
    assert [item["kind"] for item in explained["waiting"]] == ["message"]
    assert "weft send p-1 quote BODY" in waiting("explain", "p-1").out
    assert "weft send p-1 quote BODY" in waiting("show", "p-1").out


def test_a_body_may_come_from_stdin_and_may_be_text(waiting: Weft, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("[1, 2]"))
    waiting("send", "p-1", "list", "-")
    waiting("send", "p-1", "text", "hello you")
    host_it(waiting)

    events = waiting("events", "p-1").out
    assert "name=list body=[1,2]" in events
    assert "name=text body=hello you" in events


def test_the_same_key_twice_is_one_message(waiting: Weft) -> None:
    for _ in range(2):
        assert waiting("send", "p-1", "quote", "42", "--message-key", "k").code == 0
    host_it(waiting)

    assert waiting("events", "p-1").out.count("message_received") == 1
    other = waiting("send", "p-1", "quote", "43", "--message-key", "k")
    assert other.code == 1
    assert 'The key "k" was used for another command' in other.err


def test_a_message_too_big_is_refused_and_nothing_is_kept(waiting: Weft, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("x" * (17 * 1024 * 1024)))

    said = waiting("send", "p-1", "quote", "-")

    assert said.code == 1
    assert "the limit is" in said.err
    host_it(waiting)
    assert "message_received" not in waiting("events", "p-1").out


def test_pausing_and_resuming_are_kept_in_order(waiting: Weft) -> None:
    assert waiting("pause", "p-1").out == "p-1 will be paused\n"
    host_it(waiting)
    assert document(waiting, "show", "p-1")["status"] == "paused"
    assert waiting("resume", "p-1").out == "p-1 will continue\n"
    host_it(waiting)
    assert document(waiting, "show", "p-1")["status"] == "running"


def test_a_cancelled_run_ends_with_its_reason_and_takes_nothing_more(waiting: Weft) -> None:
    assert waiting("cancel", "p-1", "--reason", "changed my mind").out == "p-1 will be asked to stop\n"
    host_it(waiting)

    shown = document(waiting, "show", "p-1")
    assert (shown["status"], shown["reason"]) == ("cancelled", "changed my mind")
    for words in (["send", "p-1", "quote", "1"], ["cancel", "p-1"], ["pause", "p-1"], ["resume", "p-1"]):
        refused = waiting(*words)
        assert refused.code == 1
        assert "p-1 cancelled" in refused.err
        assert "weft help run.finished" in refused.err
    assert 'the message "quote" was not delivered' in waiting("send", "p-1", "quote").err
    assert "cannot be retried" in waiting("retry", "p-1").err


STUBBORN = """
import asyncio
import weft

app = weft.App()

@app.workflow
async def hello() -> str:
    return "hello"

@app.workflow
async def stubborn(ctx: weft.Context) -> None:
    while True:
        try:
            await ctx.receive("never")
        except asyncio.CancelledError:
            await ctx.set(swallowed=True)
"""


def test_a_run_that_is_cancelling_for_long_names_force_and_force_ends_it(
    waiting: Weft, monkeypatch: pytest.MonkeyPatch
) -> None:
    def host() -> None:
        assert waiting("run", "stubborn.py", "hello").code == 0

    Path("stubborn.py").write_text(STUBBORN)
    waiting("start", "stubborn", "--id", "s-1")
    host()
    waiting("cancel", "s-1")
    host()

    assert document(waiting, "show", "s-1")["status"] == "cancelling"
    assert "--force" not in waiting("cancel", "s-1").err
    monkeypatch.setattr("weft.observe.sentences.CANCELLING_MS_MAX", 0)
    assert "weft cancel s-1 --force" in waiting("cancel", "s-1").err
    assert "weft cancel s-1 --force" in waiting("explain", "s-1").out
    assert waiting("cancel", "s-1", "--force").out == "s-1 will be ended without running its code\n"
    host()
    assert document(waiting, "show", "s-1")["status"] == "cancelled"


def test_a_question_is_answered_with_its_form(asked: Weft) -> None:
    listed = asked("inbox").out.splitlines()
    assert listed[0].split() == ["ID", "QUESTION", "WAITS", "DUE", "OF"]
    assert listed[1].startswith("p-1:ship   Ship for 42?")
    assert "role:ops" in listed[1]

    said = asked("decide", "p-1:ship", "approve", "--form", "carrier=dhl", "--form", "note=17", "--by", "ann")

    assert (said.code, said.err) == (0, NOBODY)
    host_it(asked)
    assert document(asked, "show", "p-1")["result"] == "ann ships with dhl, '17', 1"
    assert asked("decide", "p-1:ship", "approve").code == 1
    assert asked("inbox").out == "No open questions. Store: sqlite:///weft.db in this folder.\n"


def test_a_question_may_be_rejected_with_a_reason_under_the_login_name(asked: Weft) -> None:
    asked("decide", "p-1", "reject", "--reason", "too dear")
    host_it(asked)

    assert document(asked, "show", "p-1")["result"] == f"rejected by {getpass.getuser()}: too dear"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["p-1:ship", "approve", "--form", "carrier=fedex"], '"fedex" is not one of'),
        (["p-1:ship", "approve"], "has the wrong type"),
        (["p-1:shop", "approve"], "p-1 has no question 'shop'"),
        (["p-2:ship", "approve"], "No run 'p-2'"),
        (["p-1:ship", "approve", "--form", "carrier"], "neither JSON nor KEY=VALUE"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_and_the_question_stays(
    asked: Weft, words: list[str], problem: str
) -> None:
    said = asked("decide", *words)

    assert said.code in (1, 2)
    assert problem in said.err
    assert len(document(asked, "inbox")["questions"]) == 1


def test_a_run_without_an_open_question_says_what_to_look_at(waiting: Weft) -> None:
    said = waiting("decide", "p-1", "approve")

    assert said.code == 1
    assert "p-1 has no open question." in said.err


def test_a_failed_run_is_tried_again_and_repeats_only_what_failed(weft: Weft, folder: Path) -> None:
    weft("run", "app.py", "doomed", "order_id=o-1", "--id", "d-1")
    (folder / "app.py").write_text(APP.replace('raise ValueError(f"declined {order_id}")', 'return "accepted"'))

    said = weft("retry", "d-1")

    assert (said.code, said.out, said.err) == (0, "d-1 will be retried\n", NOBODY)
    assert weft("run", "app.py", "doomed", "order_id=o-1", "--id", "d-1").out == "accepted\n"
    shown = document(weft, "show", "d-1")
    assert (shown["retries"], shown["status"], shown["ended_at"] is not None) == (1, "completed", True)
    assert weft("events", "d-1").out.count("task_scheduled     charge") == 1
    assert weft("retry", "d-1").code == 1


def test_a_run_is_tried_again_from_a_place_on(weft: Weft, folder: Path) -> None:
    weft("run", "app.py", "doomed", "order_id=o-1", "--id", "d-1")
    (folder / "app.py").write_text(APP.replace('raise ValueError(f"declined {order_id}")', 'return "accepted"'))

    assert "recorded nothing at 'nowhere'" in weft("retry", "d-1", "--from", "nowhere").err
    assert weft("retry", "d-1", "--from", "charge").out == "d-1 will be retried from charge\n"

    host_it(weft)
    assert weft("events", "d-1").out.count("task_scheduled     charge") == 2


def test_a_run_under_way_cannot_be_tried_again(waiting: Weft) -> None:
    said = waiting("retry", "p-1")

    assert said.code == 1
    assert "p-1 is running, so it cannot be retried." in said.err
    assert "Pause it first: weft pause p-1" in waiting("retry", "p-1", "--from", "quote").err


def test_a_run_that_has_completed_is_forked_instead_of_retried_from_a_place(over: Weft) -> None:
    assert "weft fork order-1 --before charge" in over("retry", "order-1", "--from", "charge").err


def test_a_result_is_set_by_hand(waiting: Weft) -> None:
    refused = waiting("set", "p-1", "quote", "--output", "1")
    assert (refused.code, "Send the message: weft send p-1 quote" in refused.err) == (1, True)
    assert waiting("set", "p-1", "quote").code == 2
    waiting("send", "p-1", "quote", "42")
    host_it(waiting)
    (question,) = document(waiting, "inbox")["questions"]
    place = question["id"].partition(":")[2]
    done = waiting("set", "p-1", place, "--output", '{"approved": false}', "--reason", "by phone", "--json")
    assert (done.code, done.json()["place"]) == (0, place)
    host_it(waiting)
    assert "reason=by phone" in waiting("events", "p-1").out
