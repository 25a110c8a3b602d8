"""Tools as a program offers them to agents: ``weft.tool`` and ``weft.person``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from weft.agents.tools.options import OfferedTool, PersonTool, check_approval
from weft.agents.tools.spec import Touch
from weft.authoring.policies import Duration
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
    for touch in touches:
        _check_choice("touches", touch, get_args(Touch))
    if per_run is not None and per_run < 1:
        raise BadValue(f"weft.tool(per_run={per_run}) must be at least 1.", code="value.bad_policy")
    if isinstance(of, OfferedTool):
        raise UsageError("weft.tool() was given a tool that has its options already.", hint="Give it the step itself.")
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
    return PersonTool(of=tuple(of), timeout_ms=duration_ms(timeout))


def _check_choice(option: str, given: object, known: Sequence[object]) -> None:
    if given not in known:
        names = ", ".join(str(one) for one in known if one is not None)
        raise BadValue(f"weft.tool({option}={given!r}) is not one of {names}.", code="value.bad_policy")
