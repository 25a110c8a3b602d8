"""Every command that changes something does and says the same beside a store and through a server."""

from __future__ import annotations

import json
import re
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from tests.remote.conftest import BothWays, Said

_numbers = count(100)


def pair(both: BothWays, workflow: str, **given: object) -> tuple[str, str]:
    """Two runs that are alike: one for each way."""
    number = next(_numbers)
    names = (f"twin-{number}-a", f"twin-{number}-b")
    for name in names:
        both.server.start(workflow, name, **given)
    return names


def as_one(said: Said, run: str, both: BothWays) -> Said:
    """What was said about one of two runs, without its id and the time of day."""
    plain = both.plain(said)
    out, err = (re.sub(r"\d\d:\d\d:\d\d", "TIME", text.replace(run, "RUN")) for text in (plain.out, plain.err))
    return Said(plain.code, out, err)


def in_both_ways(both: BothWays, runs: tuple[str, str], *words: str) -> Said:
    """Give a command to one run in each way. RUN in its words is the run. What it said, which must be the same."""
    first, second = (
        as_one(say(*(word.replace("RUN", run) for word in words)), run, both)
        for say, run in zip((both.here, both.there), runs, strict=True)
    )
    assert second == first
    return first


def statuses(both: BothWays, runs: tuple[str, str], wanted: str) -> None:
    def has_it(run: str) -> bool:
        shown = both.here("show", run, "--json")
        assert shown.code == 0, shown.err
        return bool(json.loads(shown.out)["status"] == wanted)

    for run in runs:
        both.until(partial(has_it, run))


def test_a_message_an_answer_and_the_result(both: BothWays) -> None:
    runs = pair(both, "patient")
    assert in_both_ways(both, runs, "send", "RUN", "quote", "7").out == '"quote" delivered to RUN\n'
    for run in runs:
        both.server.until(run, "ask_opened")
    said = in_both_ways(both, runs, "decide", "RUN", "approve", "--by", "ann", "--reason", "fine")
    assert said.out.startswith("approved RUN:ship")
    statuses(both, runs, "completed")


def test_pausing_resuming_and_cancelling(both: BothWays) -> None:
    runs = pair(both, "patient")
    assert in_both_ways(both, runs, "pause", "RUN", "--reason", "later").out == "RUN is paused: weft resume RUN\n"
    assert in_both_ways(both, runs, "resume", "RUN").out == "RUN continues\n"
    assert in_both_ways(both, runs, "cancel", "RUN", "--reason", "over").out == "RUN is asked to stop\n"
    statuses(both, runs, "cancelled")
    assert in_both_ways(both, runs, "cancel", "RUN").code == 1


def test_retrying_a_failed_run(both: BothWays) -> None:
    runs = pair(both, "doomed", order_id="o-1")
    statuses(both, runs, "failed")
    assert in_both_ways(both, runs, "retry", "RUN", "--reason", "again").code == 0


def test_setting_a_result_by_hand(both: BothWays) -> None:
    runs = pair(both, "doomed", order_id="o-1")
    statuses(both, runs, "failed")
    assert in_both_ways(both, runs, "set", "RUN", "decline", "--output", '"paid"', "--json").code in (0, 1)


def test_forking(both: BothWays) -> None:
    runs = pair(both, "order", order_id="o-1")
    statuses(both, runs, "completed")
    said = in_both_ways(both, runs, "fork", "RUN", "--at", "2", "--id", "RUN-fork")
    assert said.out == "RUN-fork\n"


def test_patching_a_graph(both: BothWays) -> None:
    (both.folder / "patch.yaml").write_text("ops: [{op: add, path: /nodes/packed/next, value: done}]\n")
    runs = pair(both, "packing", n=1)
    for run in runs:
        both.server.result(run)
    assert in_both_ways(both, runs, "patch", "RUN", "patch.yaml", "--dry-run").code in (0, 1)


def test_keeping_and_deleting(both: BothWays) -> None:
    runs = pair(both, "hello", name="ann")
    statuses(both, runs, "completed")
    in_both_ways(both, runs, "keep", "RUN", "--reason", "audit", "--by", "ann")
    assert in_both_ways(both, runs, "delete", "RUN", "--reason", "old").code == 1
    in_both_ways(both, runs, "keep", "RUN", "--end")
    assert in_both_ways(both, runs, "delete", "RUN", "--reason", "old").out.startswith("RUN deleted")


def test_dead_letters(both: BothWays) -> None:
    runs = pair(both, "stamping")
    for run in runs:
        both.server.result(run)
    letters = [one["id"] for one in json.loads(both.here("dlq", "--json").out)["letters"] if one["run"] in runs]
    first, second = (next(one for one in letters if one.startswith(run)) for run in runs)
    here, there = both.here("dlq", "discard", first), both.there("dlq", "discard", second)
    assert as_one(there, runs[1], both) == as_one(here, runs[0], both)
    left = [one["id"] for one in json.loads(both.here("dlq", "--json").out)["letters"]]
    assert not {first, second} & set(left)


