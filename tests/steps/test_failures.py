"""An exception becomes a record and comes back: as itself where it was declared, as StepFailed where it was not."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.values import encode
from weft.errors import BadValue, Critical, Failure, OutcomeUnknown, StepFailed, StepTimedOut, WorkerLost
from weft.steps.failures import DATA_BYTES_MAX, MESSAGE_CHARS_MAX, failure_of, rebuild_error


class CardDeclined(Exception):
    pass


class Stolen(CardDeclined):
    pass


class Described(Exception):
    """The usual way to write one: the text is made of what it is given."""

    def __init__(self, order_id: str, cents: int) -> None:
        super().__init__(f"{order_id} declined for {cents}")
        self.order_id = order_id
        self.cents = cents


class Faithful(Exception):
    def __init__(self, order_id: str, *more: object) -> None:
        super().__init__(order_id, *more)
        self.order_id = order_id
        self.lock = object()


class Stubborn(Exception):
    def __new__(cls, *args: object, made_right: bool = False) -> Self:
        if not made_right:
            raise TypeError("not like this")
        return super().__new__(cls, *args)


def caught(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as found:
        return found


def recorded(error: BaseException, **known: Any) -> Failure:
    """As the log gives it back: replay sees only this."""
    failure = failure_of(caught(error), **{"step": "charge", "location": "charge", "attempts": 4, **known})
    raw = encode(failure)
    again = msgspec.json.decode(raw, type=Failure)
    assert again == failure
    return again


def test_a_failure_says_type_message_step_and_line() -> None:
    failure = recorded(CardDeclined("o-1"))

    assert failure.type == "CardDeclined"
    assert failure.message == "o-1"
    assert (failure.step, failure.location, failure.attempts) == ("charge", "charge", 4)
    assert failure.data == ("o-1",)
    assert failure.where.startswith("test_failures.py:")


def test_the_line_is_the_users_own_and_not_the_librarys() -> None:
    with pytest.raises(ValueError) as caught_here:
        json.loads("{")

    assert failure_of(caught_here.value).where == f"test_failures.py:{caught_here.traceback[0].lineno + 1}"


def test_the_line_is_not_wefts_own() -> None:
    with pytest.raises(BadValue) as refused:
        encode(object())

    failure = failure_of(refused.value)
    assert failure.where.startswith("test_failures.py:")
    assert failure.code == "value.not_json"


def test_an_exception_that_was_never_raised_has_no_line() -> None:
    assert failure_of(ValueError("x")).where == ""


@pytest.mark.parametrize(("length", "kept"), [(1999, 1999), (2000, 2000), (2001, 2000), (100_000, 2000)])
def test_a_message_is_bounded(length: int, kept: int) -> None:
    failure = failure_of(ValueError("x" * length))

    assert len(failure.message) == kept
    assert failure.message.endswith("...") is (length > MESSAGE_CHARS_MAX)


@pytest.mark.parametrize(
    ("size", "kept"), [(DATA_BYTES_MAX - 1, True), (DATA_BYTES_MAX, True), (DATA_BYTES_MAX + 1, False)]
)
def test_the_data_is_bounded(size: int, kept: bool) -> None:
    text = "x" * (size - len(b'[""]'))

    assert failure_of(ValueError(text)).data == ((text,) if kept else ())


@pytest.mark.parametrize("args", [(object(),), ({1, 2},), (float("nan"),), ("a\0b",), ("\ud800",)])
def test_args_that_are_not_json_are_left_out(args: tuple[object, ...]) -> None:
    failure = recorded(CardDeclined(*args))

    assert failure.data == ()
    assert failure.message


def test_a_message_that_no_store_could_hold_is_made_storable() -> None:
    assert recorded(ValueError("a\0b\ud800c")).message == "a\\0b?c"


def test_an_exception_whose_text_fails_is_still_recorded() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    assert recorded(Mute()).message == "<Mute without a text>"


def test_a_declared_exception_comes_back_as_itself() -> None:
    again = rebuild_error(recorded(CardDeclined("o-1", 3)), [CardDeclined])

    assert type(again) is CardDeclined
    assert again.args == ("o-1", 3)


def test_a_subclass_of_a_declared_exception_comes_back_as_itself() -> None:
    assert type(rebuild_error(recorded(Stolen("o-1")), [CardDeclined])) is Stolen


def test_an_exception_that_describes_itself_keeps_its_text_and_its_fields() -> None:
    again = rebuild_error(recorded(Described("o-1", 4200)), [Described])

    assert type(again) is Described
    assert str(again) == "o-1 declined for 4200"
    assert (again.order_id, again.cents) == ("o-1", 4200)


def test_an_exception_that_can_be_made_again_is_made_whole() -> None:
    again = rebuild_error(recorded(Faithful("o-1")), [Faithful])

    assert isinstance(again, Faithful)
    assert again.order_id == "o-1"
    assert type(again.lock) is object


def test_a_declared_exception_with_odd_args_keeps_class_and_text() -> None:
    again = rebuild_error(recorded(CardDeclined({"not", "json"})), [CardDeclined])

    assert type(again) is CardDeclined
    assert "not" in str(again)


def test_an_error_of_the_system_keeps_its_file() -> None:
    with pytest.raises(FileNotFoundError) as missing:
        Path("no-such-file").read_text()

    again = rebuild_error(failure_of(missing.value, step="read"), [OSError])

    assert type(again) is FileNotFoundError
    assert str(again) == str(missing.value)
    assert again.filename == "no-such-file"


def test_a_declared_exception_that_cannot_be_made_again_is_a_failed_step() -> None:
    again = rebuild_error(recorded(Stubborn.__new__(Stubborn, "x", made_right=True)), [Stubborn], run_id="order-o-1")

    assert isinstance(again, StepFailed)
    assert 'Stubborn could not be rebuilt from its args ["x"].' in str(again)


def test_a_group_of_exceptions_is_a_failed_step() -> None:
    assert isinstance(rebuild_error(recorded(ExceptionGroup("both", [ValueError("x")])), [ExceptionGroup]), StepFailed)


def test_an_exception_that_is_not_declared_is_a_failed_step_that_says_all() -> None:
    failure = msgspec.structs.replace(recorded(CardDeclined("o-1")), where="app.py:22")

    again = rebuild_error(failure, run_id="order-o-1")

    assert type(again) is StepFailed
    assert again.failure is failure
    assert str(again) == (
        "charge failed after 4 attempts in order-o-1, last: CardDeclined('o-1') at app.py:22. "
        "To catch CardDeclined itself: @app.step(raises=[CardDeclined]). Try again: weft retry order-o-1"
    )


def test_a_class_of_the_same_name_elsewhere_is_never_found() -> None:
    assert isinstance(rebuild_error(Failure("SystemExit", "x"), [CardDeclined]), StepFailed)
    assert isinstance(rebuild_error(Failure("ValueError", "x"), ()), StepFailed)


def test_only_exceptions_are_made_again() -> None:
    assert isinstance(rebuild_error(recorded(KeyboardInterrupt("x")), [KeyboardInterrupt]), StepFailed)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), StopIteration()])
def test_nobody_is_told_to_declare_what_cannot_be_made_again(error: BaseException) -> None:
    hint = rebuild_error(recorded(error)).hint  # type: ignore[attr-defined]  # it is a StepFailed

    assert "raises=" not in hint
    assert f"A workflow cannot catch {type(error).__name__} from a step: catch weft.StepFailed" in hint


def test_a_single_attempt_is_not_counted() -> None:
    text = str(rebuild_error(recorded(ValueError(), attempts=1)))

    assert text.startswith("charge failed, ValueError at test_failures.py:")


def test_a_long_failure_is_told_in_short() -> None:
    text = str(rebuild_error(recorded(ValueError("x" * 10_000))))

    assert len(text) < 700


def test_an_error_of_wefts_own_tells_its_message() -> None:
    text = str(
        rebuild_error(
            recorded(BadValue("charge returned a set, which cannot be stored.", hint="Use a list."), attempts=1)
        )
    )

    assert "charge failed, BadValue: charge returned a set, which cannot be stored at test_failures.py" in text
    assert "raises=" not in text


@pytest.mark.parametrize(
    ("cls", "text"),
    [
        (StepTimedOut, "charge timed out (after 30s)."),
        (
            OutcomeUnknown,
            "charge ended without a result (after 30s). It may have been performed, so it is not repeated.",
        ),
        (WorkerLost, "charge was given up, because its workers died each time (after 30s)."),
    ],
)
def test_losses_and_timeouts_are_known_by_their_code(cls: Any, text: str) -> None:
    failure = Failure("anything", "after 30s.", code=cls.code, step="charge")

    again: Any = rebuild_error(failure, [CardDeclined])

    assert type(again) is cls
    assert again.message == text
    assert again.failure is failure


def test_a_critical_error_is_recorded_as_what_it_is() -> None:
    failure = recorded(Critical("stop"))

    assert failure.type == "Critical"
    assert isinstance(rebuild_error(failure), StepFailed)


def test_each_rebuilt_exception_is_a_new_one() -> None:
    failure = recorded(CardDeclined("o-1"))

    assert rebuild_error(failure, [CardDeclined]) is not rebuild_error(failure, [CardDeclined])


@given(st.recursive(
    st.none() | st.text() | st.integers() | st.floats() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=5,
))  # fmt: skip
def test_any_exception_is_recorded_and_live_equals_replay(carried: object) -> None:
    error = CardDeclined(carried)
    error.extra = carried  # type: ignore[attr-defined]
    failure = failure_of(error, step="charge")
    replayed = msgspec.json.decode(encode(failure), type=Failure)

    first, again = rebuild_error(failure, [CardDeclined]), rebuild_error(replayed, [CardDeclined])

    assert type(first) is type(again) is CardDeclined
    assert (first.args, vars(first)) == (again.args, vars(again))


def test_a_failure_in_an_installed_package_is_still_placed() -> None:
    program = (
        "from weft.steps.failures import failure_of\n"
        "exec(compile('def f(): raise ValueError(1)', '/x/site-packages/lib/mod.py', 'exec'))\n"
        "exec(compile('def g(): f()', '/x/site-packages/app/main.py', 'exec'))\n"
        "try: g()\n"
        "except ValueError as error: print(failure_of(error.with_traceback(error.__traceback__.tb_next)).where)\n"
    )

    out = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout

    assert out == "mod.py:1\n"
