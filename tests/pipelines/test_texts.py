"""Steps over texts, dates and whole documents: jq_transform, regex_extract, parse_date."""

from typing import Any

import pytest

from tests.pipelines.kit import apply, code, refusal

# --- jq_transform -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "result"),
    [
        (".", [1, 2]),
        (".[]", [1, 2]),
        (".[0]", 1),
        ("empty", []),
        ("null", None),
        ("[.[] | select(. > 5)]", []),
        ('{now: length, env: .[0], "input": 1} | .now + .env + .input', 4),
        ("{a: 1} | {a} # a comment with now in it", {"a": 1}),
        ('"now env $ENV \\(length) input"', "now env $ENV 2 input"),
        ("def twice: . * 2; map(twice)", [2, 4]),
        ('"2015-03-05T23:51:47Z" | fromdate', 1425599507),
        (".[0] as $input | $input", 1),
        ('{now: 5, halt: 6} | [.now, .halt, .["now"]]', [5, 6, 5]),
        ("{a: 5} as {a: $now} | $now", 5),
        ('@json "x\\([.[] | tostring] | join(","))"', 'x"1,2"'),
    ],
)  # fmt: skip
def test_a_program_gives_its_output_or_all_of_them(query: str, result: Any) -> None:
    assert apply([1, 2], {"step": "jq_transform", "query": query}) == result


@pytest.mark.parametrize(
    "query",
    [
        "env", "env.HOME", "$ENV", "$ENV.HOME", "$ ENV", "now", "input", "[inputs]", "halt", "halt_error", "modulemeta",
        'import "a" as a; .', 'include "a"; .', "get_search_list", "input_filename", "input_line_number", "localtime",
        '"\\(env)"', '"a \\("b \\(now)")"', "{a: now}", "[now, 1]", "{(env.HOME): 1}", "def now: 1; now", "debug",
        "{a: {b: 1}, c: env}", ". as {a: $ENV} | $ENV", "$__prog_args", "try now catch 0", "# x\nnow", "{a:1} | now",
    ],
)  # fmt: skip
def test_a_program_sees_only_its_data(query: str) -> None:
    assert code({}, {"step": "jq_transform", "query": query}) == ("pipeline.bad_argument", 0)


def test_what_slips_past_the_lexer_is_defined_away() -> None:
    from weft.pipelines.steps.jq import compile_jq

    assert compile_jq("[env, now, input, $ENV, halt, input_filename]").input_text("1").first() == [
        None, None, None, {}, None, None,
    ]  # fmt: skip


@pytest.mark.parametrize("query", [".[", "foo(", "nothing_like_it", "{", '"\\('])
def test_a_text_that_is_no_program_is_refused(query: str) -> None:
    failed = refusal({}, {"step": "jq_transform", "query": query})

    assert failed.code == "pipeline.bad_argument"
    assert "def env" not in failed.message


def test_a_program_that_fails_says_why() -> None:
    failed = refusal({"a": 1}, {"step": "top_k", "k": 1}, {"step": "jq_transform", "query": ".a"})
    assert failed.code == "pipeline.not_rows"

    failed = refusal([{"a": 1}], {"step": "top_k", "k": 1}, {"step": "jq_transform", "query": ".[0] | .a.b"})
    assert (failed.code, failed.index) == ("pipeline.bad_value", 1)
    assert "Cannot index number" in failed.message


@pytest.mark.parametrize("number", [2**53 + 1, -(2**53) - 1, 2**63])
def test_an_integer_that_jq_would_round_is_refused(number: int) -> None:
    failed = refusal({"a": [{"id": number}]}, {"step": "jq_transform", "query": "."})

    assert failed.code == "pipeline.bad_value"
    assert f"would round {number} at .a[0].id" in failed.message
    assert code({}, {"step": "jq_transform", "query": f". + {abs(number)}"}) == ("pipeline.bad_argument", 0)


def test_long_digits_that_are_no_integer_pass() -> None:
    data = {"a": "12345678901234567890", "b": 0.12345678901234567, "c": 2**53}

    assert apply(data, {"step": "jq_transform", "query": "."}) == data


# --- regex_extract ------------------------------------------------------------------------------------------------

TEXTS = [{"t": "order o-17 and o-18"}, {"t": "none"}, {"t": None}, {}]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"pattern": "o-([0-9]+)"}, ["o-17", None, None, None]),
        ({"pattern": "o-([0-9]+)", "group": 1}, ["17", None, None, None]),
        ({"pattern": "o-(?P<id>[0-9]+)", "group": "id"}, ["17", None, None, None]),
        ({"pattern": "o-([0-9]+)", "group": 1, "all": True}, [["17", "18"], [], [], []]),
        ({"pattern": "order(x)?", "group": 1}, [None, None, None, None]),
        ({"pattern": "^n"}, [None, "n", None, None]),
    ],
)
def test_a_match_or_null(arguments: dict[str, Any], found: list[Any]) -> None:
    rows = apply(TEXTS, {"step": "regex_extract", "field": "t", "into": "m", **arguments})

    assert [row["m"] for row in rows] == found
    assert rows[0]["t"] == "order o-17 and o-18"


