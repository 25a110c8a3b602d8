"""Names of versions: ``order``, ``order:live``, ``order:live~1``, ``order~1`` and ``order@3f2a91c4``."""

from __future__ import annotations

import msgspec

from weft.core.code.locations import check_name
from weft.errors import BadValue

DEFAULT_TAG = "main"
"""The tag that is meant where none is named: by ``order~1``, and by a patch of ``order``."""
TAG_MAX = 200
MARKS = frozenset(":@~")
"""The characters that tell the version from the name."""


class VersionRef(msgspec.Struct, frozen=True):
    """A workflow, and which of its versions is meant: a version, or a tag some moves back. Neither: the hosted one."""

    workflow: str
    version: str = ""
    tag: str = ""
    back: int = 0

    @property
    def label(self) -> str:
        """The tag as it was named, such as ``live~1``."""
        return f"{self.tag}~{self.back}" if self.back else self.tag


def is_version_ref(text: str) -> bool:
    """Return whether a name says which version is meant."""
    return not MARKS.isdisjoint(text)


def parse_version_ref(text: str) -> VersionRef:
    """Read the name of a workflow or of one of its versions. Raises BadValue."""
    if "@" in text:
        name, _, version = text.partition("@")
        return VersionRef(check_name(name), version=version) if version else _raise_bad_reference(text)
    name, colon, rest = text.partition(":")
    tag, tilde, back = rest.partition("~") if colon else ("", *name.partition("~")[1:])
    name = name if colon else name.partition("~")[0]
    if tilde and not (back.isascii() and back.isdigit() and len(back) < 7):
        return _raise_bad_reference(text)
    if colon:
        check_tag(tag)
    return VersionRef(check_name(name), tag=tag or (DEFAULT_TAG if tilde else ""), back=int(back or 0))


def check_tag(tag: str) -> str:
    """Check the name of a tag and return it. Raises BadValue."""
    unusable = not tag.isprintable() or tag != tag.strip() or is_version_ref(tag)
    if not 1 <= len(tag) <= TAG_MAX or unusable:
        raise BadValue(
            f"{tag[:60]!r} cannot be the name of a tag.",
            hint="Use 1 to 200 printable characters without : @ and ~, and without spaces at the ends.",
            code="value.bad_name",
        )
    return tag


def check_workflow_name(name: str) -> str:
    """Check the name of a workflow and return it. Raises BadValue."""
    if is_version_ref(name):
        raise BadValue(
            f"{name[:60]!r} cannot be the name of a workflow: the characters : @ and ~ choose a version of one.",
            hint="Use another name, such as one with a dot.",
            code="value.bad_name",
        )
    return check_name(name)


def _raise_bad_reference(text: str) -> VersionRef:
    raise BadValue(
        f"{text[:60]!r} names no version.",
        hint="Write order, order:TAG, order:TAG~1 (one move back) or order@VERSION.",
        code="value.bad_name",
    )
