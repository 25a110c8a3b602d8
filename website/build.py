"""Build the documentation as a site into ``build/site``: ``make docs``.

The pages in ``docs/`` are written for the repository too, where links lead to any file. Before the site is built they
are copied to ``build/site-sources``, and links that leave ``docs/`` are changed: the changelog and the guide for
contributors become pages, and any other file that a page names is shown as a page of its source. Warnings are errors.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

WEBSITE: Final = Path(__file__).resolve().parent
ROOT: Final = WEBSITE.parent
DOCS: Final = ROOT / "docs"
SOURCES: Final = ROOT / "build/site-sources"
SITE: Final = ROOT / "build/site"
PAGES: Final = SOURCES / "docs"
ADOPTED: Final = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
"""Files beside ``docs/`` that are pages of the site."""
LEFT_OUT: Final = frozenset({"package.md"})
"""Pages for readers elsewhere: the description of the package on an index."""
LINK: Final = re.compile(r"(\]\()([^)\s]+)(\))")
CODE: Final = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
TRANSCRIPT: Final = re.compile(r"(?:^(?:    .*)?\n)*^    \$ .*\n(?:(?:    .*)?\n)*", re.MULTILINE)
LANGUAGES: Final = {".py": "py", ".yaml": "yaml", ".yml": "yaml", ".sql": "sql", ".json": "json", ".toml": "toml"}


def build() -> None:
    """Write the sources of the site, then the site."""
    shutil.rmtree(SOURCES, ignore_errors=True)
    stage()
    config = (WEBSITE / "mkdocs.yml").read_text("utf-8")
    navigation = yaml.safe_dump({"nav": expand(read_navigation())}, allow_unicode=True, sort_keys=False)
    (SOURCES / "mkdocs.yml").write_text(f"{config}\n{navigation}", "utf-8")
    # Material for MkDocs prints a notice about a later MkDocs, which the lock file keeps out.
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-f", str(SOURCES / "mkdocs.yml")]
    subprocess.run(command, check=True, env=environment)


def stage() -> None:
    """Copy the pages and pictures, with links that lead somewhere inside the site."""
    shown: set[Path] = set()
    for path in sorted(path for path in DOCS.rglob("*") if path.is_file()):
        target = PAGES / path.relative_to(DOCS)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix != ".md":
            shutil.copyfile(path, target)
        elif path.name not in LEFT_OUT:
            target.write_text(as_page(path, target, shown), "utf-8")
    for name, page in ADOPTED.items():
        (PAGES / page).write_text(as_page(ROOT / name, PAGES / page, shown), "utf-8")
    for path in sorted(shown):
        write_source_page(path)
    shutil.copytree(WEBSITE / "assets", PAGES / "assets")


def as_page(path: Path, target: Path, shown: set[Path]) -> str:
    """Return the text of a page for the site, and note the files outside ``docs/`` that it links to."""

    def lead(found: re.Match[str]) -> str:
        name, hash_, anchor = found[2].partition("#")
        if "://" in name or not name:
            return found[0]
        leads_to = (path.parent / name).resolve()
        if not leads_to.exists():
            raise SystemExit(f"{path.relative_to(ROOT)} links to {name}, which does not exist")
        inside = page_of(leads_to)
        if inside is None:
            shown.add(leads_to)
            inside = source_page(leads_to)
        return f"{found[1]}{os.path.relpath(inside, target.parent)}{hash_}{anchor}{found[3]}"

    return outside_code(with_prompts(path.read_text("utf-8")), lambda text: LINK.sub(lead, text))


def page_of(path: Path) -> Path | None:
    """Return where a file of the repository is on the site, if it is a page or a picture of it."""
    if path.is_relative_to(DOCS) and path.suffix:
        return PAGES / path.relative_to(DOCS)
    adopted = ADOPTED.get(path.relative_to(ROOT).as_posix()) if path.is_relative_to(ROOT) else None
    return PAGES / adopted if adopted else None


def source_page(path: Path) -> Path:
    """Return where the source of a file is shown."""
    return PAGES / "source" / f"{path.relative_to(ROOT).as_posix()}.md"


def write_source_page(path: Path) -> None:
    """Show a file, or list a folder. Searches do not find these pages."""
    page = source_page(path)
    page.parent.mkdir(parents=True, exist_ok=True)
    name = path.relative_to(ROOT).as_posix()
    head = f"---\ntitle: {name}\nsearch: {{exclude: true}}\n---\n\n# `{name}`\n\n"
    if path.is_dir():
        text = "\n".join(f"- `{one.name}`" for one in sorted(path.iterdir()) if not one.name.startswith(("_", ".")))
    else:
        text = f"````{LANGUAGES.get(path.suffix, 'text')}\n{path.read_text('utf-8')}````"
    page.write_text(f"{head}{text}\n", "utf-8")


def with_prompts(text: str) -> str:
    """Make indented lines with a prompt blocks of the language ``console``."""

    def fence(found: re.Match[str]) -> str:
        block = found[0].strip("\n")
        lines = [line[4:] for line in block.splitlines()]
        return "\n" * (len(found[0]) - len(found[0].lstrip("\n"))) + "\n".join(["```console", *lines, "```", "", ""])

    return outside_code(text, lambda part: TRANSCRIPT.sub(fence, part), fenced_only=True)


def outside_code(text: str, change: Any, *, fenced_only: bool = False) -> str:
    """Change a text except for its code."""
    parts: list[str] = []
    end = 0
    for found in CODE.finditer(text):
        if fenced_only and not found[0].startswith("```"):
            continue
        parts += [change(text[end : found.start()]), found[0]]
        end = found.end()
    return "".join([*parts, change(text[end:])])


def read_navigation() -> list[Any]:
    """Read the navigation as it was written."""
    return list(yaml.safe_load((WEBSITE / "navigation.yml").read_text("utf-8")))


def expand(entries: list[Any]) -> list[Any]:
    """Replace each ``folder/*`` by the pages of the folder."""
    found: list[Any] = []
    for entry in entries:
        if isinstance(entry, str) and entry.endswith("/*"):
            found += folder_pages(entry.removesuffix("/*"))
        elif isinstance(entry, dict):
            found += [{title: expand(below) if isinstance(below, list) else below} for title, below in entry.items()]
        else:
            found.append(entry)
    return found


def folder_pages(folder: str) -> list[str]:
    """List the pages of a folder, its index first, the others by title."""
    paths = [path for path in (DOCS / folder).glob("*.md") if path.name not in LEFT_OUT]
    paths.sort(key=lambda path: (path.stem not in ("README", "index"), title_of(path).lower()))
    return [path.relative_to(DOCS).as_posix() for path in paths]


def title_of(path: Path) -> str:
    """Return the first heading of a page."""
    found = re.search(r"^# (.+)$", path.read_text("utf-8"), re.MULTILINE)
    return found[1] if found else path.stem


def named(entries: list[Any]) -> Iterator[str]:
    """Iterate over the pages that a navigation names."""
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        elif isinstance(entry, list):
            yield from named(entry)
        else:
            yield from named(list(entry.values()))


if __name__ == "__main__":
    build()
    print(f"{SITE.relative_to(ROOT)}/index.html; to search it: python -m http.server -d {SITE.relative_to(ROOT)}")
