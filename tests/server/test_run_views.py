"""The picture of a run, how it stands, its places and its timeline, over HTTP."""

from __future__ import annotations

import time

from tests.server.kit import API, Server, covers


def ended(server: Server, run: str, **given: object) -> str:
    """Start a run that says hello, and wait for its end. Returns its address."""
    server.start("hello", run, **given)
    assert server.get(f"{API}/runs/{run}/result?wait=20").status == 200
    return f"{API}/runs/{run}"


@covers("getPicture", "getStanding")
def test_a_run_is_shown_as_boxes_and_arrows(server: Server) -> None:
    run = ended(server, "drawn", name="anna")

    picture = server.get(f"{run}/picture").json
    standing = server.get(f"{run}/standing").json

    boxes = {box["id"]: box for box in picture["boxes"]}
    assert {arrow["to"] for arrow in picture["arrows"]} == set(boxes) - {""}
    assert all(box["w"] > 0 and box["x"] + box["w"] <= picture["width"] for box in boxes.values())
    assert standing["status"] == "completed"
    assert {standing["boxes"][name]["mark"] for name in boxes} == {"done"}
    assert set(standing["arrows"]) == {arrow["id"] for arrow in picture["arrows"]}


@covers("getStanding", "getPicture")
def test_a_run_is_shown_as_it_was_after_an_event(server: Server) -> None:
    run = ended(server, "earlier", name="anna")

    first = server.get(f"{run}/standing?at=1").json

    assert first["status"] == "running"
    assert not first["arrows"]
    assert [box["id"] for box in server.get(f"{run}/picture?at=1").json["boxes"]] == [""]
    missing = server.get(f"{run}/standing?at=1000")
    assert (missing.status, missing.code) == (404, "run.not_found")


@covers("explainRun")
def test_a_run_is_explained_as_it_was_after_an_event(server: Server) -> None:
    run = ended(server, "explained", name="anna")

    now = server.get(f"{run}/explain").json
    [first] = server.get(f"{run}/places?limit=1&q=greet").json["places"]
    then = server.get(f"{run}/explain?at={first['began']}").json

    assert now["status"] == "completed"
    assert (then["status"], then["waiting"][0]["location"]) == ("running", first["place"])
    assert then["diagnosis"]["at"] <= now["diagnosis"]["at"]


@covers("getMe")
def test_a_screen_learns_who_is_asking(server: Server) -> None:
    me = server.get(f"{API}/me").json

    assert (me["name"], me["scopes"], me["groups"], me["is_open"]) == ("local", ["admin"], None, True)
    assert me["store"] == "memory://"
    assert (me["hosts"], me["warnings"]) == (1, [])


@covers("getWaits")
def test_a_list_learns_what_its_runs_wait_for(server: Server) -> None:
    ended(server, "over", name="anna")
    server.start("ship", "asks", order_id="7")
    while not (found := server.get(f"{API}/waits?id=asks&id=over&id=nobody").json["waits"]):
        time.sleep(0.02)

    assert [(one["run"], one["waits_for"].partition(" to ")[0]) for one in found] == [("asks", "an answer")]
    assert server.get(f"{API}/waits").json == {"waits": []}


@covers("listPlaces", "getPlace", "getTimeline")
def test_places_have_pages_values_and_times(server: Server) -> None:
    run = ended(server, "placed", name="anna")

    first = server.get(f"{run}/places?limit=1").json
    rest = server.get(f"{run}/places?after={first['after']}").json
    place = next(one for one in [*first["places"], *rest["places"]] if one["kind"] == "step")
    one = server.get(f"{run}/places/{place['number']}").json
    timeline = server.get(f"{run}/timeline").json

    assert place["mark"] == "done"
    assert one["place"] == place
    assert one["output"] is not None
    assert timeline["since"] <= timeline["rows"][0]["since"] <= timeline["until"]
    assert place["box"] in {row["box"] for row in timeline["rows"]}
    assert rest["after"] is None
    assert server.get(f"{run}/places?q=nothing-like-it").json["places"] == []
    assert server.get(f"{run}/places?box={place['box']}&mark=failed").json["places"] == []
    assert server.get(f"{run}/places/0").status == server.get(f"{run}/places/x").status == 404


def test_a_run_that_has_not_begun_has_no_picture_yet(server: Server) -> None:
    server.post(f"{API}/runs", {"workflow": "hello", "input": {"name": "a"}, "id": "tomorrow", "delay": 86_400})

    answer = server.get(f"{API}/runs/tomorrow/picture")

    assert (answer.status, answer.json["hint"]) == (404, "weft explain tomorrow")
    assert server.get(f"{API}/runs/tomorrow/places").json["places"] == []


@covers("getTimeline", "listPlaces")
def test_the_timeline_of_a_box_has_a_row_for_each_of_its_places(server: Server) -> None:
    run = ended(server, "timed", name="anna")
    [place] = server.get(f"{run}/places?kind=step&limit=1").json["places"]

    whole = server.get(f"{run}/timeline").json
    opened = server.get(f"{run}/timeline?box={place['box']}&limit=1").json

    assert (whole["begun"], whole["now"]) == (whole["since"], whole["until"])
    assert (whole["gaps"], whole["lines"]) == ([], [])
    assert [(row["number"], row["place"]) for row in opened["rows"]] == [(place["number"], place["place"])]
    assert server.get(f"{run}/timeline?mark=failed").json["rows"] == []
    assert server.get(f"{run}/timeline?kind=ask").json["rows"] == []
    assert {row["box"] for row in server.get(f"{run}/timeline?q={place['place']}").json["rows"]} == {place["box"]}


@covers("listEvents")
def test_events_are_found_by_their_place_and_how_it_stands(server: Server) -> None:
    run = ended(server, "found", name="anna")
    [place] = server.get(f"{run}/places?kind=step&limit=1").json["places"]

    about = server.get(f"{run}/events?about={place['place']}").json["events"]

    assert [event["seq"] for event in about] == [place["began"], place["ended"]]
    assert server.get(f"{run}/events?about={place['box']}&before={place['ended']}&limit=1").json["events"] == about[:1]
    assert about[0] in server.get(f"{run}/events?kind=step").json["events"]
    assert about[0] in server.get(f"{run}/events?mark=done").json["events"]
    assert server.get(f"{run}/events?mark=failed").json["events"] == []
