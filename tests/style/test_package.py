"""What a package index shows of the project leads somewhere."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_description_has_no_link_that_only_works_in_the_repository() -> None:
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / PROJECT["readme"]).read_text("utf-8"))
    assert [link for link in links if not link.startswith("https://")] == []


def test_every_url_of_the_project_is_absolute() -> None:
    assert [url for url in PROJECT.get("urls", {}).values() if not url.startswith("https://")] == []


def test_the_readme_is_the_description_as_far_as_it_goes() -> None:
    first, second = ((ROOT / name).read_text("utf-8") for name in ("README.md", PROJECT["readme"]))
    assert first.splitlines()[0] == second.splitlines()[0]
