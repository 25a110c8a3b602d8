"""Pages that comments cite and links between pages lead somewhere."""

import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
INSIDE = [DOCS / "architecture.md", *sorted(DOCS.glob("internals/*.md")), *sorted(DOCS.glob("decisions/*.md"))]
CITATION = re.compile(r"\bdocs/[\w./-]+?\.md(?:#[\w-]+)?")
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
# A text that readers of the repository do not have: "ENGINE rule 3", "GOALS section 2", "law 7 of the design".
UNPUBLISHED = re.compile(
    r"\b(?:ENGINE|GRAPH|GOALS|DESIGN|SURFACE|HOUSE|STYLE|HOTPATH)(?:\.md\b| (?:rules?|sections?) \d| \d)"
    r"|\b(?:rule|law) \d"
)


@functools.cache
def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes from the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def leads_nowhere(page: Path, anchor: str) -> bool:
    return not page.exists() or (bool(anchor) and anchor not in anchors(page))


def is_a_file(name: str) -> bool:
    """Whether this is a path in the repository, or the end of one in the package."""
    return (ROOT / name).exists() or any(path.endswith(f"/{name}") for path in package())


@functools.cache
def package() -> list[str]:
    return [path.as_posix() for path in sources() if path.is_relative_to(ROOT / "src")]


@functools.cache
def sources() -> list[Path]:
    found = [path for folder in ("src", "tests", "bench", "examples") for path in (ROOT / folder).rglob("*.*")]
    return [path for path in found if path.suffix in {".py", ".sql"} and path != Path(__file__)]


def test_every_page_that_a_comment_cites_exists() -> None:
    cited = [(path, citation) for path in sources() for citation in CITATION.findall(path.read_text("utf-8"))]
    assert len({citation for _, citation in cited}) >= 10, "the pattern finds what is there"
    broken = [
        (str(path.relative_to(ROOT)), citation)
        for path, citation in cited
        if leads_nowhere(ROOT / citation.partition("#")[0], citation.partition("#")[2])
    ]
    assert broken == []


def test_no_comment_cites_what_is_not_in_the_repository() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in sources()
        for match in UNPUBLISHED.finditer(path.read_text("utf-8"))
    ]
    assert found == [], "cite a page: docs/internals/engine.md#rule-3"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    links = [link for link in LINK.findall(FENCE.sub("", page.read_text())) if "://" not in link]
    broken = []
    for link in links:
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if leads_nowhere(target, anchor if target.suffix == ".md" else ""):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", INSIDE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_that_a_page_about_the_code_names_exist(page: Path) -> None:
    names = set(re.findall(r"[\w/]+\.(?:py|sql)\b", page.read_text()))
    assert [name for name in sorted(names) if not is_a_file(name)] == []


def test_rules_of_the_engine_are_numbered_without_gaps() -> None:
    numbers = re.findall(r"^### Rule (\d+)$", (DOCS / "internals" / "engine.md").read_text(), re.MULTILINE)
    assert numbers == [str(number) for number in range(1, len(numbers) + 1)]
