"""People decide over HTTP: for themselves, once, about what they saw; also by a link that shows what it decides."""

from __future__ import annotations

import html
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec
import pytest

import weft
from tests.server.keyring import Caller, add_key, caller
from tests.server.kit import API, Answer, Server, covers, quoted, serving
from tests.server.receiver import Receiver
from tests.server.shop import Parcel
from weft.core.ids import RunId
from weft.server.approvals.links import Claim, Links
from weft.server.endpoints.link_page import ShownQuestion, question_page
from weft.server.views import Approval
from weft.tokens import is_signed

EVIL = "<script>alert('x')</script>\"'&"
SECRET = "s" * 32


def asking_app(url: str = "memory://") -> weft.App:
    app = weft.App(url)

    @app.workflow
    async def pay(ctx: weft.Context, order_id: str, of: list[str], quorum: int = 1) -> dict[str, Any]:
        answer = await ctx.ask("ok", title=f"Pay {order_id}?", of=of, quorum=quorum, about={"order": order_id})
        return {"approved": answer.approved, "by": answer.by, "reason": answer.reason}

    @app.workflow
    async def careful(ctx: weft.Context) -> list[str]:
        return (await ctx.ask("ok", title="Sure?", four_eyes=True)).by

    @app.workflow
    async def ship(ctx: weft.Context) -> dict[str, Any]:
        answer = await ctx.ask("carrier", title="Ship?", form=Parcel, of=["ann"])
        form = [answer.form.carrier, answer.form.grams] if answer.approved else None
        return {"approved": answer.approved, "form": form}

    @app.workflow
    async def nagging(ctx: weft.Context) -> bool:
        answer = await ctx.ask("ok", title="Now?", of=["ann"], remind="1s", about="a\nb")
        return answer.approved

    return app


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(asking_app()) as running:
        add_key(running, "root", "admin")
        yield running


@pytest.fixture(scope="module")
def root(server: Server) -> Caller:
    return caller(server, "root", "admin")


def asked(root: Caller, workflow: str, id: str, **given: Any) -> str:
    """Start a run that asks; the id of its question, as part of a path."""
    started = root.post(f"{API}/runs", {"workflow": workflow, "id": id, "input": given})
    assert started.status == 201, started.raw
    while not (found := [one for one in approvals(root) if one["run"] == id]):
        time.sleep(0.02)
    return quoted(found[0]["id"])


def approvals(root: Caller, query: str = "") -> list[Any]:
    answer = root.get(f"{API}/approvals?limit=500{query}")
    assert answer.status == 200, answer.raw
    return list(answer.json["approvals"])


def result(root: Caller, id: str) -> Any:
    return root.get(f"{API}/runs/{id}/result?wait=10").json["output"]


# --- who ---------------------------------------------------------------------------------------------------------


@covers("decide", "listApprovals")
def test_a_known_caller_answers_for_itself_and_for_nobody_else(server: Server, root: Caller) -> None:
    question = asked(root, "pay", "own", order_id="o", of=["role:ops"])
    ann = caller(server, "ann", "decide", groups=["role:ops"])
    eve = caller(server, "eve", "decide", groups=["team:ops"])

    other = ann.post(f"{API}/approvals/{question}/decision", {"approved": True, "by": "bob"})
    stranger = eve.post(f"{API}/approvals/{question}/decision", {"approved": True})
    own = ann.post(f"{API}/approvals/{question}/decision", {"approved": True, "reason": "fine"})

    assert (other.status, stranger.status, own.status) == (409, 409, 200)
    assert stranger.code == "ask.not_yours"
    assert result(root, "own") == {"approved": True, "by": ["ann"], "reason": "fine"}


def test_who_started_a_run_is_known_when_four_eyes_are_wanted(server: Server, root: Caller) -> None:
    ann, bob = (caller(server, name, "start", "decide", "read") for name in ("ann", "bob"))
    question = asked(ann, "careful", "careful")

    assert ann.post(f"{API}/approvals/{question}/decision", {"approved": True}).code == "ask.not_yours"
    assert bob.post(f"{API}/approvals/{question}/decision", {"approved": True}).status == 200
    assert result(root, "careful") == ["bob"]