def test_starting_a_run_reads_words_by_their_types(both: BothWays) -> None:
    here = both.here("start", "order", "order_id=7", "n=2", "--id", "words-a")
    there = both.there("start", "order", "order_id=7", "n=2", "--id", "words-b")
    assert (here.code, there.code) == (0, 0)
    assert [both.server.result(run)["output"]["order"] for run in ("words-a", "words-b")] == ["7", "7"]
    again = both.there("start", "order", "order_id=7", "n=2", "--id", "words-b")
    assert again.out == "words-b\n"


def test_a_wrong_argument_is_refused_in_both_ways(both: BothWays) -> None:
    here, there = (say("start", "order", "order=7") for say in (both.here, both.there))
    assert there == here
    assert here.code == 2


def test_many_runs_at_once(both: BothWays) -> None:
    runs = pair(both, "patient", who="bulk")
    for say, run in zip((both.here, both.there), runs, strict=True):
        said = say("cancel", run, "--apply", "--json", "--reason", "many")
        assert (said.code, json.loads(said.out)["would_apply"]) == (0, 1)
    statuses(both, runs, "cancelled")


def test_limits_of_a_queue(both: BothWays) -> None:
    for say in (both.here, both.there):
        said = say("queue", "mail", "--concurrency", "5", "--rate", "10/s")
        assert "mail: 5 at once, 10/s, priority 0" in said.err
        assert '"concurrency": 5' in both.here("queue", "--json").out
        say("queue", "mail", "--concurrency", "none", "--rate", "none")
        assert '"concurrency": 5' not in both.here("queue", "--json").out


def test_schedules(both: BothWays) -> None:
    texts = []
    for say, name in ((both.here, "nightly-a"), (both.there, "nightly-b")):
        said = [
            say("schedule", "add", name, "hello", "name=ann", "--cron", "0 3 * * *"),
            say("schedule", "next", name, "--count", "2"),
            say("schedule", "pause", name, "--reason", "holidays"),
        ]
        both.until(lambda name=name: f"{name} paused" in both.plain(both.there("schedule", "list")).out)  # type: ignore[misc]
        said += [say("schedule", "resume", name), say("schedule", "remove", name)]
        texts.append([as_one(one, name, both) for one in said])
    assert texts[0] == texts[1]


def test_tags_of_workflows(both: BothWays) -> None:
    version = json.loads(both.here("workflows", "packing", "--json").out)["workflows"][0]["version"]
    for say, tag in ((both.here, "one"), (both.there, "two")):
        assert f"packing:{tag} now names {version}" in say("workflows", "tag", "packing", tag, version).err
        assert version in say("workflows", "show", f"packing:{tag}", "--json").out
        assert say("workflows", "tag", "packing", tag, "--undo").code == 0


def test_steps_are_registered_and_planned_with(both: BothWays) -> None:
    commands = (
        ["steps", "register", "steps.yaml"],
        ["steps", "update", "steps.yaml"],
        ["plan", "price", "--given", "order_id", "--json"],
        ["steps", "unregister", "price"],
    )
    here, there = ([both.plain(say(*words)) for words in commands] for say in (both.here, both.there))
    assert there == here


def test_a_run_is_exported_and_imported(both: BothWays, tmp_path: Path) -> None:
    for say, name in ((both.here, "a"), (both.there, "b")):
        assert say("export", "order-1", "-o", str(tmp_path / f"{name}.zip")).code == 0
        said = say("import", str(tmp_path / f"{name}.zip"))
        assert said.code in (0, 1), said.err


@pytest.mark.parametrize(
    "words",
    [
        ["run", "app.py", "hello"],
        ["serve", "app.py"],
        ["worker", "app.py"],
        ["dev", "app.py"],
        ["migrate"],
        ["backup", "x.db"],
        ["restore", "x.db"],
        ["gc", "--older", "1d"],
    ],
    ids=" ".join,
)
def test_a_command_that_needs_the_store_says_so_in_one_sentence(both: BothWays, words: list[str]) -> None:
    (both.folder / "app.py").write_text(
        "import weft\n\napp = weft.App()\n\n\n@app.workflow\nasync def hello() -> str:\n    return 'x'\n"
    )
    said = both.there(*words)
    assert said.code == 2
    assert "server" in said.err.splitlines()[0]


def test_the_web_ui_of_a_server_is_its_own(both: BothWays) -> None:
    assert both.there("ui", "order-1", "--print").out == f"{both.server.url}/runs/order-1\n"
