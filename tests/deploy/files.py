"""The files of the folder deploy/, read as the programs read them that use them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
STAGE = re.compile(r"FROM .*?( AS (?P<name>\w+))?$")


class Instruction(NamedTuple):
    """One instruction of the Dockerfile, and the stage that it belongs to."""

    stage: str
    verb: str
    text: str

    @property
    def words(self) -> list[str]:
        """The words of a list such as `CMD ["serve", "app.py"]`."""
        return msgspec.json.decode(self.text, type=list[str])


def dockerfile() -> Iterator[Instruction]:
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    stage = ""
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        verb, _, rest = line.strip().partition(" ")
        if verb == "FROM":
            found = STAGE.match(line)
            assert found is not None
            stage = found["name"] or "image"
        yield Instruction(stage, verb, rest.strip())


def instructions(stage: str, verb: str) -> list[Instruction]:
    return [one for one in dockerfile() if (one.stage, one.verb) == (stage, verb)]


def healthcheck() -> list[str]:
    """The command of the image's health check."""
    (check,) = instructions("image", "HEALTHCHECK")
    return Instruction("image", "CMD", check.text.partition(" CMD ")[2].strip()).words


def documents(name: str) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all((DEPLOY / name).read_text()) if one is not None]


def manifest(kind: str) -> dict[str, Any]:
    """The one object of this kind among the manifests for Kubernetes."""
    (found,) = [
        one for name in ("weft.yaml", "secret.yaml") for one in documents(f"kubernetes/{name}") if one["kind"] == kind
    ]
    return found


def unit() -> dict[str, dict[str, str]]:
    """The systemd unit, by section."""
    sections: dict[str, dict[str, str]] = {}
    for line in (DEPLOY / "systemd" / "weft.service").read_text().splitlines():
        if line.startswith("["):
            section = sections[line.strip("[]")] = {}
        elif line and not line.startswith("#"):
            name, _, value = line.partition("=")
            section[name] = value
    return sections


def seconds(text: str) -> int:
    """A duration of compose and systemd: 1m, 60s, 2s."""
    found = re.fullmatch(r"(\d+)(s|m)", text)
    assert found is not None, text
    return int(found[1]) * {"s": 1, "m": 60}[found[2]]


def served() -> dict[str, list[str]]:
    """Every command line of weft in the files, without the program's own name."""
    (command,) = instructions("image", "CMD")
    (container,) = manifest("Deployment")["spec"]["template"]["spec"]["containers"]
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["weft"]["command"]
    start = shlex.split(unit()["Service"]["ExecStart"])
    assert start[0].endswith("/weft")
    return {"image": command.words, "kubernetes": container["args"], "compose": compose, "systemd": start[1:]}


def commented_commands() -> list[str]:
    """Commands of weft in comments, as people are told to type them: what follows `weft` or the name of an image."""
    found = []
    for file in DEPLOY.rglob("*"):
        if file.is_file():
            text = re.sub(r"\\\n#?\s*", " ", file.read_text())
            found += re.findall(r"^#     .*?(?: weft|--)\s+((?:keys|serve|worker|migrate) .*)$", text, re.MULTILINE)
    return found