def test_an_inbox_shows_what_is_mine(server: Server, root: Caller) -> None:
    for run, of in (("for-ann", ["ann"]), ("for-ops", ["role:ops"]), ("for-bob", ["bob"]), ("for-all", [])):
        asked(root, "pay", run, order_id="o", of=of)
    ann = caller(server, "ann", "read", "decide", groups=["role:ops"])
    reader = caller(server, "ann", "read", groups=["role:ops"])

    mine = {one["run"] for one in approvals(ann, "&mine=true")}

    assert {"for-ann", "for-ops", "for-all"} <= mine
    assert "for-bob" not in mine
    others = {one["run"]: one["may"] for one in approvals(ann)}
    assert others["for-ann"] == {"allowed": True, "why_not": ""}
    assert others["for-bob"] == {"allowed": False, "why_not": "ann may not answer: 'ok' is for bob."}
    assert approvals(reader, "&mine=true") == []
    assert "scope decide" in approvals(reader)[0]["may"]["why_not"]


def test_an_inbox_is_filtered_and_sorted(root: Caller) -> None:
    for run in ("filtered-1", "filtered-2"):
        asked(root, "pay", run, order_id=f"Käse {run}", of=[])

    assert {one["run"] for one in approvals(root, f"&q={quoted('KÄSE filtered')}")} == {"filtered-1", "filtered-2"}
    assert [one["run"] for one in approvals(root, "&run=filtered-2")] == ["filtered-2"]
    assert approvals(root, "&workflow=nothing") == []
    due = approvals(root, "&order=due")
    assert [one["due_at"] is None for one in due] == sorted(one["due_at"] is None for one in due)


@covers("getApproval")
def test_a_question_is_shown_with_its_answers_also_when_it_is_decided(server: Server, root: Caller) -> None:
    question = asked(root, "pay", "two-votes", order_id="o-9", of=[], quorum=2)
    ann, bob, eve = (caller(server, name, "read", "decide") for name in ("ann", "bob", "eve"))
    ann.post(f"{API}/approvals/{question}/decision", {"approved": True, "reason": "fine"})

    open_one = root.get(f"{API}/approvals/{question}").json
    again = ann.get(f"{API}/approvals/{question}").json["may"]
    bob.post(f"{API}/approvals/{question}/decision", {"approved": True})
    decided = eve.get(f"{API}/approvals/{question}").json

    assert (open_one["outcome"], open_one["about"], open_one["ended_at"]) == ("open", {"order": "o-9"}, None)
    assert [(vote["by"], vote["reason"], vote["decided"]) for vote in open_one["votes"]] == [("ann", "fine", False)]
    assert again["why_not"] == "ann has already approved 'ok'; it needs the approval of others."
    assert decided["outcome"] == "approved"
    assert decided["may"] == {"allowed": False, "why_not": "bob has approved it."}
    assert [vote["by"] for vote in decided["votes"]] == ["ann", "bob"]
    assert decided["ended_at"] is not None


def test_a_question_that_was_never_asked_is_not_found(root: Caller) -> None:
    asked(root, "pay", "no-such-place", order_id="o", of=[])

    assert root.get(f"{API}/approvals/no-such-place%3Anothing").status == 404
    assert root.get(f"{API}/approvals/no-such-run%3Aok").status == 404


def test_a_decision_about_something_else_is_refused(root: Caller) -> None:
    question = asked(root, "pay", "digest", order_id="o", of=[])
    (shown,) = [one for one in approvals(root) if one["run"] == "digest"]

    wrong = root.post(f"{API}/approvals/{question}/decision", {"approved": True, "digest": "0" * 32})
    right = root.post(f"{API}/approvals/{question}/decision", {"approved": True, "digest": shown["digest"]})

    assert (wrong.status, wrong.code) == (409, "ask.other_subject")
    assert right.status == 200


# --- once --------------------------------------------------------------------------------------------------------


