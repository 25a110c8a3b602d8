"""One tree of errors: every class has a code, a page and a text, and crosses process boundaries whole."""

import pickle
from typing import Any

import msgspec
import pytest

import weft.agents.failures
import weft.agents.mcp.failures
import weft.agents.models.failures
import weft.conditions
import weft.core.goal.checks
import weft.pipelines.faults
import weft.ports.worker_streams
import weft.runtime.worker_streams.failures
import weft.scripts
import weft.steps.http.failures  # noqa: F401 - part of the tree
from weft import errors
from weft.errors import BranchesFailed, Failure, StepFailed, TimedOut, WeftError
from weft.observe.error_pages import PAGES, page

FAILURE = Failure("CardDeclined", "o-1", step="charge", location="charge", attempts=4, data=("o-1",), where="app.py:22")
EXTRA: dict[str, dict[str, Any]] = {
    "StepFailed": {"failure": FAILURE},
    "AgentFailed": {"code": "agent.failed"},
    "OutcomeUnknown": {"failure": FAILURE},
    "WorkerLost": {"failure": FAILURE},
    "PipelineFailed": {"failure": FAILURE},
    "StepTimedOut": {"failure": FAILURE},
    "TimedOut": {"failure": FAILURE},
    "RunFailed": {"run_id": "order-o-1", "failure": FAILURE},
    "RunCancelled": {"run_id": "order-o-1", "reason": "changed my mind"},
    "Diverged": {"location": "charge", "recorded": "a", "asked": "b"},
}


def below(cls: type[WeftError]) -> list[type[WeftError]]:
    return [cls, *(found for sub in cls.__subclasses__() for found in below(sub))]


TREE = list(dict.fromkeys(below(WeftError)))


def example(cls: type[WeftError]) -> WeftError:
    if cls is BranchesFailed:
        return BranchesFailed("two failed.", {"a": ValueError("x"), "b": KeyError("y")}, hint="Look.", run="r")
    return cls("It failed.", hint="Look.", **EXTRA.get(cls.__name__, {}), place="here")


def test_the_tree_is_the_one_that_is_drawn_in_the_docstring() -> None:
    drawn = errors.__doc__
    assert drawn is not None
    for cls in [*TREE, errors.Critical, errors.Rollback, errors.Evicted]:
        assert cls.__name__ in drawn


@pytest.mark.parametrize(
    ("parent", "names"),
    [
        ("UsageError", "NotRunning LoopRunning NotAsync NoContext NameTaken UnknownWorkflow UnknownStep"),
        ("UsageError", "BadDuration BadValue BadGraph BadPlan ForeignAwait RunAtImport"),
        ("Refused", "IdTaken KeyReused RunFinished RunUndone AlreadyDecided NotAllowed NotFound"),
        ("StepFailed", "OutcomeUnknown WorkerLost StepTimedOut"),
        ("StoreError", "Conflict Fenced Unavailable Corrupt NewerSchema WrongSchema Full"),
        ("WeftError", "UsageError Refused TimedOut BranchesFailed RunFailed RunCancelled Diverged LimitExceeded"),
    ],
)
def test_a_class_stands_where_its_catcher_expects_it(parent: str, names: str) -> None:
    for name in names.split():
        assert issubclass(getattr(errors, name), getattr(errors, parent))


def test_every_class_has_a_code_of_its_own_and_a_page() -> None:
    codes = [cls.code for cls in TREE]

    assert len(set(codes)) == len(codes)
    for code in codes:
        text = page(code)
        assert text is not None, code
        assert text.startswith(f"{code}\n")


