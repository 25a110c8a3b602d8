"""How long runs are kept: what pyproject.toml may say, and what wins."""

from pathlib import Path
from typing import Any

import pytest

from weft.errors import UsageError
from weft.runtime.retention_policy import RetentionPolicy, project_retention_policy, read_policy, single_policy

DAY = 24 * 3600 * 1000


def test_nothing_is_deleted_unless_it_is_set(tmp_path: Path) -> None:
    assert not RetentionPolicy().is_set
    assert not project_retention_policy(tmp_path / "pyproject.toml").is_set
    assert not read_policy({"completed": "never", "keep_last": 3}).is_set
    assert RetentionPolicy().age("completed", "order", "o-1") is None
    assert read_policy({"completed": "90d"}).age("failed", "order", "o-1") is None


def test_a_workflow_and_a_tenant_have_rules_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.weft.retention]\ncompleted = "90d"\nstreams = "30d"\nkeep_last = 2\n'
        '[tool.weft.retention.workflow.order]\ncompleted = "never"\nfailed = "1d"\n'
        '[tool.weft.retention.workflow.mail]\ncompleted = "7d"\nkeep_last = 0\n'
        '[tool.weft.retention.tenant.acme]\ncompleted = "30d"\n'
    )
    policy = project_retention_policy(tmp_path / "pyproject.toml")

    def days(what: str, workflow: str, run: str) -> int | None:
        age = policy.age(what, workflow, run)
        return None if age is None else age // DAY

    assert days("completed", "other", "x") == 90
    assert days("completed", "order", "x") is None
    assert days("completed", "mail", "x") == 7
    assert days("completed", "other", "@acme/x") == 30
    assert days("completed", "other", "@else/x") == 90
    # Where both say something, the longer time counts.
    assert days("completed", "mail", "@acme/x") == 30
    assert days("completed", "order", "@acme/x") is None
    assert days("failed", "order", "@acme/x") == 1
    assert days("failed", "mail", "x") is None
    assert (policy.shortest("completed"), policy.shortest("cancelled")) == (7 * DAY, None)
    assert policy.kept_workflows("completed") == ["order"]
    assert (policy.keep_last("mail", "x"), policy.keep_last("order", "x")) == (0, 2)


def test_everything_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(UsageError) as raised:
        read_policy(
            {
                "completed": "soon",
                "keep_last": -1,
                "complete": "1d",
                "workflow": {"order": {"failed": True, "streams": "1d"}},
                "tenant": "acme",
            }
        )
    text = str(raised.value)
    for part in ("completed = 'soon'", "keep_last = -1", "complete is", "workflow.order.failed", "tenant: a table"):
        assert part in text
    assert "workflow.order.streams can only be set for all runs" in text


@pytest.mark.parametrize("section", [7, "90d", []])
def test_it_is_a_table(section: Any) -> None:
    with pytest.raises(UsageError, match="not a table"):
        read_policy(section)


def test_one_age_for_all() -> None:
    policy = single_policy("1d")
    assert [policy.age(status, "x", "y") for status in ("completed", "failed", "cancelled")] == [DAY] * 3
    assert policy.age("streams", "x", "y") is None
