"""No figure of the house gets worse, and each of them counts what is planted for it."""

import pytest

from tests.style import house, house_traces


def planted(**sources: str) -> house.Trees:
    """Parse modules; two underscores in a name stand for a dot."""
    return {f"weft.{name.replace('__', '.')}": house.nodes_of(source) for name, source in sources.items()}


def test_no_figure_is_above_its_ceiling() -> None:
    """A figure that got better is reported as skipped: it asks for a lower ceiling and stops nobody."""
    figures, ceilings = house.figures(), house.ceilings()
    assert ceilings.keys() == figures.keys()
    worse = {name: f"{figures[name]}, was {most}" for name, most in ceilings.items() if figures[name] > most}
    assert worse == {}, "see python -m tests.style.house --details"
    if better := {name: f"{figures[name]}, was {most}" for name, most in ceilings.items() if figures[name] < most}:
        pytest.skip(f"{better}; keep it with python -m tests.style.house --lower")


def test_imports_for_types_and_inside_functions_tie_a_knot() -> None:
    trees = planted(
        a="if TYPE_CHECKING:\n    from weft.b import B",
        b="def later():\n    from weft import c",
        c="import weft.a\nimport os",
        d="import weft.a",
        e="",
    )
    assert house.knots(house.imports(trees)) == [["weft.a", "weft.b", "weft.c"]]
    assert not house.knots(house.imports(planted(a="from weft import b", b="from weft import c", c="")))


def test_two_knots_with_a_way_between_them_stay_two() -> None:
    trees = planted(a="import weft.b", b="import weft.a, weft.c", c="import weft.d", d="import weft.c")
    assert house.knots(house.imports(trees)) == [["weft.a", "weft.b"], ["weft.c", "weft.d"]]


def test_a_member_of_the_host_is_found_however_the_host_is_reached() -> None:
    trees = planted(
        engine="class Engine:\n    def own(self, other: Engine): other.inner",
        part="class Part:\n    def __init__(self, engine: Engine): self._engine = engine; engine.by_parameter",
        late="class Part:\n    def go(self):\n        engine, x = self._engine, 1\n        engine.by_variable",
        service="class RunService:\n    @property\n    def host(self) -> 'Engine | None': ...",
        far="def go(service): service.host.by_property; service.other",
    )
    assert house.host_members(trees) == {"by_parameter", "by_variable", "by_property"}


def test_a_row_of_two_styles_is_found_unless_it_is_taken_over() -> None:
    trees = planted(
        core__code__machine="_DECIDE: dict[type, X] = {c.StartRun: start, c.Ask: ask}",
        core__goal__fold="class Fold:\n    DECIDE = {StartRun: start}",
        core__graph__machine="DECIDE = {**run.DECIDE, c.Route: route}\nMAIL = {c.Ask: mail}\nOTHER = {c.Ask: x}",
        core__run__table="DECIDE = {c.Ask: ask}",
    )
    assert house.repeated_rows(trees) == ["DECIDE StartRun"]


@pytest.mark.parametrize(
    "source",
    [
        "isinstance(machine, GoalMachine)",
        "isinstance(state, (GraphState, GoalState))",
        "row.style == 'graph'",
        "style != STYLE",
        "'code' == row.style",
        "row.style in ('code', '')",
        "match machine:\n    case CodeMachine(): ...",
        "match row.style:\n    case 'code': ...",
    ],
)
def test_a_question_for_the_style_is_found(source: str) -> None:
    assert house.style_questions(planted(server__views=source)) != []
    assert not house.style_questions(planted(core__run=source))


@pytest.mark.parametrize(
    "source", ["one.style == style", "not row.style", "isinstance(x, Graph)", "make(style='code')"]
)
def test_what_only_passes_a_style_on_is_accepted(source: str) -> None:
    assert not house.style_questions(planted(server__views=source))


def test_a_store_that_names_a_refusal_is_found() -> None:
    trees = planted(
        stores__a="return Outcome.STALE_SEQ",
        stores__b="x is Outcome.ACCEPTED",
        stores__c="return Sent.OVER",
        runtime__d="x is Outcome.STALE_SEQ",
    )
    assert house.judging_modules(trees) == ["weft.stores.a", "weft.stores.c"]


def test_a_class_name_of_two_modules_is_found() -> None:
    trees = planted(a="class Page: ...\nclass Line: ...", b="def f():\n    class Page: ...", c="class Line_: ...")
    assert house.repeated_class_names(trees) == {"Page": ["weft.a", "weft.b"]}


def test_the_traces_watch_real_requests() -> None:
    """A request that is not seen would let every figure about it pass."""
    start = house_traces.trace_http_start()
    assert {"server/api.py", "runtime/run/actor.py", "stores/memory/log.py"} <= start.whole.paths
    assert "runtime/service.py" in start.way_in.paths
    assert "stores/memory/log.py" not in start.way_in.paths  # its append is committed after its first turn
    calls = house_traces.calls_of_foreign_message()
    assert calls.count("inboxes.send_to") == 1
    assert calls[-1] == "log.commit"