# Given to an error of a wider class where it is raised; the first is Python's own warning.
CODES_WITHOUT_A_CLASS = {
    "budget.no_price",
    "store.no_server",
    "usage.certificate",
    "usage.no_weft_server",
    "usage.not_empty",
    "usage.not_through_server",
    "backup.file_exists",
    "backup.store_in_use",
    "usage.postgres_tools",
    "usage.server_version",
    "bundle.in_flight",
    "bundle.secret",
    "run.moved",
    "bulk.bad_option",
    "bulk.no_reason",
    "bulk.no_runs",
    "bulk.too_many",
    "bulk.unknown_verb",
    "hook.bad_filter",
    "hook.bad_function",
    "hook.bad_kind",
    "limit.bad_key",
    "limit.patches",
    "patch.moved_on",
    "patch.not_begun",
    "patch.nothing_to_undo",
    "run.no_way_back",
    "run.in_flight",
    "schedule.bad_priority",
    "start.bad_batch",
    "start.bad_key",
    "start.bad_rule",
    "start.batch_too_big",
    "start.delayed",
    "start.key_in_code",
    "step.rejected",
    "fork.bad_edit",
    "fork.no_place",
    "fork.no_point",
    "fork.not_possible",
    "fork.undone",
    "fork.unreadable",
    "fork.values_gone",
    "fork.would_perform",
    "policy.denied",
    "policy.limit",
    "policy.changed",
    "policy.no_file",
    "policy.not_found",
    "policy.yaml",
    "policy.not_json",
    "policy.too_deep",
    "policy.too_big",
    "policy.duplicate_key",
    "policy.unknown_format",
    "policy.unknown_field",
    "policy.unknown_word",
    "policy.missing_field",
    "policy.wrong_type",
    "policy.bad_duration",
    "policy.bad_rule",
    "policy.unknown_action",
    "policy.cannot_ask",
    "policy.bad_subject",
    "policy.bad_condition",
    "policy.unknown_name",
    "policy.too_many_rules",
    "graph.bad_config",
    "graph.unknown_agent",
    "step.set",
    "patch.diverges",
    "patch.edge_taken",
    "patch.frame_open",
    "patch.join_in_use",
    "patch.limit_passed",
    "patch.loop_open",
    "patch.move_arrived",
    "patch.node_removed",
    "patch.not_hosted",
    "patch.raises",
    "patch.revives",
    "patch.say_via",
    "patch.scope_changed",
    "patch.unchecked",
    "patch.unknown_token",
    "patch.unsound_here",
    "patch.value",
    "patch.waiting_token",
    "patch.would_end",
    "usage.not_awaited",
    "agent.bad_output",
    "agent.context",
    "agent.refused",
    "agent.stuck",
    "tool.wrong_host",
    "agent.trifecta",
    "agent.turns",
    "tool.changed",
    "tool.unknown",
    "model.context",
    "model.rejected",
    "model.unknown",
    "model.unknown_api",
    "usage.simulated",
    "value.wrong_type",
    "value.bad_name",
    "value.bad_policy",
    "value.secret",
    "access.provider",
    "access.unknown",
    "ask.ambiguous",
    "ask.link_expired",
    "ask.not_yours",
    "ask.other_subject",
    "run.not_root",
    "run.forked",
    "code.unordered",
    "code.spinning",
    "run.timed_out",
    "run.rollback",
    "expression.limit",
    "graph.no_file",
    "graph.not_json",
    "graph.too_deep",
    "graph.yaml",
    "limit.busy",
    "request.malformed",
    "request.too_slow",
    "request.unknown_route",
    "request.wrong_method",
    "request.wrong_type",
    "pipeline.bad_argument",
    "pipeline.empty",
    "pipeline.http",
    "pipeline.not_rows",
    "pipeline.timeout",
    "pipeline.too_large",
    "pipeline.unknown_step",
    "script.limit",
    "goal.bad_cache",
    "goal.bad_duration",
    "goal.bad_give",
    "goal.bad_id",
    "goal.bad_name",
    "goal.bad_need",
    "goal.bad_pipeline",
    "goal.bad_plan",
    "goal.bad_retry",
    "goal.bad_script",
    "goal.bad_type",
    "goal.bad_way",
    "goal.bad_width",
    "goal.blocked",
    "goal.cycle",
    "goal.bad_schema",
    "goal.duplicate_key",
    "goal.missing_field",
    "goal.no_file",
    "goal.no_goal",
    "goal.not_freezable",
    "goal.not_json",
    "goal.same_name",
    "goal.too_big",
    "goal.too_deep",
    "goal.two_roles",
    "goal.two_spellings",
    "goal.two_steps",
    "goal.type_conflict",
    "goal.unknown_field",
    "goal.unknown_format",
    "goal.unknown_word",
    "goal.wrong_type",
    "goal.yaml",
    "limit.agent_depth",
    "limit.hook_chain",
    "limit.tree_depth",
    "limit.tree_runs",
    "bundle.corrupt",
    "limit.bundle",
    "resource.ambiguous",
    "resource.cycle",
    "resource.is_input",
    "resource.unknown",
    "run.imported",
    "tag.no_move",
    "patch.blocked",
    "patch.cycle",
    "patch.fact_known",
    "patch.goal_over",
    "patch.missing",
    "patch.needs_review",
    "patch.no_author",
    "patch.no_goals",
    "patch.not_for_agents",
    "patch.not_in_time",
    "patch.rejected",
    "patch.run_ended",
    "patch.says_nothing",
    "patch.step_begun",
    "patch.type_clash",
    "patch.unknown_field",
    "patch.unknown_goal",
    "patch.withdrawn",
    "patch.wrong_argument",
    "patch.wrong_type",
    "schedule.bad_backfill",
    "schedule.bad_cron",
    "schedule.bad_dst",
    "schedule.bad_duration",
    "schedule.bad_input",
    "schedule.bad_jitter",
    "schedule.bad_name",
    "schedule.bad_overlap",
    "schedule.bad_pause_after",
    "schedule.bad_until",
    "schedule.declared",
    "schedule.never_fires",
    "schedule.no_time",
    "schedule.overlap",
    "schedule.two_times",
    "schedule.unknown_zone",
    "store.file_gone",
    "task.not_yours",
}


