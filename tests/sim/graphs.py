"""Graphs of every kind, with code that calls them and is called by them, each with what it must give without faults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import weft
from tests.sim.graph_steps import BIG, app, bump, hopeless, reserve
from tests.sim.workflows import ANY, Cast, Kind


def step(name: str, n: str = "${input.n}", **fields: Any) -> dict[str, Any]:
    """A node that performs a step with a number."""
    return {"step": name, "with": {"n": n}, **fields}


def graph(name: str, nodes: dict[str, Any], output: dict[str, Any], **fields: Any) -> weft.Graph:
    return app.graph({"weft": "graph/1", "name": name, "nodes": nodes, "output": output, **fields})


# --- one behind the other ----------------------------------------------------------------------------------------

chain = graph(
    "chain",
    {
        "first": step("bump", next="second"),
        "second": step("third_time", "${output}", next="third"),
        "third": step("plain", "${nodes.second.output}", save={"state.n": "${output}"}),
    },
    {"n": "${state.n}"},
    input={"n": "integer"},
)

rounds = graph(
    "rounds",
    {
        "begin": {"pass": True, "save": {"state.n": "${input.n}"}, "next": "work"},
        "work": step("bump", "${state.n}", save={"state.n": "${output}"}, next=[{"to": ["left", "right"]}]),
        "left": step("plain", "${state.n}", next="meet"),
        "right": step("bump", "${state.n}", next="meet"),
        "meet": {
            "join": "all", "step": "total", "with": {"numbers": "${output}"},
            "repeat": {"while": "state.n < input.n + input.rounds", "at_most": 9, "back_to": "work"},
            "save": {"state.last": "${output}"},
        },
    },
    {"n": "${state.n}", "last": "${state.last}"},
)  # fmt: skip

choice = graph(
    "choice",
    {
        "look": step(
            "bump",
            fan_out="all",
            next=[
                {"to": "always"},
                {"to": "even", "when": "input.n % 2 == 0"},
                {"to": "third", "when": "output % 3 == 0"},
            ],
        ),
        "always": step("plain", next="meet"),
        "even": step("bump", next=[{"to": "deep", "when": "input.n % 4 == 0"}, {"to": "flat"}]),
        "deep": step("plain", next="meet"),
        "flat": step("bump", next="meet"),
        "third": step("idle", next="meet"),
        "meet": {"join": "edges", "pass": True, "save": {"state.met": "${output}"}},
    },
    {"met": "${state.met}"},
)


def chosen(given: dict[str, Any]) -> dict[str, Any]:
    n = given["n"]
    met = {"always": n + 1}
    if n % 2 == 0:
        met["deep" if n % 4 == 0 else "flat"] = n + 1
    if (n + 1) % 3 == 0:
        met["third"] = n
    return {"met": met}


caught = graph(
    "caught",
    {
        "try": step("hopeless", catch=[{"error": "Other", "to": "wrong"}, {"to": "mend"}], next="wrong"),
        "wrong": step("bump"),
        "mend": {
            "step": "say", "with": {"what": "${error.type}", "n": "${input.n}"}, "save": {"state.said": "${output}"},
        },
    },
    {"said": "${state.said}"},
)  # fmt: skip

unmatched = graph(
    "unmatched",
    {
        "look": step(
            "bump", next=[{"to": "much", "when": "output > 1000"}], catch=[{"error": "no_match", "to": "mend"}]
        ),
        "much": step("bump"),
        "mend": step("plain", save={"state.n": "${output}"}),
    },
    {"n": "${state.n}"},
)

# --- many at once ------------------------------------------------------------------------------------------------

spread = graph(
    "spread",
    {
        "list": {"pass": True, "next": [{"to": "one", "for_each": "${input.items}", "as": "it", "width": 2}]},
        "one": step("bump", "${it}", next="two"),
        "two": step("plain", "${output}", save={"branch.n": "${output}"}, next="all"),
        "all": {
            "join": "all", "merge": {"from": "branch.n", "how": "append", "into": "state.all"},
            "step": "total", "with": {"numbers": "${state.all}"}, "save": {"state.sum": "${output}"},
        },
    },
    {"all": "${state.all}", "sum": "${state.sum}"},
)  # fmt: skip

nested = graph(
    "nested",
    {
        "rows": {"pass": True, "next": [{"to": "row", "for_each": "${input.rows}", "as": "row"}]},
        "row": {"pass": True, "next": [{"to": "cell", "for_each": "${row}", "as": "cell"}]},
        "cell": step("bump", "${cell}", next="cells"),
        "cells": {"join": "all", "merge": {"how": "append", "into": "branch.cells"}, "next": "table"},
        "table": {"join": "all", "merge": {"from": "branch.cells", "how": "append", "into": "state.table"}},
    },
    {"table": "${state.table}"},
)


def quorum_of(name: str, late: str) -> weft.Graph:
    return graph(
        name,
        {
            "list": {"pass": True, "next": [{"to": "slow", "for_each": "${input.items}", "as": "it"}]},
            "slow": step("idle", "${it}", next="kept"),
            "kept": step("book", "${it}", undo={"step": "unbook", "with": {"id": "${output.id}"}}, next="some"),
            "some": {
                "join": {"at_least": 2}, "late": late, "next": "after",
                "merge": {"from": "output.id", "how": "append", "into": "state.ids"},
            },
            "after": step("bump", "${1}", next="last"),
            "last": {"wait": "1s"},
        },
        {"ids": "${state.ids}"},
    )  # fmt: skip


quorum = quorum_of("quorum", "cancel")
late = quorum_of("late", "merge")
left = quorum_of("left", "abandon")


def two_of(given: dict[str, Any]) -> Callable[[Any], bool]:
    """Two different ones of the items, in their order."""
    items: list[int] = given["items"]
    return lambda told: len(told["ids"]) == 2 and told["ids"] == [i for i in items if i in told["ids"]]


some_fail = graph(
    "some_fail",
    {
        "list": {"pass": True, "next": [{"to": "one", "for_each": "${input.items}", "as": "it"}]},
        "one": {"pass": True, "next": [{"to": "bad", "when": "it % 2 == 1"}, {"to": "good"}]},
        "bad": step("hopeless", "${it}", next="some"),
        "good": step("bump", "${it}", next="some"),
        "some": {
            "join": {"at_least": "50%"},
            "merge": {"from": "output", "how": "append", "into": "state.got"},
            "save": {"state.failed": "${join.failed}"},
        },
    },
    {"got": "${state.got}"},
)

# --- time and people ---------------------------------------------------------------------------------------------

sleeper = graph(
    "sleeper",
    {"doze": {"wait": "1s", "next": "work"}, "work": step("bump", next="nap"), "nap": {"wait": "700ms", "next": "end"},
     "end": step("plain", "${nodes.work.output}", save={"state.n": "${output}"})},
    {"n": "${state.n}"},
)  # fmt: skip

asked = graph(
    "asked",
    {
        "before": step("bump", next="ok"),
        "ok": {
            "ask": {"title": "Go on with ${input.n}?", "timeout": "5s", "on_timeout": "reject"},
            "save": {"state.approved": "${output.approved}", "state.by": "${output.by}"},
            "next": [{"to": "yes", "when": "output.approved"}, {"to": "no"}],
        },
        "yes": step("bump"),
        "no": step("plain"),
    },
    {"approved": "${state.approved}", "by": "${state.by}"},
)

late_node = graph(
    "late_node",
    {
        "long": step("stall", limits={"time": "1500ms"}, catch=[{"error": "deadline", "to": "give_up"}]),
        "give_up": step("bump", save={"state.n": "${output}"}),
    },
    {"n": "${state.n}"},
)

deadline = graph(
    "deadline",
    {"take": step("reserve", next=[{"to": ["doze", "again"]}]), "doze": {"wait": "1h"}, "again": step("reserve")},
    {"n": 1},
    limits={"time": "4s"},
)

dozing = graph("dozing", {"take": step("reserve", next="doze"), "doze": {"wait": "10d"}}, {"n": 1})

# --- other runs --------------------------------------------------------------------------------------------------


@app.workflow
async def doubled(ctx: weft.Context, n: int) -> int:
    await ctx.sleep("300ms")
    return await bump(n) + await bump(n)


@app.workflow
async def sinking(ctx: weft.Context, n: int) -> int:
    await reserve(n)
    return await hopeless(n)


def child(name: str, kept: str, **fields: Any) -> dict[str, Any]:
    return {"workflow": name, "with": {"n": "${input.n}"}, "save": {"branch.n": kept}, "next": "meet", **fields}


family = graph(
    "family",
    {
        "split": {"pass": True, "next": [{"to": ["code", "graph", "bad"]}]},
        "code": child("doubled", "${output}"),
        "graph": child("chain", "${output.n}"),
        "bad": child("sinking", "${output.error.type}", on_failure="route"),
        "meet": {"join": "all", "merge": {"from": "branch.n", "how": "append", "into": "state.all"}},
    },
    {"all": "${state.all}"},
)  # fmt: skip


@app.workflow
async def caller(ctx: weft.Context, n: int) -> list[Any]:
    """Code that runs graphs, one of which it gives up."""
    first = await ctx.call(chain, {"n": n})
    both = await ctx.join("both", ctx.call(spread, {"items": [n, n + 1]}), bump(n))
    try:
        await ctx.call(dozing, {"n": n}, timeout="1s")
    except weft.TimedOut:
        return [first["n"], both[0]["sum"], both[1]]
    return []


hurried = graph(
    "hurried",
    {
        "list": {"pass": True, "next": [{"to": ["quick", "slow"]}]},
        "quick": step("bump", next="first"),
        "slow": {"workflow": "endless", "with": {}, "next": "first"},
        "first": {"join": "any", "pass": True, "save": {"state.n": "${output[0]}"}},
    },
    {"n": "${state.n}"},
)


hasty = graph(
    "hasty",
    {
        "split": {"pass": True, "next": [{"to": ["quick", "slow"]}]},
        "quick": step("bump", next="first"),
        "slow": {"workflow": "endless", "with": {}, "next": "first"},
        "first": {
            "join": {"wait": "all", "timeout": "30s", "on_timeout": "proceed"}, "pass": True,
            "save": {"state.n": "${output[0]}"},
        },
    },
    {"n": "${state.n}"},
)  # fmt: skip

impatient = graph(
    "impatient",
    {
        "split": {"pass": True, "next": [{"to": ["quick", "slow"]}]},
        "quick": step("bump", next="meet"),
        "slow": {"wait": "30m", "next": "meet"},
        # A clock that jumps by hours brings both ways here at once.
        "meet": {
            "join": {"wait": "edges", "timeout": "2m"}, "pass": True, "save": {"state.how": "in time"}, "catch": "gone",
        },
        "gone": {
            "step": "say", "with": {"what": "${error.code}", "n": "${input.n}"}, "save": {"state.how": "${output}"},
        },
    },
    {"how": "${state.how}"},
)  # fmt: skip


@app.workflow
async def endless(ctx: weft.Context) -> str:
    await reserve(7)
    await ctx.sleep("10d")
    return "woken"


# --- when it goes wrong ------------------------------------------------------------------------------------------

undone = graph(
    "undone",
    {
        "one": step("reserve", next=[{"to": ["two", "three"]}]),
        "two": step("book", undo={"step": "unbook", "with": {"id": "${output.id}"}, "retry": 60}, next="meet"),
        "three": step("reserve", "${input.n + 1}", next="meet"),
        "meet": {"join": "all", "pass": True, "next": "doze"},
        "doze": {"wait": "1s", "next": "four"},
        "four": step("reserve", "${input.n + 2}", next="sink"),
        "sink": step("hopeless"),
    },
    {"n": 1},
)

torn = graph(
    "torn",
    {
        "split": {"pass": True, "next": [{"to": "one", "for_each": "${input.items}", "as": "it"}]},
        "one": step("reserve", "${it}", next=[{"to": "sink", "when": "branch.index == 1"}, {"to": "two"}]),
        "two": step("hesitate", "${it}", next="meet"),
        "sink": step("idle", "${2}", next="sunk"),
        "sunk": step("hopeless", "${it}", next="meet"),
        "meet": {"join": "all", "pass": True},
    },
    {"n": 1},
)

letters = graph(
    "letters",
    {
        "first": step("bump", next="bad"),
        "bad": step("stubborn", "${output}", save={"state.n": "${output}"}, next="end"),
        "end": step("bump", "${output}"),
    },
    {"n": "${state.n}"},
)

mending = graph(
    "mending",
    {
        "begin": {"pass": True, "next": [{"to": ["left", "right"]}]},
        "left": step("bump", next="meet"),
        "right": step("bump", next=[{"to": ["bad", "slow"]}]),
        "bad": step("stubborn", next="inner"),
        "slow": step("idle", next="inner"),
        "inner": {"join": "all", "step": "total", "with": {"numbers": "${output}"}, "next": "meet"},
        "meet": {"join": "all", "step": "total", "with": {"numbers": "${output}"}, "save": {"state.n": "${output}"}},
    },
    {"n": "${state.n}"},
)
"""A branch inside a branch fails; once mended, the run gives what it would have given."""

betting = graph(
    "betting",
    {
        "begin": {"pass": True, "next": [{"to": ["quick", "bet"]}]},
        "quick": step("bump", next="soon"),
        "soon": {"wait": "300ms", "next": "meet"},
        "bet": step("reserve", next="more"),
        "more": step("hesitate", next="later"),
        "later": {"wait": "9s", "next": "meet"},
        "meet": {"join": "any", "merge": {"into": "state.got", "how": "append"}},
    },
    {"got": "${state.got}"},
)
"""What the loser has done is undone before the run completes."""

once = graph(
    "once",
    {
        "fire": step("fire", catch=[{"error": "OutcomeUnknown", "to": "ask"}, {"to": "failed"}], next="fired"),
        "fired": {"pass": True, "save": {"state.how": "fired"}},
        "ask": {"pass": True, "save": {"state.how": "unknown"}},
        "failed": {"pass": True, "save": {"state.how": "failed"}},
    },
    {"how": "${state.how}"},
)

# --- values that lie in blobs ------------------------------------------------------------------------------------

big = graph(
    "big",
    {
        "blow": step(
            "blow_up", save={"state.text": "${output.text}"}, next=[{"to": "long", "when": "size(output.text) > 9"}],
        ),
        "long": {
            "step": "measure", "with": {"text": "${state.text}"}, "save": {"state.n": "${output}"}, "next": "list",
        },
        "list": {"pass": True, "next": [{"to": "more", "for_each": "${[1, 2]}", "as": "it"}]},
        "more": step("blow_up", "${it}", next="meet"),
        "meet": {
            "join": "all", "merge": {"from": "output.text", "how": "append", "into": "state.texts"}, "pass": True,
            "next": [{"to": "end", "when": "size(state.texts[1]) > size(state.texts[0])"}],
        },
        "end": {
            "step": "measure", "with": {"text": "${state.texts[1] + state.text}"}, "save": {"state.sum": "${output}"},
        },
    },
    {"n": "${state.n}", "sum": "${state.sum}", "text": "${state.text}"},
)  # fmt: skip


def _n(random: Any) -> dict[str, Any]:
    return {"n": random.randrange(100)}


def _items(random: Any, least: int, most: int) -> dict[str, Any]:
    return {"items": random.sample(range(100), random.randint(least, most))}


def _half(random: Any) -> dict[str, Any]:
    return {"items": [2 * random.randrange(50), 2 * random.randrange(50) + 1, 2 * random.randrange(50)]}


GRAPHS = Cast(
    "graphs",
    app,
    (
        Kind(chain, _n, lambda a: {"n": a["n"] + 2}, weight=3),
        Kind(
            rounds, lambda r: {**_n(r), "rounds": r.randint(1, 3)},
            lambda a: {"n": a["n"] + a["rounds"], "last": 2 * (a["n"] + a["rounds"]) + 2}, weight=3,
        ),
        Kind(choice, _n, chosen, weight=4),
        Kind(caught, _n, lambda a: {"said": f"Critical {a['n']}"}),
        Kind(unmatched, _n, lambda a: {"n": a["n"] + 1}),
        Kind(
            spread, lambda r: _items(r, 0, 5),
            lambda a: {"all": [i + 2 for i in a["items"]], "sum": sum(i + 2 for i in a["items"])}, weight=4,
        ),
        Kind(
            nested, lambda r: {"rows": [_items(r, 0, 3)["items"] for _ in range(r.randint(1, 3))]},
            lambda a: {"table": [[i + 1 for i in row] for row in a["rows"]]}, weight=3,
        ),
        Kind(quorum, lambda r: _items(r, 2, 4), two_of, weight=4),
        Kind(late, lambda r: _items(r, 2, 4), lambda a: {"ids": a["items"]}, weight=3),
        Kind(left, lambda r: _items(r, 2, 4), two_of, weight=2),
        Kind(some_fail, _half, lambda a: {"got": [a["items"][0] + 1, a["items"][2] + 1]}, weight=3),
        Kind(sleeper, _n, lambda a: {"n": a["n"] + 2}),
        Kind(asked, _n, lambda a: ANY, asks=True, weight=3),
        Kind(late_node, _n, lambda a: {"n": a["n"] + 1}, weight=2),
        Kind(deadline, _n, lambda a: ANY, fails="deadline", weight=3),
        Kind(family, _n, lambda a: {"all": [2 * a["n"] + 2, a["n"] + 2, "StepFailed"]}, weight=3),
        Kind(caller, _n, lambda a: [a["n"] + 2, 2 * a["n"] + 5, a["n"] + 1], weight=3),
        Kind(hurried, _n, lambda a: {"n": a["n"] + 1}, weight=3),
        Kind(hasty, _n, lambda a: {"n": a["n"] + 1}, weight=3),
        Kind(impatient, _n, lambda a: lambda told: told["how"] in ("in time", f"timed_out {a['n']}"), weight=2),
        Kind(undone, _n, lambda a: ANY, fails="Critical", weight=4),
        Kind(torn, lambda r: _items(r, 2, 4), lambda a: ANY, fails="Critical", weight=4),
        Kind(letters, _n, lambda a: {"n": a["n"] + 1}, fails="Critical", letters=True, weight=4),
        Kind(mending, _n, lambda a: {"n": 3 * a["n"] + 1}, fails="Critical", letters=True, weight=4),
        Kind(betting, _n, lambda a: lambda told: len(told["got"]) == 1, weight=3),
        Kind(once, _n, lambda a: lambda told: told["how"] in ("fired", "unknown", "failed"), weight=2),
        Kind(
            big, _n, lambda a: {"n": BIG + a["n"], "sum": 2 * BIG + 2 + a["n"], "text": "x" * (BIG + a["n"])}, weight=2,
        ),
    ),
    lacks=(("bump",), ("plain", "unbook"), ("fire", "third_time")),
    runs=(1, 3),
    cache_bytes=40_000,
)  # fmt: skip
