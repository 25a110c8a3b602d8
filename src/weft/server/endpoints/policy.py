"""The policy of the installation: show it, set a new version, try what it says."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from weft.agents.policy.verdicts import Action, Asked, PolicyVerdict
from weft.runtime.policy_admin import PolicyAdmin, PolicyVersion
from weft.server import views
from weft.server.request import ApiCall

TEXT_MAX = 256 * 1024


class PolicyView(msgspec.Struct, frozen=True, kw_only=True):
    """A version of the policy. ``program`` has the rules that the program of the server brings along."""

    version: int
    """0 if none was ever set."""
    text: str
    rules: list[str]
    program: list[str] = []
    by: str = ""
    at: views.Moment | None = None
    reason: str = ""


class PolicyHistory(msgspec.Struct, frozen=True):
    """Versions of the policy, newest first."""

    versions: list[PolicyView]
    cursor: str | None


class PolicyQuery(views.Form, frozen=True, kw_only=True):
    """Which version to show; the newest without a number."""

    version: Annotated[int, Meta(ge=1, le=2**31)] | None = None


class NewPolicy(views.Form, frozen=True, kw_only=True):
    """A policy, as YAML or JSON."""

    text: Annotated[str, Meta(max_length=TEXT_MAX)]
    by: views.Text = ""
    """Who sets it. Ignored if the request has an API key, which says it."""
    reason: views.Text = ""


class PolicyQuestion(views.Form, frozen=True, kw_only=True):
    """Who would do what. ``args`` are the arguments of a tool."""

    action: Action
    name: Annotated[str, Meta(min_length=1, max_length=500)]
    agent: views.Text = ""
    workflow: views.Text = ""
    node: views.Text = ""
    tenant: views.Text = ""
    user: views.Text = ""
    roles: Annotated[list[views.Name], Meta(max_length=100)] = msgspec.field(default_factory=list)
    args: dict[str, Any] = msgspec.field(default_factory=dict)
    attributes: dict[str, Any] = msgspec.field(default_factory=dict)


async def show_policy(call: ApiCall) -> PolicyView:
    """Return the policy that holds, or an earlier version. Raises NotFound."""
    found = await PolicyAdmin(call.service).show(call.query_as(PolicyQuery).version)
    return _policy_view(found, call)


async def list_policies(call: ApiCall) -> PolicyHistory:
    """Return a page of all versions."""
    query = call.query_as(views.PageQuery)
    upto = int(query.cursor) if query.cursor and query.cursor.isdigit() else None
    found = await PolicyAdmin(call.service).history(upto, query.limit + 1)
    more = str(found[query.limit].version) if len(found) > query.limit else None
    return PolicyHistory([_policy_view(one, call) for one in found[: query.limit]], more)


async def set_policy(call: ApiCall) -> PolicyView:
    """Set the policy. Every host obeys it within a second. Raises BadPolicy, Refused."""
    new = call.body_as(NewPolicy)
    made = await PolicyAdmin(call.service).set(new.text, by=call.by(new.by), reason=new.reason)
    return _policy_view(made, call)


async def test_policy(call: ApiCall) -> PolicyVerdict:
    """Return what the policy says about something that somebody would do."""
    question = call.body_as(PolicyQuestion)
    fields = msgspec.structs.asdict(question)
    return await PolicyAdmin(call.service).test(Asked(**{**fields, "roles": tuple(question.roles)}))


def _policy_view(found: PolicyVersion, call: ApiCall) -> PolicyView:
    own = call.service.policy.own
    return PolicyView(
        version=found.version,
        text=found.text,
        rules=found.rules,
        program=[str(rule) for rule in (*own.rules, *own.limits)] if own is not None else [],
        by=found.by,
        at=views.api_time(found.at) if found.version else None,
        reason=found.reason,
    )
