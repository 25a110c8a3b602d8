"""What a run holds, its values in full, its log in windows, and what may be done to it, over HTTP."""

from __future__ import annotations

from tests.server.keyring import caller
from tests.server.kit import API, Server, covers, serving
from tests.server.shop import shop
from tests.server.test_run_views import ended
from weft.observe.run_actions import RunActions
from weft.server.endpoints.run_detail import SCOPES
from weft.server.route_table import ROUTES

ROUTE_OF = {
    "pause": "pauseRun",
    "resume": "resumeRun",
    "cancel": "cancelRun",
    "retry": "retryRun",
    "fork": "forkRun",
    "change": "patchRun",
    "send": "sendMessage",
    "set": "setResult",
    "export": "exportRun",
    "move": "moveRun",
    "delete": "deleteRun",
    "keep": "keepRun",
}


def section(state: dict, name: str) -> dict:
    """Return the values of a section by name."""
    found = next((one for one in state["sections"] if one["name"] == name), {"values": []})
    return {value["name"]: value for value in found["values"]}


@covers("getState")
def test_a_state_says_what_an_event_changed(server: Server) -> None:
    run = ended(server, "held", name="anna")
    [begun] = server.get(f"{run}/events?kind=task_scheduled").json["events"]

    now, then = server.get(f"{run}/state").json, server.get(f"{run}/state?at={begun['seq']}").json

    assert section(now, "input")["name"]["value"] == "anna"
    assert section(now, "attributes")["name"]["value"] == "anna"
    assert section(now, "output")[""] | {"ref": ""} == {
        "name": "", "value": "hello anna!", "ref": "", "bytes": 13, "changed": True,
    }  # fmt: skip
    assert {name: value["changed"] for name, value in section(then, "open").items()} == {"greet": True}
    assert not section(then, "input")["name"]["changed"]
    assert not section(then, "output")
    assert then["status"] == "running"


@covers("getValue")
def test_a_large_value_is_a_reference_that_is_read_in_ranges(server: Server) -> None:
    name = "x" * 100_000
    run = ended(server, "large", name=name)

    state = server.get(f"{run}/state").json
    output = section(state, "output")[""]
    whole = server.get(f"{run}/values/{output['ref']}")
    part = server.get(f"{run}/values/{output['ref']}", range="bytes=1-5")
    tail = server.get(f"{run}/values/{output['ref']}", range="bytes=-3")

    assert (output["value"], output["bytes"]) == (None, len(whole.raw))
    assert whole.json == f"hello {name}!"
    assert (part.status, part.raw, part.headers["content-range"]) == (206, b"hello", f"bytes 1-5/{len(whole.raw)}")
    assert tail.raw == b'x!"'
    assert server.get(f"{run}/values/{output['ref']}", range="bytes=900000-").status == 416
    [started] = server.get(f"{run}/events?kind=run_completed").json["events"]
    [large] = started["large"]
    assert server.get(f"{run}/values/{large['ref']}").raw == whole.raw


@covers("getValue")
def test_a_reference_that_the_run_does_not_have_is_not_found(server: Server) -> None:
    run = ended(server, "refs", name="anna")

    for ref in ("event:1:style", "event:900:input", "state:1:output:", "place:0:input", "x", "state:x:input:name"):
        assert server.get(f"{run}/values/{ref}").status == 404, ref
    assert server.get(f"{run}/values/event:1:input").json == {"name": "anna"}


@covers("listEvents")
def test_a_log_is_read_in_windows_from_both_ends(server: Server) -> None:
    run = ended(server, "windows", name="anna")
    whole = server.get(f"{run}/events").json
    numbers = [event["seq"] for event in whole["events"]]
    assert (whole["after"], whole["before"], whole["seq"]) == (None, None, numbers[-1])

    newest = server.get(f"{run}/events?order=last&limit=2").json
    older = server.get(f"{run}/events?before={newest['before']}&limit=2").json
    newer = server.get(f"{run}/events?after={older['after']}&limit=2").json

    assert [event["seq"] for event in newest["events"]] == numbers[-2:]
    assert [event["seq"] for event in older["events"]] == numbers[-4:-2]
    assert newer["events"] == newest["events"]
    assert server.get(f"{run}/events?at=2").json["events"] == whole["events"][:2]


