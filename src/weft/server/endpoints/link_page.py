"""The page behind a link, with a question and one button. It loads nothing, and all text is escaped."""

from __future__ import annotations

import base64
import hashlib
from html import escape

import msgspec

from weft.server.approvals.links import Claim
from weft.server.endpoints.forms import render_inputs
from weft.server.request import Reply
from weft.server.views import Approval

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "pre{background:#f4f4f4;padding:1rem;overflow:auto;white-space:pre-wrap;overflow-wrap:anywhere}"
    "label{display:block;margin:.8rem 0}"
    "input:not([type=checkbox]),select,textarea{display:block;width:100%;font:inherit}"
    "button{font:inherit;padding:.5rem 2rem;margin-top:1rem}.wrong{color:#a00}dt{color:#666}dd{margin:0 0 .5rem}"
)
_STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
HEADERS = {
    "content-security-policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    # Anybody who has the URL can decide, so it must not be sent to other sites.
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "x-robots-tag": "noindex, nofollow",
}
ABOUT_CHARS_MAX = 20_000


def question_page(approval: Approval, claim: Claim, filled: dict[str, str], wrong: str = "") -> Reply:
    """Return the page that shows what the link would decide, and what was wrong with the last input."""
    verb = "Approve" if claim.approved else "Reject"
    form = render_inputs(approval.form, filled) if claim.approved and approval.form is not None else ""
    reason = escape(filled.get("reason", ""))
    facts = {
        "you": claim.by,
        "run": f"{approval.run} ({approval.workflow})",
        "asked": ", ".join(approval.of) or "anybody",
        "approved by": ", ".join(approval.approvals),
        "until": approval.due_at.isoformat(timespec="minutes") if approval.due_at is not None else "",
        "digest": approval.digest,
    }
    details = "".join(f"<dt>{name}<dd>{escape(text)}" for name, text in facts.items() if text)
    body = (
        f"<h1>{escape(approval.title)}</h1>{_about(approval)}<dl>{details}</dl>"
        f"{f'<p class=wrong role=alert>{escape(wrong)}</p>' if wrong else ''}"
        f"<form method=post accept-charset=utf-8>{form}"
        f'<label>Reason<textarea name="reason" rows=3 maxlength=10000>{reason}</textarea></label>'
        f"<button>{verb}</button></form>"
    )
    return _page(f"{verb}? {approval.title}", body, 422 if wrong else 200)


def message_page(title: str, text: str, status: int = 200) -> Reply:
    """Return a page with a title and a text."""
    return _page(title, f"<h1>{escape(title)}</h1><p>{escape(text)}</p>", status)


def _about(approval: Approval) -> str:
    raw = bytes(approval.about)
    if raw == b"null":
        return ""
    value = msgspec.json.decode(raw)
    text = value if isinstance(value, str) else msgspec.json.format(raw, indent=2).decode()
    preview = text if len(text) <= ABOUT_CHARS_MAX else f"{text[:ABOUT_CHARS_MAX]}…"
    return f"<pre>{escape(preview)}</pre>"


def _page(title: str, body: str, status: int) -> Reply:
    text = (
        "<!doctype html><html lang=en><head><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>{body}</body></html>"
    )
    return Reply(text.encode(), status, HEADERS)
