"""What steps print: lines are found in order by their numbers, bounded for each run, and deleted with it."""

from typing import Any

from tests.contract.kit import HERE, NOBODY, OTHER, RUN, THERE, go, row, start
from weft.core.ids import HostId, Millis, RunUid
from weft.ports.step_logs import LogBatch, LogLimits, LogQuery, LogTotals, NewLine, StoredLine
from weft.ports.store import Store


def line(text: str = "a", uid: str = RUN, **fields: Any) -> NewLine:
    given = {"at": Millis(5), "place": "charge", "attempt": 1, "level": 20, "source": "stdout"} | fields
    return NewLine(uid=RunUid(uid), text=text, **given)


def write(store: Store, *lines: NewLine, number: int = 1, host: HostId = HERE, limits: LogLimits | None = None) -> None:
    go(store.step_logs.write(LogBatch(host=host, number=number, lines=lines), limits or LogLimits()))


def read(store: Store, uid: str = RUN, **query: Any) -> list[StoredLine]:
    return list(go(store.step_logs.read(RunUid(uid), LogQuery(**query))))


def texts(store: Store, uid: str = RUN, **query: Any) -> list[str]:
    return [one.text for one in read(store, uid, **query)]


def totals(store: Store, uid: str = RUN) -> LogTotals:
    return go(store.step_logs.totals(RunUid(uid)))


def test_a_line_is_read_as_it_was_written(store: Store, peer: Store) -> None:
    start(store)
    written = {"at": Millis(77), "place": "pages/~3/fetch#2", "attempt": 2, "level": 30, "source": "shop.payments"}
    write(store, line("grün\n\tund \x1b[31mrot", **written))

    assert read(peer) == [StoredLine(number=1, text="grün\n\tund \x1b[31mrot", **written)]
    assert totals(peer) == LogTotals(1, 1, len("grün\n\tund \x1b[31mrot".encode()))


def test_lines_keep_their_order_over_batches(store: Store) -> None:
    start(store)
    write(store, *(line(f"{n}") for n in range(40)), number=1)
    write(store, line("40"), line("41"), number=2)

    assert texts(store) == [f"{n}" for n in range(42)]
    assert [one.number for one in read(store)] == list(range(1, 43))


def test_lines_that_were_left_out_have_numbers_too(store: Store) -> None:
    start(store)
    write(store, line("a"), line("z", lost=7))

    assert [(one.number, one.text) for one in read(store)] == [(1, "a"), (9, "z")]
    assert totals(store) == LogTotals(9, 2, 2)


def test_reading_begins_after_a_number_and_ends_at_the_limit(store: Store) -> None:
    start(store)
    write(store, *(line(f"{n}") for n in range(1, 6)))

    assert texts(store, after=1, limit=2) == ["2", "3"]
    assert texts(store, after=5) == []
    assert texts(store, after=99) == []


def test_lines_are_found_by_level_and_place(store: Store) -> None:
    start(store)
    write(store, line("a", level=10), line("b", level=30, place="ship"), line("c", level=40), line("d", place="ship"))

    assert texts(store, level=30) == ["b", "c"]
    assert texts(store, place="ship") == ["b", "d"]
    assert texts(store, place="ship", level=30) == ["b"]
    assert texts(store, place="nowhere") == []


def test_runs_have_lines_and_numbers_of_their_own(store: Store) -> None:
    start(store)
    start(store, OTHER)
    write(store, line("a"), line("b", OTHER), line("c"))

    assert texts(store) == ["a", "c"]
    assert [one.number for one in read(store, OTHER)] == [1]


def test_a_run_that_does_not_exist_has_no_lines_and_harms_no_other(store: Store) -> None:
    start(store)
    write(store, line("x", NOBODY), line("a"))

    assert texts(store) == ["a"]
    assert texts(store, NOBODY) == []
    assert totals(store, NOBODY) == LogTotals()


def test_a_batch_whose_answer_was_lost_is_written_once(store: Store, peer: Store) -> None:
    start(store)
    start(store, OTHER)
    write(store, line("a"), number=1)
    write(store, line("a"), number=1)
    write(peer, line("b"), number=1, host=THERE)
    write(store, line("c"), line("d", OTHER), number=2)

    assert texts(store) == ["a", "b", "c"]
    assert texts(store, OTHER) == ["d"]


def test_above_the_limit_of_lines_the_oldest_go(store: Store) -> None:
    start(store)
    limits = LogLimits(lines=8, size_bytes=1_000)
    write(store, *(line(f"{n}") for n in range(1, 9)), limits=limits)
    assert len(read(store)) == 8

    write(store, line("9"), number=2, limits=limits)

    assert texts(store) == ["4", "5", "6", "7", "8", "9"]
    assert read(store)[0].number == 4
    assert totals(store) == LogTotals(9, 6, 6)


def test_above_the_limit_of_bytes_the_oldest_go(store: Store) -> None:
    start(store)
    limits = LogLimits(lines=100, size_bytes=20)
    write(store, *(line(text) for text in ("aaaaaaaa", "bbbbbbbb", "cccc")), limits=limits)
    assert len(read(store)) == 3

    write(store, line("ü"), number=2, limits=limits)

    assert texts(store) == ["bbbbbbbb", "cccc", "ü"]
    assert totals(store) == LogTotals(4, 3, 14)


def test_a_batch_that_is_larger_than_the_limit_keeps_its_end(store: Store) -> None:
    start(store)
    write(store, *(line(f"{n}") for n in range(100)), limits=LogLimits(lines=4, size_bytes=1_000))

    assert texts(store) == ["97", "98", "99"]
    assert totals(store) == LogTotals(100, 3, 6)


def test_writing_nothing_is_allowed(store: Store) -> None:
    write(store)


def test_the_log_of_events_does_not_notice(store: Store) -> None:
    start(store)
    before = row(store)
    write(store, line())

    assert row(store) == before
