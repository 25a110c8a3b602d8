"""Every page of the documentation has a place on the site, and the site is built without a warning."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from website import build

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LOADED = re.compile(r"""<(?:script|img|iframe|source|link|video|audio)\b[^>]*?\b(?:src|href|srcset)=["']?([^"'\s>]+)""")
IN_STYLES = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")


def test_every_page_has_a_place_in_the_navigation() -> None:
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md") if path.name not in build.LEFT_OUT}
    named = set(build.named(build.expand(build.read_navigation())))
    assert sorted(pages - named) == [], "name it in website/navigation.yml"
    assert sorted(named - pages - set(build.ADOPTED.values())) == [], "the navigation names pages that do not exist"


@pytest.mark.proof
def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere() -> None:
    built = subprocess.run([sys.executable, ROOT / "website/build.py"], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    pages = list(build.SITE.rglob("*.html"))
    assert len(pages) > 80
    foreign = [
        (path.relative_to(build.SITE).as_posix(), address)
        for path in (*pages, *build.SITE.rglob("*.css"))
        for pattern in (LOADED, IN_STYLES)
        for found in pattern.findall(path.read_text("utf-8"))
        for address in ([found] if isinstance(found, str) else found)
        if re.match(r"(?:https?:)?//", address)
    ]
    assert foreign == []
    assert not [path for path in pages if 'class="mermaid"' in path.read_text("utf-8")], "mermaid is fetched"
