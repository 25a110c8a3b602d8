"""The page with every setting, from the table that the package reads them by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from weft.settings import PROJECT, VARIABLES, Setting

INTRODUCTION = """\
# Settings

Everything that is set outside of code: environment variables, and the table `[tool.weft]` of the `pyproject.toml` in
the folder in which the process starts. What an app decides for itself (`weft.App`, steps, workflows) is in the
[reference](reference.md); options of commands are in [the command `weft`](cli.md).

An option of a command wins over the argument in code, which wins over the environment, which wins over
`pyproject.toml`. An empty variable counts as not set. Every process of an installation needs the same values: the hosts
and workers of one store, and the commands that you type. A key of `[tool.weft]` that is not in this table is refused.

Values in the column *default* are used as they are; `–` means that nothing is set and the feature is off. Pass what is
marked **secret** by the secret store of your platform, not in a file that others can read.
"""

OTHERS = """\
## Variables of others

| variable | meaning |
|---|---|
| `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT`, … | the bucket of `WEFT_BLOBS=s3://…` |
| `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_SERVICE_NAME`, … | [traces, metrics and logs](tracing.md) |
| `SSL_CERT_FILE` | the authority of a server's certificate, for commands and `weft.Client` |
| `weft.Secret("env:NAME")` | any variable that your steps name, read when the step runs |
| `BROWSER`, `DISPLAY`, `WAYLAND_DISPLAY` | whether `weft ui` can open a browser |
| `WEFT_SKIP_UI` | `1`: building a wheel from the sources leaves the web UI out |
"""


def settings_page() -> str:
    return "\n".join(
        [
            INTRODUCTION,
            "## Environment variables",
            "",
            *table(VARIABLES),
            "## `[tool.weft]`",
            "",
            *table(PROJECT, '`*` stands for a name: `[tool.weft.retention.workflow.order] completed = "30d"`.'),
            OTHERS,
        ]
    )


def table(settings: Iterable[Setting], note: str = "") -> Iterator[str]:
    yield from ("| setting | for | default | meaning |", "|---|---|---|---|")
    yield from (row(setting) for setting in settings)
    yield ""
    if note:
        yield from (note, "")


def row(setting: Setting) -> str:
    name = f"[`{setting.name}`]({setting.page})" if setting.page else f"`{setting.name}`"
    default = f"`{setting.default}`" if setting.default else "–"
    secret = " **Secret.**" if setting.is_secret else ""
    return f"| {name} | {setting.area} | {default} | {setting.meaning}{secret} |"