def test_an_approval_that_fifty_click_at_once_is_decided_once(server: Server, root: Caller) -> None:
    question = asked(root, "pay", "fifty", order_id="o", of=[])
    callers = [caller(server, f"person-{n}", "decide") for n in range(50)]
    line = threading.Barrier(50)

    def click(one: Caller) -> Answer:
        line.wait()
        return one.post(f"{API}/approvals/{question}/decision", {"approved": True})

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(click, callers))

    statuses = sorted(answer.status for answer in answers)
    assert statuses == [200] + [409] * 49
    assert {answer.code for answer in answers if answer.status == 409} <= {"run.already_decided", "run.finished"}
    (winner,) = [n for n, answer in enumerate(answers) if answer.status == 200]
    assert result(root, "fifty")["by"] == [f"person-{winner}"]
    events = root.get(f"{API}/runs/fifty/events").json["events"]
    assert [event["kind"] for event in events].count("ask_answered") == 1


def test_fifty_clicks_on_links_of_three_people_decide_once(server: Server, root: Caller) -> None:
    question = asked(root, "pay", "linked-fifty", order_id="o", of=["ann", "bob", "cat"], quorum=2)
    links = [links_of(root, question, name)["approve"] for name in ("ann", "bob", "cat")]
    line = threading.Barrier(48)

    def click(n: int) -> int:
        line.wait()
        return submit(server, links[n % 3]).status

    with ThreadPoolExecutor(48) as pool:
        statuses = list(pool.map(click, range(48)))

    assert statuses.count(200) == 2
    assert set(statuses) == {200, 409}
    assert len(set(result(root, "linked-fifty")["by"])) == 2


# --- links -------------------------------------------------------------------------------------------------------


def links_of(root: Caller, question: str, by: str, groups: list[str] | None = None) -> Any:
    answer = root.post(f"{API}/approvals/{question}/links", {"by": by, "groups": groups or []})
    assert answer.status == 200, answer.raw
    return answer.json


def submit(server: Server, link: str, **fields: str) -> Answer:
    path = urlsplit(link).path
    return server.ask("POST", path, raw=urlencode(fields).encode(), Content_Type="application/x-www-form-urlencoded")


@covers("makeLinks", "showLink", "followLink")
def test_a_link_shows_what_it_decides_and_its_button_decides_it(server: Server, root: Caller) -> None:
    question = asked(root, "pay", "link", order_id=EVIL, of=["ann"])
    pair = links_of(root, question, "ann")

    shown = server.get(urlsplit(pair["approve"]).path)
    text = shown.raw.decode()

    assert shown.status == 200
    assert shown.headers["content-type"] == "text/html; charset=utf-8"
    assert "<script" not in text
    assert html.escape(EVIL) in text
    assert '<button name="decision" value="approve" class=main>✓ Approve</button>' in text
    assert '<button name="decision" value="reject" formnovalidate>✗ Reject</button>' in text
    assert "without a time limit" in text
    assert "default-src 'none'" in shown.headers["content-security-policy"]
    assert shown.headers["referrer-policy"] == "no-referrer"
    assert shown.headers["cache-control"] == "no-store"
    assert [one["run"] for one in approvals(root) if one["run"] == "link"]  # looking decided nothing

    done = submit(server, pair["approve"], reason="all good")
    assert done.status == 200
    assert "Recorded" in done.raw.decode()
    assert result(root, "link") == {"approved": True, "by": ["ann"], "reason": "all good"}


