"""Tools as a program offers them to agents: ``weft.tool`` and ``weft.person``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from weft.agents.tools.options import OfferedTool, PersonTool, check_approval
from weft.agents.tools.spec import Touch
from weft.authoring.policies import Duration, bad_policy
from weft.core.durations import duration_ms
from weft.core.events import Effect
from weft.errors import BadValue, UsageError


def tool(
    of: Any,
    *,
    name: str | None = None,
    bind: Mapping[str, Any] | None = None,
    approve: str | None = None,
    editable: bool = False,
    effect: Effect | None = None,
    touches: Sequence[Touch] = (),
    per_run: int | None = None,
    on_error: Literal["tell", "fail"] = "tell",
    on_unknown: Literal["fail", "tell"] = "fail",
) -> OfferedTool:
    """Offer a step, workflow, agent or MCP server to an agent, with rules about its calls.

    ``bind`` fixes arguments: values, or templates over the agent's inputs. The model neither sees nor changes them.
    ``approve`` says when a person is asked before a call: ``"irreversible"``, ``"always"``, ``"never"``, or CEL over
    ``args``. With ``editable``, that person may change the arguments. ``touches`` says what the tool is near:
    ``"private"`` data, ``"untrusted"`` words, the ``"outside"``. ``per_run`` limits the calls of a run.

    Raises BadValue, UsageError.
    """
    _check_choice("effect", effect, (None, *get_args(Effect)))
    _check_choice("on_error", on_error, ("tell", "fail"))
    _check_choice("on_unknown", on_unknown, ("fail", "tell"))
    for touch in _checked_list("touches", touches, '["untrusted"]'):
        _check_choice("touches", touch, get_args(Touch))
    named: object = name  # type hints are not checked at run time
    if named is not None and (not isinstance(named, str) or not named.strip()):
        raise bad_policy("name", name, "the name of a tool", 'name="look_up", or leave it out')
    asked: object = approve
    if asked is not None and not isinstance(asked, str):
        raise bad_policy("approve", approve, "a text", 'approve="always"')
    calls: object = per_run
    if calls is not None and (not isinstance(calls, int) or isinstance(calls, bool) or calls < 1):
        raise bad_policy("per_run", per_run, "a number of at least 1", "per_run=3")
    bound: object = bind
    if bound is not None and not isinstance(bound, Mapping):
        raise BadValue(f"weft.tool(bind={bind!r}) must be a mapping of arguments.", code="value.wrong_type")
    if isinstance(of, OfferedTool):
        raise UsageError("weft.tool() was given a tool that has its options already.", hint="Give it the step itself.")
    if name is not None and (hasattr(of, "offered_tools") or of == "search_tools"):
        raise UsageError(
            f"weft.tool(name={name!r}) was given {getattr(of, 'name', of)}, which is several tools.",
            hint="They have names of their own: leave name= out.",
        )
    return OfferedTool(
        of=of,
        name=name,
        bind=dict(bind or {}),
        approve=check_approval(approve) if approve is not None else None,
        editable=editable,
        effect=effect,
        touches=tuple(touches),
        per_run=per_run,
        on_error=on_error,
        on_unknown=on_unknown,
    )


def person(of: Sequence[str] = (), timeout: Duration = "1d") -> PersonTool:
    """Offer the tool ``ask_person``: the model may ask these people or groups, and waits for the answer."""
    return PersonTool(of=tuple(_checked_list("of", of, '["role:eng"]')), timeout_ms=checked_timeout_ms(timeout, '"1d"'))


def checked_timeout_ms(timeout: Duration, example: str) -> int:
    """Return a timeout that something may take. Raises BadValue, BadDuration."""
    found = duration_ms(timeout)
    if not found:
        raise bad_policy("timeout", timeout, "more than 0 s", f"timeout={example}")
    return found


def _checked_list(option: str, given: Any, example: str) -> Sequence[Any]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise bad_policy(option, given, "a list", f"{option}={example}")
    return given


def _check_choice(option: str, given: object, known: Sequence[object]) -> None:
    if given not in known:
        names = ", ".join(str(one) for one in known if one is not None)
        raise BadValue(f"weft.tool({option}={given!r}) is not one of {names}.", code="value.bad_policy")
