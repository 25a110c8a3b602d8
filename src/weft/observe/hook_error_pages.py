"""The pages of the errors of hooks: what happened, why, what to do."""

from __future__ import annotations

HOOK_PAGES: dict[str, tuple[str, str, str]] = {
    "hook.invalid": (
        "A hook cannot be as it is declared.",
        "A filter by workflow or tenant takes a name.",
        "Correct the declaration. The message names what is wrong.",
    ),
    "hook.bad_kind": (
        "A hook names a kind of event that does not exist, or none.",
        "A hook can be told of runs that fail, complete or are held, of retried steps, dead letters and questions.",
        "Use one of the kinds that the message lists.",
    ),
    "hook.bad_filter": (
        "The filter of a hook cannot be used.",
        "It is an expression in CEL over the fields of the event, such as attributes, workflow or error.",
        "Correct it. The message shows where the error is, or which field does not exist.",
    ),
    "limit.hook_chain": (
        "A hook cannot start a run: hooks have started 32 runs one after the other.",
        "A hook on run_failed that starts a run which fails would go on for ever. The delivery of the hook fails.",
        "Let the hook leave out runs that hooks have started, with a filter over the attribute weft.hook_chain.",
    ),
    "hook.bad_function": (
        "Something cannot be a hook.",
        "A hook is a function or a step of the same app that takes one event.",
        "Write async def notify(event: weft.HookEvent) -> None, and decorate it with @app.on.",
    ),
}