def test_the_other_button_of_a_link_gives_the_other_answer(server: Server, root: Caller) -> None:
    pairs = [links_of(root, asked(root, "pay", f"both-{n}", order_id="o", of=["ann"]), "ann") for n in range(2)]
    page = server.get(urlsplit(pairs[0]["reject"]).path).raw.decode()
    assert page.index("✗ Reject</button>") < page.index("✓ Approve</button>")  # Enter presses the first one

    assert "rejected by ann" in submit(server, pairs[0]["approve"], decision="reject", reason="no").raw.decode()
    assert "approved by ann" in submit(server, pairs[1]["reject"], decision="approve").raw.decode()
    assert submit(server, pairs[1]["reject"], decision="perhaps").status == 422

    assert [result(root, f"both-{n}")["approved"] for n in range(2)] == [False, True]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (169_200, "due in 1 d 23 h, at 2026-11-03 10:00 UTC"),
        (3_600, "due in 1 h, at 2026-11-01 12:00 UTC"),
        (59, "due in 59 s, at 2026-11-01 11:00 UTC"),
        (0, "due in 0 s, at 2026-11-01 11:00 UTC"),
        (-125, "due 2 min 5 s ago, at 2026-11-01 10:57 UTC"),
    ],
)
def test_a_page_says_until_when_in_time_left_and_in_utc(seconds: int, words: str) -> None:
    now = datetime(2026, 11, 1, 11, 0, tzinfo=UTC)
    asked_for = approval_like(since=now, due_at=now + timedelta(seconds=seconds))
    claim = Claim("uid", 7, "digest", True, "ann", [], 1_000)

    text = question_page(ShownQuestion(approval=asked_for, claim=claim, now=now), {}).body.decode()

    assert words in text


def approval_like(**fields: Any) -> Approval:
    return Approval(
        id="r:ok", run="r", workflow="pay", place="ok", title="Pay?", of=["ann"], quorum=1, four_eyes=False,
        escalated=False, approvals=[], form=None, about=msgspec.Raw(b"null"), digest="d", **fields,
    )  # fmt: skip


def test_a_link_that_was_used_is_over_and_so_is_its_other_half(server: Server, root: Caller) -> None:
    question = asked(root, "pay", "replayed", order_id="o", of=["ann"])
    pair = links_of(root, question, "ann")
    assert submit(server, pair["reject"], reason="no").status == 200

    for link in (pair["reject"], pair["approve"]):
        refused, looked = submit(server, link), server.get(urlsplit(link).path)
        assert (refused.status, looked.status) == (409, 409)
        assert "nothing was decided" in refused.raw.decode()
        assert "nothing was decided" not in looked.raw.decode(), (
            "nobody who only looks is told that their answer was lost"
        )
    assert result(root, "replayed")["approved"] is False


def test_a_link_is_for_those_who_are_asked_also_by_their_groups(server: Server, root: Caller) -> None:
    question = asked(root, "pay", "grouped", order_id="o", of=["role:ops"])

    assert submit(server, links_of(root, question, "eve")["approve"]).status == 403
    assert submit(server, links_of(root, question, "ann", ["role:ops"])["approve"]).status == 200
    assert result(root, "grouped")["by"] == ["ann"]


def test_forged_links_are_nothing(server: Server, root: Caller) -> None:
    question = asked(root, "pay", "forged", order_id="o", of=["ann"])
    token = urlsplit(links_of(root, question, "ann")["approve"]).path.rpartition("/")[2]
    payload, _, mac = token.partition(".")
    other = Links(b"x" * 32).token(Claim("u", 1, "d", True, "ann", [], 2**40))
    forged = [other, payload, f"{payload}.", f".{mac}", f"{payload}x.{mac}", f"{payload}.{mac[:-1]}", "x" * 5000]
    forged += [f"{payload}.{mac[:-2]}AA", f"{mac}.{payload}", f"{payload}.{mac}.{mac}"]
    for one in forged:
        assert server.get(f"/decide/{one}").status == 404, one
        assert submit(server, f"/decide/{one}").status == 404, one
    assert [one["run"] for one in approvals(root) if one["run"] == "forged"]


def test_every_bit_of_a_link_is_signed() -> None:
    links = Links(b"x" * 32)
    token = links.token(Claim("uid", 7, "digest", True, "ann", ["role:x"], 1_000))
    assert links.open(token, now_s=999) == Claim("uid", 7, "digest", True, "ann", ["role:x"], 1_000)
    for at in range(len(token)):
        for char in ("A", "b", "0", "."):
            changed = token[:at] + char + token[at + 1 :]
            # The last character of base64 has bits that mean nothing; compared as text they count all the same.
            if changed != token:
                with pytest.raises(weft.NotFound):
                    links.open(changed, now_s=999)