def test_a_code_without_a_class_has_a_page_too() -> None:
    assert [code for code in sorted(CODES_WITHOUT_A_CLASS) if page(code) is None] == []


def test_there_is_no_page_for_a_code_that_nothing_raises() -> None:
    assert set(PAGES) - {cls.code for cls in TREE} == CODES_WITHOUT_A_CLASS
    assert page("value.nonsense") is None


def test_a_page_says_what_happened_why_and_what_to_do() -> None:
    for code, found in PAGES.items():
        assert all(len(part) > 10 and part == part.strip() for part in found), code


@pytest.mark.parametrize("cls", TREE)
def test_the_text_says_what_happened_and_what_to_do(cls: type[WeftError]) -> None:
    error = example(cls)

    assert str(error) == f"{error.message} Look."
    assert error.message in ("It failed.", "two failed.")


@pytest.mark.parametrize("cls", TREE)
def test_an_error_comes_through_pickle_with_all_it_carries(cls: type[WeftError]) -> None:
    error = example(cls)
    error.code = "some.code"

    copy = pickle.loads(pickle.dumps(error))

    assert type(copy) is cls
    assert (str(copy), copy.code, copy.context) == (str(error), "some.code", error.context)
    for name in EXTRA.get(cls.__name__, {}):
        assert getattr(copy, name) == getattr(error, name)


def test_an_error_without_a_hint_ends_with_its_message() -> None:
    assert str(WeftError("It failed.")) == "It failed."


def test_one_error_may_carry_a_narrower_code() -> None:
    assert errors.BadValue("x", code="value.wrong_type").code == "value.wrong_type"
    assert errors.BadValue("x").code == errors.BadValue.code == "value.not_json"


def test_what_belongs_to_an_error_is_kept_by_name() -> None:
    assert WeftError("It failed.", run_id="r-1", line=3).context == {"run_id": "r-1", "line": 3}


def test_a_timeout_is_caught_as_pythons_own() -> None:
    with pytest.raises(TimeoutError) as caught:
        raise TimedOut("too late.", hint="Allow more.")

    assert str(caught.value) == "too late. Allow more."


def test_failed_branches_are_found_by_name_and_by_kind() -> None:
    value, key = ValueError("x"), KeyError("y")
    error = BranchesFailed("two failed.", {"a": value, "b": key}, hint="Look.")

    assert error.errors == {"a": value, "b": key}
    assert error.exceptions == (value, key)
    caught: list[dict[str, Exception]] = []
    try:
        raise error
    except* ValueError as part:
        assert isinstance(part, BranchesFailed)  # noqa: PT017  # only `except*` takes groups apart
        caught.append(part.errors)
    except* KeyError as part:
        assert isinstance(part, BranchesFailed)  # noqa: PT017  # only `except*` takes groups apart
        caught.append(part.errors)
    assert caught == [{"a": value}, {"b": key}]


def test_branches_without_names_are_numbered() -> None:
    error = BranchesFailed("one failed.", [ValueError("x")])

    assert list(error.errors) == ["0"]


def test_taking_groups_apart_drops_no_branch() -> None:
    inner = BranchesFailed("inner.", {"x": ValueError("1"), "y": KeyError("2")})
    outer = BranchesFailed("outer.", {"1": ValueError("3"), "other": inner})

    part = outer.subgroup(ValueError)

    assert isinstance(part, BranchesFailed)
    assert len(part.errors) == len(part.exceptions) == 2


def test_control_flow_passes_except_exception_and_user_errors_do_not() -> None:
    assert not issubclass(errors.Evicted, Exception)
    for cls in (errors.Critical, errors.Rollback):
        assert issubclass(cls, Exception)
        assert not issubclass(cls, WeftError)


def test_a_failure_is_small_and_comes_back_from_json() -> None:
    raw = msgspec.json.encode(FAILURE)

    assert msgspec.json.decode(raw, type=Failure) == FAILURE
    assert msgspec.json.encode(Failure("ValueError", "x")) == b'{"type":"ValueError","message":"x"}'


def test_a_failure_from_a_newer_version_is_still_read() -> None:
    raw = b'{"type":"ValueError","message":"x","later":1}'

    assert msgspec.json.decode(raw, type=Failure) == Failure("ValueError", "x")


def test_a_failed_step_carries_its_failure() -> None:
    assert StepFailed("charge failed.", failure=FAILURE).failure.attempts == 4


def test_a_message_that_quotes_another_ends_with_one_full_stop() -> None:
    inner = errors.BadValue("n must be a number.")

    assert str(errors.UsageError(f"app.py cannot be read: {inner}.")) == "app.py cannot be read: n must be a number."
    assert str(errors.UsageError("It failed.", hint=f"{inner}.")) == "It failed. n must be a number."
    assert str(errors.UsageError("and so on...")) == "and so on..."
