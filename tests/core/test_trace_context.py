"""W3C trace context: what is valid, and ids that every host computes alike."""

import pytest

from weft.core.trace_context import (
    TraceParent,
    attempt_span,
    commit_span,
    entry_span,
    parse_traceparent,
    run_span,
    trace_of,
    work_span,
)

VALID = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_a_valid_header_is_read_and_written_back() -> None:
    found = parse_traceparent(VALID)

    assert found == TraceParent(0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331, 1)
    assert str(found) == VALID


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        VALID.upper(),
        VALID.replace("00-0af", "ff-0af"),
        VALID + "-more",
        VALID[:-1],
        "00-" + "0" * 32 + "-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-" + "0" * 16 + "-01",
        VALID + "\n",
    ],
)
def test_what_is_not_valid_is_no_parent(text: str) -> None:
    assert parse_traceparent(text) is None


def test_later_versions_may_have_more_fields() -> None:
    assert parse_traceparent("01" + VALID[2:] + "-more") == parse_traceparent(VALID)


def test_a_tree_has_the_trace_of_its_caller_else_that_of_its_root() -> None:
    assert trace_of("child", "root", VALID) == 0x0AF7651916CD43DD8448EB211C80319C
    assert trace_of("child", "root", "") == trace_of("root", "", "")
    assert trace_of("other", "", "") != trace_of("root", "", "")


def test_every_span_has_an_id_of_its_own() -> None:
    spans = [
        run_span("a"),
        run_span("b"),
        entry_span("a", 1),
        entry_span("a", 2),
        attempt_span("a", 1, 1, 1),
        attempt_span("a", 1, 1, 2),
        attempt_span("a", 1, 2, 1),
        work_span("a", 1, 1, 1),
        commit_span("a", 1),
    ]
    assert len(set(spans)) == len(spans)
    assert all(0 < span < 2**64 for span in spans)


def test_ids_never_change() -> None:
    """A run that continues under a newer version of Weft stays in its trace."""
    assert f"{trace_of('u', '', ''):032x} {run_span('u'):016x}" == EXPECTED


EXPECTED = "a5f8a91e495c74e6e62493d263fbe450 bf95790c205c8bf4"