def test_an_expired_link_is_refused(server: Server, root: Caller) -> None:
    question = asked(root, "pay", "expired", order_id="o", of=["ann"])
    service = server.app.service
    (item,) = [one for one in approvals(root) if one["run"] == "expired"]
    row = server.inside(service.row(RunId("expired")))
    links = server.inside(Links.for_store(service.store.access))
    late = links.token(Claim(row.uid, 2, item["digest"], True, "ann", [], service.clock.now_ms() // 1000))
    good = links.token(Claim(row.uid, 2, item["digest"], True, "ann", [], service.clock.now_ms() // 1000 + 60))

    assert server.get(f"/decide/{late}").status == 410
    assert submit(server, f"/decide/{late}").status == 410
    assert server.get(f"/decide/{good}").status == 200
    assert question


def test_a_link_for_another_subject_or_another_question_is_over(server: Server, root: Caller) -> None:
    asked(root, "pay", "changed", order_id="o", of=["ann"])
    service = server.app.service
    (item,) = [one for one in approvals(root) if one["run"] == "changed"]
    row = server.inside(service.row(RunId("changed")))
    links = server.inside(Links.for_store(service.store.access))
    until = service.clock.now_ms() // 1000 + 60
    for claim in (
        Claim(row.uid, 2, "0" * 32, True, "ann", [], until),
        Claim(row.uid, 3, item["digest"], True, "ann", [], until),
    ):
        assert submit(server, f"/decide/{links.token(claim)}").status == 409
    gone = Claim("nobody", 2, item["digest"], True, "ann", [], until)
    assert submit(server, f"/decide/{links.token(gone)}").status == 404


def test_a_form_is_filled_in_on_the_page_and_a_wrong_one_can_be_given_again(server: Server, root: Caller) -> None:
    question = asked(root, "ship", "form")
    pair = links_of(root, question, "ann")
    page = server.get(urlsplit(pair["approve"]).path).raw.decode()
    assert set(re.findall(r'name="(form\.[a-z]+)"', page)) == {"form.carrier", "form.grams"}
    assert "form." in server.get(urlsplit(pair["reject"]).path).raw.decode()  # one may still approve there

    wrong = submit(server, pair["approve"], **{"form.carrier": EVIL, "form.grams": "many"})
    assert wrong.status == 422
    assert html.escape(EVIL) in wrong.raw.decode()
    assert "<script" not in wrong.raw.decode()
    assert submit(server, pair["approve"]).status == 422

    assert submit(server, pair["approve"], **{"form.carrier": "dhl", "form.grams": "12"}).status == 200
    assert result(root, "form") == {"approved": True, "form": ["dhl", 12]}


@pytest.mark.parametrize(
    ("body", "media", "status"),
    [
        (b"{}", "application/json", 415),
        (b"reason=a&reason=b", None, 422),
        (b"other=1", None, 422),
        (b"reason=%ff", None, 400),
        (b"form=1&form.a=1", None, 422),
        (b"reason=" + b"x" * 20_000, None, 422),
    ],
)
def test_what_a_page_would_not_send_is_refused(
    server: Server, root: Caller, body: bytes, media: str | None, status: int
) -> None:
    if not [one for one in approvals(root) if one["run"] == "sent"]:
        asked(root, "pay", "sent", order_id="o", of=["ann"])
    path = urlsplit(links_of(root, "sent%3Aok", "ann")["approve"]).path

    answer = server.ask("POST", path, raw=body, Content_Type=media or "application/x-www-form-urlencoded")

    assert answer.status == status
    assert [one["run"] for one in approvals(root) if one["run"] == "sent"]


@pytest.mark.parametrize("body", [{"by": ""}, {"by": "role:ops"}, {"by": "ann", "groups": ["ops"]}, {}])
def test_links_are_made_for_people(root: Caller, body: dict[str, Any]) -> None:
    if not [one for one in approvals(root) if one["run"] == "made"]:
        asked(root, "pay", "made", order_id="o", of=["ann"])

    assert root.post(f"{API}/approvals/made%3Aok/links", body).status == 422


# --- telling others ----------------------------------------------------------------------------------------------


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A chat adapter, and a server that is told of it."""
    running = Receiver()
    for name, value in {
        "HTTP_ALLOW": "127.0.0.1",
        "APPROVALS_URL": running.url,
        "APPROVALS_SECRET": SECRET,
        "PUBLIC_URL": "https://weft.example",
    }.items():
        monkeypatch.setenv(f"WEFT_{name}", value)
    yield running
    running.close()


def test_others_are_told_of_a_question_once_signed_and_with_links(receiver: Receiver) -> None:
    with serving(asking_app()) as server:
        here = Caller(server, None)
        asked(here, "pay", "told", order_id="o", of=["ann", "role:ops"])
        (word,) = receiver.wait_for(1)
        headers, body = receiver.heard[0]
        server.until("told", "ask_told")

        assert is_signed(SECRET, body, headers["weft-signature"], now_s=int(time.time()))
        assert not is_signed(SECRET, body + b" ", headers["weft-signature"], now_s=int(time.time()))
        assert not is_signed(SECRET, body, headers["weft-signature"], now_s=int(time.time()) + 3_600)
        assert word["event"] == "question_opened"
        assert word["key"] == headers["idempotency-key"]
        assert word["approval"]["title"] == "Pay o?"
        assert word["approval"]["about"] == {"order": "o"}
        (pair,) = word["links"]
        assert pair["person"] == "ann"
        assert pair["approve"].startswith("https://weft.example/decide/")
        assert submit(server, pair["approve"]).status == 200
        assert result(here, "told")["by"] == ["ann"]
        assert len(receiver.heard) == 1


def test_a_receiver_that_is_away_is_tried_again_with_the_same_key(receiver: Receiver) -> None:
    receiver.answers = [500, 429]
    with serving(asking_app()) as server:
        asked(Caller(server, None), "pay", "again", order_id="o", of=[])
        receiver.wait_for(3)
        server.until("again", "ask_told")
    assert len({headers["idempotency-key"] for headers, _ in receiver.heard}) == 1
    assert len(receiver.heard) == 3


def test_reminders_are_told_too_each_once(receiver: Receiver) -> None:
    with serving(asking_app()) as server:
        asked(Caller(server, None), "nagging", "nagged")
        words = receiver.wait_for(3)
    assert [word["event"] for word in words[:3]] == ["question_opened", "question_reminded", "question_reminded"]
    assert len({word["key"] for word in words}) == len(words)


def test_what_was_asked_before_anybody_listened_is_told_once_when_somebody_does(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/weft.db"
    with monkeypatch.context() as before:
        before.delenv("WEFT_APPROVALS_URL")
        before.delenv("WEFT_APPROVALS_SECRET")
        with serving(asking_app(url)) as server:
            asked(Caller(server, None), "pay", "early", order_id="o", of=[])
    for _ in range(2):
        with serving(asking_app(url)) as server:
            (word,) = receiver.wait_for(1)
            server.until("early", "ask_told")
    assert word["approval"]["run"] == "early"
    assert len(receiver.heard) == 1


def test_a_bulk_that_is_reviewed_is_told_too(receiver: Receiver) -> None:
    with serving(asking_app()) as server:
        asked(Caller(server, None), "pay", "one", order_id="o", of=[])

        async def review() -> None:
            bulk = await server.app.bulk("cancel", "one")
            await bulk.apply(reason="over", by="bob", review=["ann"])

        server.inside(review())
        words = receiver.wait_for(2)
    assert {word["approval"]["title"] for word in words} == {"Pay o?", "cancel 1 run?"}


def test_a_question_that_is_answered_before_it_was_told_is_not_told(receiver: Receiver) -> None:
    receiver.answers = [500] * 3
    with serving(asking_app()) as server:
        here = Caller(server, None)
        question = asked(here, "pay", "quick", order_id="o", of=[])
        receiver.wait_for(1)
        assert here.post(f"{API}/approvals/{question}/decision", {"approved": True}).status == 200
        seen = receiver.wait_for(1)
        ended = "/runs?workflow=weft.hook&status=completed"
        while not here.get(f"{API}{ended}").json["runs"]:
            time.sleep(0.02)
    assert len(receiver.heard) - len(seen) <= 1, "an attempt may have been on its way"
