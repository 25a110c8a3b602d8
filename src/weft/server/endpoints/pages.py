"""Return the OpenAPI document, and a status page for people."""

from __future__ import annotations

from html import escape

from msgspec import Raw

from weft.ports.store import RunQuery, RunRow
from weft.server import views
from weft.server.request import ApiCall, Reply

RUNS_SHOWN = 50
STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.2rem .8rem .2rem 0;"
    "border-bottom:1px solid #ddd}code{font-size:.95em}"
)
POLICY = "default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


async def openapi(call: ApiCall) -> Reply:
    """Return the OpenAPI document."""
    return Reply(Raw(call.services.openapi_document()))


async def status(call: ApiCall) -> Reply:
    """Show the store, the number of runs by status, and the newest runs."""
    service = call.service
    counts = await service.store.directory.counts()
    page = await service.search(RunQuery(limit=RUNS_SHOWN))
    summary = ", ".join(f"{count} {escape(name)}" for name, count in sorted(counts.items())) or "no runs yet"
    text = (
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>Weft</title>"
        f"<style>{STYLE}</style></head><body><h1>Weft</h1>"
        f"<p>Store <code>{escape(service.store.url)}</code>: {summary}.</p>"
        "<table><thead><tr><th>run<th>workflow<th>status<th>started<th>events</thead><tbody>"
        f"{''.join(_row(row) for row in page.rows)}</tbody></table>"
        "<p>For programs: <code>openapi.json</code>, <code>metrics</code>, <code>healthz</code>, "
        "<code>readyz</code>.</p></body></html>"
    )
    return Reply(text.encode(), headers={"content-security-policy": POLICY.format(digest=_digest())})


def _row(row: RunRow) -> str:
    started = views.required_moment(row.created_at).isoformat(timespec="seconds")
    cells = (row.id, f"{row.workflow} {row.version}", row.status, started, str(row.seq))
    return f"<tr>{''.join(f'<td>{escape(cell)}' for cell in cells)}"


def _digest() -> str:
    # Only needed for this page.
    import base64  # noqa: PLC0415
    import hashlib  # noqa: PLC0415

    return base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
