"""How a version of a workflow is named."""

import pytest

import weft
from weft.errors import BadValue
from weft.runtime.version_refs import VersionRef, check_tag, is_version_ref, parse_version_ref


@pytest.mark.parametrize(
    ("text", "ref"),
    [
        ("order", VersionRef("order")),
        ("order:live", VersionRef("order", tag="live")),
        ("order:eu/live", VersionRef("order", tag="eu/live")),
        ("order:live~2", VersionRef("order", tag="live", back=2)),
        ("order~1", VersionRef("order", tag="main", back=1)),
        ("order~0", VersionRef("order", tag="main")),
        ("order@3f2a", VersionRef("order", version="3f2a")),
        ("order@2:1~x", VersionRef("order", version="2:1~x")),
    ],
)
def test_a_name_says_which_version_is_meant(text: str, ref: VersionRef) -> None:
    assert parse_version_ref(text) == ref
    assert is_version_ref(text) is (text != "order")


@pytest.mark.parametrize(
    "text",
    ["", "order@", "@1", "order:", ":live", "order:a:b", "order~", "order~x", "order~-1", "order:a~1~2", "order:a ~1"],
)
def test_what_names_no_version(text: str) -> None:
    with pytest.raises(BadValue):
        parse_version_ref(text)


@pytest.mark.parametrize("tag", ["a", "x" * 200, "a/b", "/", "élan", "2026.1", "a b"])
def test_names_of_tags(tag: str) -> None:
    assert check_tag(tag) == tag


@pytest.mark.parametrize("tag", ["", "x" * 201, "a:b", "a~1", "a@b", " a", "a\n", "a\x00"])
def test_what_cannot_name_a_tag(tag: str) -> None:
    with pytest.raises(BadValue):
        check_tag(tag)


@pytest.mark.parametrize("name", ["a:b", "a@1", "a~1"])
def test_the_name_of_a_workflow_chooses_no_version(name: str) -> None:
    app = weft.App("memory://")

    async def order(ctx: weft.Context) -> None: ...

    with pytest.raises(BadValue, match="choose a version"):
        app.workflow(name=name)(order)
    with pytest.raises(weft.WeftError):
        app.graph({"name": name, "nodes": {"a": {"pass": True}}})
    with pytest.raises(BadValue):
        app.goal(name, "x")
