"""The page behind a link, with a question and both answers. It loads nothing, runs nothing, and all text is escaped."""

from __future__ import annotations

import base64
import hashlib
from datetime import datetime
from html import escape

import msgspec

from weft.observe.pictures.colours import MONO, SANS
from weft.observe.pictures.css_tokens import css_tokens
from weft.server.approvals.links import Claim
from weft.server.endpoints.forms import render_inputs
from weft.server.request import ApiReply
from weft.server.views import Approval

STYLE = f"""{css_tokens()}
*{{box-sizing:border-box}}
body{{margin:0;background:var(--page-fill);color:var(--page-text);font:15px/1.5 {SANS};overflow-wrap:anywhere}}
header{{border-bottom:1px solid var(--page-line);padding:10px 16px;font-weight:650}}
main{{max-width:40rem;margin:0 auto;padding:16px}}
h1{{font-size:20px;line-height:1.3;margin:8px 0 4px}}
h2{{font-size:13px;font-weight:600;color:var(--muted);margin:20px 0 4px}}
.due{{display:inline-block;margin:4px 0 12px;padding:2px 8px;border:1px solid var(--waiting-line);border-radius:6px;
background:var(--waiting-fill);color:var(--waiting-text)}}
.late{{border-color:var(--failed-line);background:var(--failed-fill);color:var(--failed-text)}}
.good{{border-color:var(--done-line);background:var(--done-fill);color:var(--done-text)}}
pre,.mono{{font-family:{MONO};font-size:13px}}
pre{{margin:0;padding:12px;border:1px solid var(--page-line);border-radius:6px;background:var(--idle-fill);
white-space:pre-wrap}}
dl{{display:grid;grid-template-columns:max-content 1fr;gap:4px 16px;margin:0}}
dt{{color:var(--muted)}}
dd{{margin:0;min-width:0}}
label{{display:block;margin:12px 0}}
input:not([type=checkbox]),select,textarea{{display:block;width:100%;min-height:40px;margin-top:4px;padding:8px;
border:1px solid var(--control);border-radius:6px;background:var(--idle-fill);color:var(--idle-text);font:inherit;
font-size:16px}}
input[type=checkbox]{{width:24px;height:24px;vertical-align:middle}}
.wrong{{padding:8px 12px;border:1px solid var(--failed-line);border-radius:6px;background:var(--failed-fill);
color:var(--failed-text)}}
.answers{{display:grid;grid-template-columns:1fr 1fr;gap:12px;margin-top:16px}}
button{{min-height:44px;padding:8px 16px;border:1px solid var(--control);border-radius:6px;background:var(--idle-fill);
color:var(--idle-text);font:inherit;font-weight:600;cursor:pointer}}
button.main{{border-color:var(--accent);background:var(--accent);color:var(--on-accent)}}
:focus-visible{{outline:2px solid var(--accent);outline-offset:2px}}
"""
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


class ShownQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question, the link by which it is shown, and the time at which it is shown."""

    approval: Approval
    claim: Claim
    now: datetime


def question_page(shown: ShownQuestion, filled: dict[str, str], wrong: str = "") -> ApiReply:
    """Return the page that shows the question and both answers, and what was wrong with the last input.

    The answer for which the link was made stands out.
    """
    approval, claim = shown.approval, shown.claim
    form = render_inputs(approval.form, filled) if approval.form is not None else ""
    reason = escape(filled.get("reason", ""))
    facts = {
        "You": claim.by,
        "Run": f"{approval.run} ({approval.workflow})",
        "Asked of": ", ".join(approval.of) or "anybody",
        "Approved by": ", ".join(approval.approvals),
        "Since": _utc(approval.since),
    }
    details = "".join(f"<dt>{name}<dd>{escape(text)}" for name, text in facts.items() if text)
    details += f"<dt>Digest<dd class=mono>{escape(approval.digest)}"
    body = (
        f"<h1>{escape(approval.title)}</h1>{_due(approval.due_at, shown.now)}{_about(approval)}"
        f"<h2>About this question</h2><dl>{details}</dl>"
        f"{f'<p class=wrong role=alert>{escape(wrong)}</p>' if wrong else ''}"
        f"<form method=post accept-charset=utf-8>{form}"
        f'<label>Reason<textarea name="reason" rows=3 maxlength=10000>{reason}</textarea></label>'
        f"<div class=answers>{_buttons(claim)}</div></form>"
    )
    return _page(f"{approval.title} · Weft", body, 422 if wrong else 200)


def _buttons(claim: Claim) -> str:
    """Return both buttons. The answer of the link comes first, because Enter in a field presses the first button."""
    approve = _button("approve", "✓ Approve", is_main=claim.approved)
    reject = _button("reject", "✗ Reject", is_main=not claim.approved)
    return approve + reject if claim.approved else reject + approve


def _button(value: str, text: str, *, is_main: bool) -> str:
    """Return a button. A rejection needs no form, so what is missing there does not stop it."""
    rules = " formnovalidate" if value == "reject" else ""
    return f'<button name="decision" value="{value}"{" class=main" if is_main else ""}{rules}>{text}</button>'


def message_page(title: str, text: str, status: int = 200, *, is_answer: bool = True) -> ApiReply:
    """Return a page with a title and a text, and what became of the answer if one was given."""
    sign = "<p class='due good'>✓ done</p>" if status == 200 else "<p class='due late'>✗ nothing was decided</p>"
    sign = sign if is_answer else ""
    body = f"<h1>{escape(title)}</h1>{sign}<p>{escape(text)}</p>"
    return _page(f"{title} · Weft", body, status)


def _due(due: datetime | None, now: datetime) -> str:
    """Return until when the question can be answered: how long that is, and the time in UTC."""
    if due is None:
        return "<p class=due>◐ waits for an answer, without a time limit</p>"
    seconds = int((due - now).total_seconds())
    when = f"due in {_span(seconds)}" if seconds >= 0 else f"due {_span(-seconds)} ago"
    return f'<p class="due{"" if seconds >= 0 else " late"}">◐ {when}, at {_utc(due)}</p>'


def _utc(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _span(seconds: int) -> str:
    """Return a time span in its two largest units."""
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    first = next((number for number, (_, size) in enumerate(units) if seconds >= size), len(units) - 1)
    parts: list[str] = []
    for name, size in units[first : first + 2]:
        count, seconds = divmod(seconds, size)
        if count or not parts:
            parts.append(f"{count} {name}")
    return " ".join(parts)


def _about(approval: Approval) -> str:
    raw = bytes(approval.about)
    if raw == b"null":
        return ""
    value = msgspec.json.decode(raw)
    text = value if isinstance(value, str) else msgspec.json.format(raw, indent=2).decode()
    preview = text if len(text) <= ABOUT_CHARS_MAX else f"{text[:ABOUT_CHARS_MAX]}…"
    return f"<h2>You decide on</h2><pre>{escape(preview)}</pre>"


def _page(title: str, body: str, status: int) -> ApiReply:
    text = (
        "<!doctype html><html lang=en><head><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body><header>weft</header><main>{body}</main></body></html>"
    )
    return ApiReply(text.encode(), status, HEADERS)
