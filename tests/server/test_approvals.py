"""People decide over HTTP: for themselves, once, about what they saw; also by a link that shows what it decides."""

from __future__ import annotations

import html
import json
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

import weft
from tests.server.keyring import Caller, add_key, caller
from tests.server.kit import API, Answer, Server, covers, quoted, serving
from tests.server.shop import Parcel
from weft.core.ids import RunId
from weft.server.approvals.links import Claim, Links
from weft.server.approvals.notifier import Notifier
from weft.server.settings import NotifierSettings, read_notifier_settings
from weft.tokens import is_signed

EVIL = "<script>alert('x')</script>\"'&"
SECRET = "s" * 32


def asking_app() -> weft.App:
    app = weft.App("memory://")

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
    ann = caller(server, "ann", "read", groups=["role:ops"])

    mine = {one["run"] for one in approvals(ann, "&mine=true")}

    assert {"for-ann", "for-ops", "for-all"} <= mine
    assert "for-bob" not in mine
    assert "for-bob" in {one["run"] for one in approvals(ann)}


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
    assert "<button>Approve</button>" in text
    assert "default-src 'none'" in shown.headers["content-security-policy"]
    assert shown.headers["referrer-policy"] == "no-referrer"
    assert shown.headers["cache-control"] == "no-store"
    assert [one["run"] for one in approvals(root) if one["run"] == "link"]  # looking decided nothing

    done = submit(server, pair["approve"], reason="all good")
    assert done.status == 200
    assert "Recorded" in done.raw.decode()
    assert result(root, "link") == {"approved": True, "by": ["ann"], "reason": "all good"}


def test_a_link_that_was_used_is_over_and_so_is_its_other_half(server: Server, root: Caller) -> None:
    question = asked(root, "pay", "replayed", order_id="o", of=["ann"])
    pair = links_of(root, question, "ann")
    assert submit(server, pair["reject"], reason="no").status == 200

    for link in (pair["reject"], pair["approve"]):
        assert submit(server, link).status == 409
        assert server.get(urlsplit(link).path).status == 409
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
    assert "form." not in server.get(urlsplit(pair["reject"]).path).raw.decode()

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


class Receiver:
    """A chat adapter: keeps what it is sent, and answers as it is told."""

    def __init__(self) -> None:
        self.words: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[int] = []
        self.heard = threading.Condition()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                with receiver.heard:
                    receiver.words.append(({name.lower(): value for name, value in self.headers.items()}, body))
                    status = receiver.answers.pop(0) if receiver.answers else 204
                    receiver.heard.notify_all()
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.telling = NotifierSettings(
            url=f"http://127.0.0.1:{self.server.server_port}/hook", secret=SECRET, public="https://weft.example"
        )

    def wait_for(self, count: int) -> list[Any]:
        with self.heard:
            assert self.heard.wait_for(lambda: len(self.words) >= count, 120)
            return [json.loads(body) for _, body in self.words]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setenv("WEFT_HTTP_ALLOW", "127.0.0.1")
    running = Receiver()
    yield running
    running.close()


def telling(server: Server, receiver: Receiver) -> None:
    """Let a server that runs tell the receiver."""

    async def begin() -> None:
        services = server.api.services
        services.notifier = Notifier(lambda: services.runs, receiver.telling)
        services.notifier.attach(services.hosting())

    server.inside(begin())


def test_others_are_told_of_a_question_once_signed_and_with_links(receiver: Receiver) -> None:
    with serving(asking_app()) as server:
        telling(server, receiver)
        here = Caller(server, None)
        asked(here, "pay", "told", order_id="o", of=["ann", "role:ops"])
        (word,) = receiver.wait_for(1)
        headers, body = receiver.words[0]
        server.until("told", "ask_told")

        assert is_signed(SECRET, body, headers["weft-signature"], now_s=int(time.time()))
        assert not is_signed(SECRET, body + b" ", headers["weft-signature"], now_s=int(time.time()))
        assert not is_signed(SECRET, body, headers["weft-signature"], now_s=int(time.time()) + 3_600)
        assert word["event"] == "question.opened"
        assert word["key"] == headers["idempotency-key"]
        assert word["approval"]["title"] == "Pay o?"
        assert word["approval"]["about"] == {"order": "o"}
        (pair,) = word["links"]
        assert pair["person"] == "ann"
        assert pair["approve"].startswith("https://weft.example/decide/")
        assert submit(server, pair["approve"]).status == 200
        assert result(here, "told")["by"] == ["ann"]
        assert len(receiver.words) == 1


def test_a_receiver_that_is_away_is_tried_again_with_the_same_key(receiver: Receiver) -> None:
    receiver.answers = [500, 429]
    with serving(asking_app()) as server:
        telling(server, receiver)
        asked(Caller(server, None), "pay", "again", order_id="o", of=[])
        receiver.wait_for(3)
        server.until("again", "ask_told")
    assert len({headers["idempotency-key"] for headers, _ in receiver.words}) == 1
    assert len(receiver.words) == 3


def test_reminders_are_told_too_each_once(receiver: Receiver) -> None:
    with serving(asking_app()) as server:
        telling(server, receiver)
        asked(Caller(server, None), "nagging", "nagged")
        words = receiver.wait_for(3)
    assert [word["event"] for word in words[:3]] == ["question.opened", "question.reminded", "question.reminded"]
    assert len({word["key"] for word in words}) == len(words)


def test_what_was_asked_before_anybody_listened_is_told_when_somebody_does(receiver: Receiver) -> None:
    with serving(asking_app()) as server:
        asked(Caller(server, None), "pay", "early", order_id="o", of=[])
        telling(server, receiver)
        (word,) = receiver.wait_for(1)
    assert word["approval"]["run"] == "early"


def test_half_of_the_settings_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_notifier_settings() is None
    monkeypatch.setenv("WEFT_APPROVALS_URL", "https://chat.example/hook")
    with pytest.raises(weft.UsageError, match="WEFT_APPROVALS_SECRET"):
        read_notifier_settings()
    monkeypatch.setenv("WEFT_APPROVALS_SECRET", "short")
    monkeypatch.setenv("WEFT_PUBLIC_URL", "https://weft.example/")
    with pytest.raises(weft.UsageError):
        read_notifier_settings()
    monkeypatch.setenv("WEFT_APPROVALS_SECRET", SECRET)
    assert read_notifier_settings() == NotifierSettings(
        url="https://chat.example/hook", secret=SECRET, public="https://weft.example"
    )
