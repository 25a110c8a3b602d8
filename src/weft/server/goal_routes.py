"""The routes of steps and of goals that are planned with them."""

from __future__ import annotations

from weft.errors import LimitExceeded, NameTaken, NotFound, UnknownStep, UsageError
from weft.observe.pictures.drawn import DrawnPicture
from weft.server import views
from weft.server.endpoints import goals, plans
from weft.server.identity import AccessScope
from weft.server.router import API, ApiRoute

GOALS = (
    ApiRoute(
        name="listSteps",
        method="GET",
        path=f"{API}/steps",
        summary="The steps that goals are planned with, and their health",
        endpoint=goals.list_steps,
        scope=AccessScope.READ,
        query=views.PageQuery,
        answer=goals.StepViews,
        errors=(UsageError,),
    ),
    ApiRoute(
        name="getStep",
        method="GET",
        path=f"{API}/steps/{{step}}",
        summary="One step and its health",
        endpoint=goals.show_step,
        scope=AccessScope.READ,
        answer=goals.StepView,
        errors=(NotFound,),
    ),
    ApiRoute(
        name="registerSteps",
        method="POST",
        path=f"{API}/steps",
        summary="Add the steps of a document to the store, all or none",
        endpoint=goals.register_steps,
        scope=AccessScope.OPERATE,
        operator_only=True,
        body=goals.StepsDocument,
        answer=goals.Changed,
        errors=(NameTaken, UsageError),
    ),
    ApiRoute(
        name="updateSteps",
        method="PUT",
        path=f"{API}/steps",
        summary="Replace steps of the store, all or none",
        endpoint=goals.update_steps,
        scope=AccessScope.OPERATE,
        operator_only=True,
        body=goals.StepsDocument,
        answer=goals.Changed,
        errors=(UnknownStep, UsageError),
    ),
    ApiRoute(
        name="unregisterStep",
        method="DELETE",
        path=f"{API}/steps/{{step}}",
        summary="Remove a step from the store; runs in progress keep it",
        endpoint=goals.unregister_step,
        scope=AccessScope.OPERATE,
        operator_only=True,
        body=views.Nothing,
        answer=goals.Changed,
        errors=(UnknownStep,),
    ),
    ApiRoute(
        name="plan",
        method="POST",
        path=f"{API}/plan",
        summary="Plan a goal: the steps it takes, and what is missing",
        endpoint=plans.plan_goals,
        scope=AccessScope.READ,
        body=plans.PlanRequest,
        answer=plans.PlanView,
        errors=(UnknownStep, UsageError),
    ),
    ApiRoute(
        name="drawCatalogue",
        method="GET",
        path=f"{API}/catalogue/picture",
        summary="The picture of all steps that goals are planned with",
        endpoint=plans.draw_catalogue,
        scope=AccessScope.READ,
        answer=DrawnPicture,
        errors=(LimitExceeded,),
    ),
    ApiRoute(
        name="freezePlan",
        method="POST",
        path=f"{API}/plan/freeze",
        summary="Store the plan of goals as a graph, which runs without planning",
        endpoint=plans.freeze_plan,
        scope=AccessScope.OPERATE,
        operator_only=True,
        body=plans.NewFrozenPlan,
        answer=plans.FrozenPlan,
        errors=(NameTaken, UnknownStep, UsageError),
    ),
)
