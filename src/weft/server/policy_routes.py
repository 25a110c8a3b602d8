"""The routes of the policy. Only the operator uses them: a policy holds for all tenants."""

from __future__ import annotations

from weft.agents.policy.verdicts import PolicyVerdict
from weft.errors import BadPolicy, NotFound, Refused, UsageError
from weft.server import views
from weft.server.endpoints import policy
from weft.server.identity import AccessScope
from weft.server.router import API, ApiRoute

_POLICY = f"{API}/policy"

POLICY = (
    ApiRoute(
        name="getPolicy",
        method="GET",
        path=_POLICY,
        summary="The policy that holds, or an earlier version",
        endpoint=policy.show_policy,
        scope=AccessScope.ADMIN,
        operator_only=True,
        query=policy.PolicyQuery,
        answer=policy.PolicyView,
        errors=(NotFound, UsageError),
    ),
    ApiRoute(
        name="listPolicies",
        method="GET",
        path=f"{_POLICY}/versions",
        summary="All versions of the policy, newest first",
        endpoint=policy.list_policies,
        scope=AccessScope.ADMIN,
        operator_only=True,
        query=views.PageQuery,
        answer=policy.PolicyHistory,
        errors=(UsageError,),
    ),
    ApiRoute(
        name="setPolicy",
        method="PUT",
        path=_POLICY,
        summary="Set the policy; every host obeys it within a second",
        endpoint=policy.set_policy,
        scope=AccessScope.ADMIN,
        operator_only=True,
        body=policy.NewPolicy,
        answer=policy.PolicyView,
        errors=(BadPolicy, Refused, UsageError),
    ),
    ApiRoute(
        name="testPolicy",
        method="POST",
        path=f"{_POLICY}/test",
        summary="What the policy says about something that somebody would do",
        endpoint=policy.test_policy,
        scope=AccessScope.ADMIN,
        operator_only=True,
        body=policy.PolicyQuestion,
        answer=PolicyVerdict,
        errors=(UsageError,),
    ),
)
