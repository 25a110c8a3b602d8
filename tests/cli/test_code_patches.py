"""``weft patch RUN --to VERSION`` for code runs: replayed with the code of the app, applied where a host has it."""

from pathlib import Path

from tests.cli.conftest import Weft, hosting
from tests.cli.shop import APP
from tests.cli.test_bulk import document

NEWER = (
    APP
    + """

@app.workflow(name="patient", version="2")
async def quick(ctx: weft.Context, who: str = "you") -> str:
    return f"{who} paid {await ctx.receive('quote', int)}"


@app.workflow(name="patient", version="3")
async def other(ctx: weft.Context, who: str = "you") -> str:
    return str(await ctx.ask("quote", title="How much?"))
"""
)


def test_a_run_is_brought_to_another_version(waiting: Weft, folder: Path) -> None:
    (folder / "app.py").write_text(NEWER)

    alone = waiting("patch", "p-1", "--to", "2", "--app", "app.py", "--dry-run")
    assert alone.code == 1
    assert "No host has patient in version 2" in alone.err
    with hosting(folder):
        plan = document(waiting, "patch", "p-1", "--to", "2", "--app", "app.py", "--dry-run")
        assert (plan["base"], plan["version"]) == ("1", "2")
        refused = waiting("patch", "p-1", "--to", "3", "--app", "app.py")
        assert refused.code == 1
        said = " ".join(refused.err.split())
        assert "does not fit the log at quote" in said
        assert "weft fork p-1 --before quote --to 3" in said
        assert "is not in this process" in waiting("patch", "p-1", "--to", "2").err
        counted = document(waiting, "patch", "--workflow", "patient", "--to", "2", "--app", "app.py", "--dry-run")
        assert (counted["matched"], counted["would_apply"]) == (1, 1)
        done = waiting(
            "patch", "p-1", "--to", "2", "--app", "app.py", "--expect", plan["digest"], "--reason", "quicker"
        )
        assert "p-1 patched: 1 -> 2, rev 1" in done.out
        waiting("send", "p-1", "quote", "7")
        assert waiting("watch", "p-1").code == 0
        assert "you paid 7" in waiting("show", "p-1").out
    versions = document(waiting, "show", "p-1", "--versions")["versions"]
    assert [(one["version"], one.get("reason", "")) for one in versions] == [("1", ""), ("2", "quicker")]
