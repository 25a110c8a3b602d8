"""The routes of workflows: their versions, and tags."""

from __future__ import annotations

from weft.errors import BadGraph, BadPatch, LimitExceeded, NotFound, Refused, StaleBase, UsageError
from weft.runtime.publication import PublishedVersion
from weft.runtime.tag_views import TagMoves, TagView
from weft.server import views
from weft.server.endpoints import workflows
from weft.server.identity import AccessScope
from weft.server.router import API, ApiRoute

_ONE = f"{API}/workflows/{{name}}"
_TAG = f"{_ONE}/tags/{{tag}}"

WORKFLOWS = (
    ApiRoute(
        name="listWorkflows",
        method="GET",
        path=f"{API}/workflows",
        summary="All workflows in all versions, with their tags and how many runs are open",
        endpoint=workflows.list_workflows,
        scope=AccessScope.READ,
        query=workflows.WorkflowQuery,
        answer=workflows.WorkflowList,
        errors=(UsageError,),
    ),
    ApiRoute(
        name="listVersions",
        method="GET",
        path=_ONE,
        summary="The versions of a workflow, with their tags and how many runs are open",
        endpoint=workflows.list_versions,
        scope=AccessScope.READ,
        query=workflows.WorkflowQuery,
        answer=workflows.WorkflowList,
        errors=(NotFound, UsageError),
    ),
    ApiRoute(
        name="getVersion",
        method="GET",
        path=f"{_ONE}/versions/{{version}}",
        summary="One version: what it takes, and its document as its author wrote it",
        endpoint=workflows.show_version,
        scope=AccessScope.READ,
        answer=workflows.WorkflowDetail,
        errors=(NotFound,),
    ),
    ApiRoute(
        name="listTags",
        method="GET",
        path=f"{_ONE}/tags",
        summary="The tags of a workflow",
        endpoint=workflows.list_tags,
        scope=AccessScope.READ,
        query=views.PageQuery,
        answer=workflows.TagList,
        errors=(UsageError,),
    ),
    ApiRoute(
        name="getTag",
        method="GET",
        path=_TAG,
        summary="A tag and its moves, newest first",
        endpoint=workflows.show_tag,
        scope=AccessScope.READ,
        query=workflows.MovesQuery,
        answer=TagMoves,
        errors=(NotFound, UsageError),
    ),
    ApiRoute(
        name="putTag",
        method="PUT",
        path=_TAG,
        summary="Let a tag name a version; new runs that name the tag get it",
        endpoint=workflows.put_tag,
        scope=AccessScope.OPERATE,
        body=workflows.NewMove,
        answer=TagView,
        errors=(NotFound, UsageError),
    ),
    ApiRoute(
        name="patchWorkflow",
        method="POST",
        path=f"{_ONE}/patch",
        summary="Make a version of a graph and let a tag name it, if the tag still names the base of the patch",
        endpoint=workflows.patch,
        scope=AccessScope.OPERATE,
        body=workflows.NewVersion,
        answer=PublishedVersion,
        errors=(NotFound, StaleBase, BadPatch, BadGraph, LimitExceeded, UsageError),
    ),
    ApiRoute(
        name="undoTag",
        method="POST",
        path=f"{_TAG}/undo",
        summary="Take a tag back to where it was before its last move",
        endpoint=workflows.undo_tag,
        scope=AccessScope.OPERATE,
        body=views.Remark,
        answer=TagView,
        errors=(NotFound, Refused),
    ),
    ApiRoute(
        name="redoTag",
        method="POST",
        path=f"{_TAG}/redo",
        summary="Repeat the move of a tag that was undone last",
        endpoint=workflows.redo_tag,
        scope=AccessScope.OPERATE,
        body=views.Remark,
        answer=TagView,
        errors=(NotFound, Refused),
    ),
)