@covers("listEvents", "listPlaces")
def test_events_say_what_happened_and_where(server: Server) -> None:
    run = ended(server, "said", name="anna")
    [greet] = server.get(f"{run}/places?q=greet").json["places"]

    found = server.get(f"{run}/events?box=greet").json["events"]

    assert [event["text"] for event in found] == ["greet started", "greet succeeded"]
    assert {(event["number"], event["place"], event["box"]) for event in found} == {(greet["number"], "greet", "greet")}
    assert server.get(f"{run}/events?place={greet['number']}").json["events"] == found
    assert server.get(f"{run}/events?q=SUCCEEDED").json["events"] == found[1:]
    assert server.get(f"{run}/events?kind=run_held").json["events"] == []


@covers("getRun")
def test_a_run_says_what_may_be_done_to_it(server: Server) -> None:
    ended(server, "over", name="anna")
    server.start("order", "waits", order_id="7")
    server.until("waits", "message_awaited")

    over, open_ = (server.get(f"{API}/runs/{run}").json["actions"] for run in ("over", "waits"))

    assert {name for name, action in over.items() if action["allowed"]} == {"fork", "export", "delete", "keep"}
    assert {name for name, action in open_.items() if not action["allowed"]} == {"resume", "retry", "delete"}
    assert over["pause"]["why_not"] == "over is completed; there is nothing to pause."
    assert over["retry"]["why_not"] == "over is completed, so it cannot be retried."
    assert open_["resume"]["why_not"] == "waits is running already."


@covers("getRun")
def test_a_child_knows_its_way_to_the_root(server: Server) -> None:
    server.start("family", "parent")
    server.result("parent")

    child = server.get(f"{API}/runs/parent.child").json

    assert (child["parent"], child["root"], child["ancestors"]) == ("parent", "parent", ["parent"])
    assert server.get(f"{API}/runs/parent").json["root"] == "parent"


def test_actions_need_the_scopes_of_their_routes() -> None:
    scopes = {route.name: route.scope for route in ROUTES}

    assert set(RunActions.__struct_fields__) == set(SCOPES)
    assert {name: scopes[route] for name, route in ROUTE_OF.items()} == SCOPES


@covers("getRun")
def test_a_caller_who_only_reads_may_do_nothing() -> None:
    with serving(shop()) as server:
        caller(server, "ann", "admin").post(f"{API}/runs", {"workflow": "hello", "id": "h", "input": {"name": "a"}})
        actions = caller(server, "eve", "read").get(f"{API}/runs/h").json["actions"]

    assert [name for name, action in actions.items() if action["allowed"]] in (["export"], [])
    assert actions["cancel"]["why_not"] == "This needs the scope operate."


@covers("explainRun", "listPlaces")
def test_a_wait_says_its_place_and_what_would_end_it(server: Server) -> None:
    server.start("order", "wanted", order_id="7")
    server.until("wanted", "message_awaited")

    [wait] = server.get(f"{API}/runs/wanted/explain").json["waiting"]

    [place] = server.get(f"{API}/runs/wanted/places").json["places"]
    assert (wait["number"], wait["box"]) == (place["number"], place["box"])
    assert wait["action"] == {"kind": "send", "names": ["quote"]}


@covers("getChanges", "forkRun")
def test_changes_say_who_and_why(server: Server) -> None:
    server.start("order", "changed", order_id="7")
    server.until("changed", "message_awaited")
    server.post(f"{API}/runs/changed/pause", {"reason": "lunch", "by": "ann"})
    server.post(f"{API}/runs/changed/fork", {"id": "changed-2", "at": 2, "reason": "try", "by": "bob"})

    found = server.get(f"{API}/runs/changed/changes").json

    [pause] = found["changes"]
    assert (pause["text"], pause["by"], pause["reason"]) == ("the run was paused by ann: lunch", "ann", "lunch")
    [fork] = found["forks"]
    assert (fork["run"], fork["seq"], fork["by"], fork["reason"]) == ("changed-2", 2, "bob", "try")
    assert server.get(f"{API}/runs/changed-2/changes").json["forked_from"] == {"run": "changed", "seq": 2}