def test_without_into_the_field_itself_is_replaced() -> None:
    assert apply(TEXTS[:1], {"step": "regex_extract", "field": "t", "pattern": "[0-9]+"}) == [{"t": "17"}]


@pytest.mark.parametrize("pattern", ["(?=a)", "(?<!a)b", r"(a)\1", "(", "[", "a{100000}"])
def test_a_pattern_that_is_not_linear_is_refused(pattern: str) -> None:
    assert code(TEXTS, {"step": "regex_extract", "field": "t", "pattern": pattern}) == ("pipeline.bad_argument", 0)


@pytest.mark.parametrize("group", [2, "id", -1])
def test_a_group_that_the_pattern_does_not_have_is_refused(group: Any) -> None:
    step = {"step": "regex_extract", "field": "t", "pattern": "(a)", "group": group}

    assert code(TEXTS, step) == ("pipeline.bad_argument", 0)


def test_a_number_is_no_text() -> None:
    failed = refusal([{"t": "a"}, {"t": 5}], {"step": "regex_extract", "field": "t", "pattern": "a"})

    assert failed.code == "pipeline.bad_value"
    assert "t of row 1 is a number" in failed.message


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(.*a){20}", "(x+x+)+y"])
def test_a_catastrophic_pattern_takes_linear_time(pattern: str) -> None:
    rows = [{"t": "a" * 50_000 + "!"}, {"t": "x" * 50_000}]

    assert len(apply(rows, {"step": "regex_extract", "field": "t", "pattern": pattern, "into": "m"})) == 2


# --- parse_date ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "arguments", "date"),
    [
        ("2025-03-04", {}, "2025-03-04T00:00:00+00:00"),
        ("2025-03-04T10:11:12.5Z", {}, "2025-03-04T10:11:12.500000+00:00"),
        ("2025-03-04 10:11+02:00", {}, "2025-03-04T10:11:00+02:00"),
        ("20250304T101112", {}, "2025-03-04T10:11:12+00:00"),
        ("2025-07-04T10:00", {"timezone": "Europe/Berlin"}, "2025-07-04T10:00:00+02:00"),
        ("2025-01-04T10:00Z", {"timezone": "Europe/Berlin"}, "2025-01-04T10:00:00+00:00"),
        ("Tue, 04 Mar 2025 10:11:12 GMT", {}, "2025-03-04T10:11:12+00:00"),
        ("4 Mar 2025 10:11 -0500", {}, "2025-03-04T10:11:00-05:00"),
        ("04/03/2025", {"format": "%d/%m/%Y"}, "2025-03-04T00:00:00+00:00"),
        ("04/03/2025 1 PM +0100", {"format": "%m/%d/%Y %I %p %z"}, "2025-04-03T13:00:00+01:00"),
        (0, {"format": "unix"}, "1970-01-01T00:00:00+00:00"),
        (1_500_000_000_250, {"format": "unix_ms"}, "2017-07-14T02:40:00.250000+00:00"),
        ("1500000000", {"format": "unix", "timezone": "America/New_York"}, "2017-07-13T22:40:00-04:00"),
        (None, {}, None),
    ],
)
def test_a_date_becomes_iso_with_its_offset(text: Any, arguments: dict[str, Any], date: str | None) -> None:
    assert apply([{"d": text}], {"step": "parse_date", "field": "d", **arguments}) == [{"d": date}]


@pytest.mark.parametrize(
    "text", ["03/04/2025", "4.3.2025", "March 4", "2025-13-01", "2025-02-30", "soon", "", 5, True, [], "x" * 300]
)
def test_day_and_month_are_never_guessed(text: Any) -> None:
    step = {"step": "parse_date", "field": "d"}

    assert code([{"d": text}], step) == ("pipeline.bad_value", 0)
    assert apply([{"d": text}], {**step, "on_error": "null", "into": "e"}) == [{"d": text, "e": None}]


@pytest.mark.parametrize(("value", "form"), [(1e20, "unix"), (True, "unix"), ("1e5", "unix"), (-1e18, "unix_ms")])
def test_a_number_that_is_no_time_is_refused(value: Any, form: str) -> None:
    assert code([{"d": value}], {"step": "parse_date", "field": "d", "format": form}) == ("pipeline.bad_value", 0)


@pytest.mark.parametrize(
    "arguments", [{"timezone": "Mars/Base"}, {"timezone": "../x"}, {"format": "%Q"}, {"format": "%d %d"}]
)
def test_a_format_or_zone_that_does_not_exist_is_refused_before_it_runs(arguments: dict[str, Any]) -> None:
    assert code([], {"step": "parse_date", "field": "d", **arguments}) == ("pipeline.bad_argument", 0)
