"""The page of every error code: what happened, why, what to do. `weft help CODE` prints it; imported only then."""

from __future__ import annotations

from typing import NamedTuple

from weft.observe.goal_error_pages import GOAL_PAGES


class ErrorPage(NamedTuple):
    """One code explained."""

    what: str
    why: str
    todo: str


def page(code: str) -> str | None:
    """Return the page of a code as text; None if there is no such code."""
    found = PAGES.get(code)
    if found is None:
        return None
    return f"{code}\n\nWhat happened\n  {found.what}\n\nWhy\n  {found.why}\n\nWhat to do\n  {found.todo}\n"


PAGES: dict[str, ErrorPage] = {
    "weft.error": ErrorPage(
        "Something in Weft failed that has no code of its own.",
        "Every expected failure has a narrower class; this one is their root.",
        "Read the message. If it names no cause, report it together with the output of `weft show RUN`.",
    ),
    # The caller is wrong
    "usage.invalid": ErrorPage(
        "Weft was called in a way that cannot work.",
        "The message names the call and the place. Nothing was started or changed.",
        "Correct the code. A step or workflow takes arguments by name: no *args, no **kwargs, nothing positional-only.",
    ),
    "usage.not_awaited": ErrorPage(
        "Python warned: coroutine 'charge' was never awaited.",
        "Calling a step makes a call; awaiting it performs it. Nothing happened.",
        "Write: await charge(...). For several at once: await asyncio.gather(charge(...), ship(...)).",
    ),
    "usage.not_running": ErrorPage(
        "A run was started or awaited, but no engine runs in this process.",
        "Without an engine the run would never move.",
        "Host it: `async with app: ...`, FastAPI(lifespan=app.lifespan) or app.run(...). "
        "To talk to an engine elsewhere: weft.Client(url).",
    ),
    "usage.loop_running": ErrorPage(
        "app.run() was called where an event loop already runs (Jupyter, FastAPI).",
        "app.run() starts a loop of its own and blocks until the run is over; two loops cannot share a thread.",
        "Write: handle = await app.start(order(...)); await handle.result()",
    ),
    "usage.not_async": ErrorPage(
        "A workflow was declared with plain `def`.",
        "A workflow waits for steps, timers and people, and its waits are awaited.",
        "Declare it `async def`. Steps may be plain `def`.",
    ),
    "usage.no_context": ErrorPage(
        "weft.context() or weft.task() was called where there is none.",
        "A context belongs to a workflow that runs, a task to a step that is being performed.",
        "In a workflow use weft.context(), in a step weft.task(); in a script start a workflow: app.run(order(...)).",
    ),
    "usage.run_at_import": ErrorPage(
        "A file calls app.run() while a weft command imports it.",
        "The command needs the definitions in the file, not a run of it.",
        'Put the call under: if __name__ == "__main__":',
    ),
    "usage.missing_extra": ErrorPage(
        "A part of Weft needs packages that are not installed.",
        "`pip install weft` brings SQLite, code, graphs, goals and the command line. "
        "The server, the HTTP client, Postgres, S3, Lua and the Python sandbox are extras.",
        'Run the command that the message names, for example: pip install "weft[server]"',
    ),
    "usage.name_taken": ErrorPage(
        "Two different steps or workflows have the same name.",
        "Names identify recorded results: a run that comes back must find the right function.",
        'Rename one, or give it another name: @app.step(name="sms.send").',
    ),
    "usage.unknown_workflow": ErrorPage(
        "No workflow of that name is registered.",
        "Either it is misspelt, or the file that defines it was not imported.",
        "Look at the names in the message. Name every file that defines workflows: weft run app.py order ...",
    ),
    "usage.unknown_step": ErrorPage(
        "No step of that name is registered.",
        "A run needs a step that this program does not define: it was renamed, removed or not imported.",
        "Import the file that defines it, or give the renamed function its old name: @app.step(name=...).",
    ),
    "value.bad_duration": ErrorPage(
        "A length of time could not be read.",
        'Durations are "250ms", "30s", "1h30m", "2d", "1w", ISO 8601 ("PT1H30M"), timedelta, or seconds as a number. '
        "They are never negative and never longer than a thousand years.",
        'Write "1h", "30s", "2d", "1h30m", timedelta(hours=1) or seconds as a number.',
    ),
    "value.not_json": ErrorPage(
        "A value that goes in or out of a step, workflow or message cannot be stored.",
        "Everything recorded is JSON, so that it can be read back by any version of the code, and by you. The message "
        "names the field. Sets have no order that a replay could repeat; JSON has no nan, no infinity and no NUL.",
        "Steps take and return builtins, dataclasses, pydantic or msgspec types. Return the id of a session or client "
        "and open it again in the step that needs it; use a sorted list for a set and None for nan.",
    ),
    "value.wrong_type": ErrorPage(
        "A value is not of the type that the function's hints declare, or an argument is missing or unknown.",
        "Hints are the schema: values are checked where they enter, strictly, so that no run starts with bad input. "
        '"17" is not an integer; 17 is a number.',
        "Correct the call or the hint. If a recorded input no longer fits, the code has changed under a run: give the "
        "new parameter a default.",
    ),
    "value.bad_name": ErrorPage(
        "A step, workflow, message or branch has a name that cannot be used.",
        "Names are parts of locations such as pages/~3/fetch. They have 1 to 200 printable characters, no / or #, and "
        "do not begin with ~, & or !, which Weft uses itself.",
        "Choose another name.",
    ),
    "value.bad_policy": ErrorPage(
        "An option has a value that it cannot have.",
        "The message names the option and what it accepts. Nothing was started.",
        "Correct it: retries=3 means four attempts in all, width and most are at least 1.",
    ),
    "value.secret": ErrorPage(
        'A value has the key "$secret" and is no secret, or a secret is too short to be kept.',
        "That key stands for a secret by the name of its place. Data from outside must not name secrets, or a caller "
        "could have any file or variable of the server handed to a step.",
        'In code write weft.Secret("env:NAME"); in data use another key. A secret has at least 6 characters.',
    ),
    "expression.invalid": ErrorPage(
        "An expression or a condition cannot be read.",
        "The message shows where it stops making sense, or which function or operator is not known.",
        "Correct it where it is written; nothing was stored.",
    ),
    "expression.failed": ErrorPage(
        "An expression could not be evaluated.",
        "It looked at something that is not there, or that is not of the type it needs; the message has the values.",
        "Ask first whether the field is there (has(output.score)), or give it a value before.",
    ),
    "expression.limit": ErrorPage(
        "An expression took more steps than it may.",
        "Conditions are for small decisions: loops over very many elements belong in a step.",
        "Compute it in a step and let the condition look at the result.",
    ),
    "graph.no_file": ErrorPage(
        "The file of a graph cannot be read.",
        "There is no such file from where the program runs, or it may not be read.",
        "Give a path relative to the working directory, or an absolute one.",
    ),
    "graph.not_json": ErrorPage(
        "A graph document holds something that JSON cannot.",
        "Documents are data: text, numbers, true and false, lists and objects.",
        "Write the value as text, or leave it out.",
    ),
    "graph.too_deep": ErrorPage(
        "A graph document is nested deeper than any graph needs.",
        "The limit protects the reader from documents made to exhaust it.",
        "Put parts of it into graphs of their own (workflow).",
    ),
    "graph.yaml": ErrorPage(
        "A graph document is not YAML that Weft accepts.",
        "The message names the line. Only true and false are booleans; a condition that begins with ! is quoted.",
        'Quote it: when: "!output.sure"',
    ),
    "graph.invalid": ErrorPage(
        "A graph does not hold together.",
        "The message names the place in the document and what is wrong there.",
        "Correct the document; nothing was stored.",
    ),
    **{code: ErrorPage(*told) for code, told in GOAL_PAGES.items()},
    "code.foreign_await": ErrorPage(
        "A workflow waits for something that Weft cannot record: asyncio.sleep, a socket, a thread.",
        "After a restart it would wait again from the beginning, and a replay could take another path.",
        'Write await ctx.sleep("1h") instead of asyncio.sleep(3600); other I/O belongs in a step. '
        "A run that stopped for it goes on with: weft resume RUN",
    ),
    "code.unordered": ErrorPage(
        "A workflow uses something of asyncio whose order is not fixed.",
        "asyncio.as_completed puts bare coroutines into a set, and a set has another order in another process, so a "
        "replay could take another path.",
        "Make tasks first: asyncio.as_completed([asyncio.create_task(c) for c in calls]), or use ctx.map or ctx.race.",
    ),
    "code.spinning": ErrorPage(
        "A workflow goes round and round without waiting for anything.",
        "For a second it asked for nothing: neither a step nor a wait nor a recorded value. It would keep its process "
        "busy for ever. Rounds of ctx.loop that ask for nothing count as well.",
        "Wait with ctx.sleep, ctx.receive or a step inside the loop; long computing belongs in a step. A run that "
        "stopped for it goes on with: weft resume RUN",
    ),
    "usage.simulated": ErrorPage(
        "A simulated world was asked for something that does not exist in it, or nothing can happen in it any more.",
        "It has virtual time and no threads, sockets or subprocesses; and a run that waits for a person or a message "
        "waits for ever unless the test sends one.",
        "Fake the step with world.fake(...), or send() and answer() what run.waiting_for() names.",
    ),
    # Well formed, not possible now
    "run.refused": ErrorPage(
        "The request is well formed, but not possible in the run's present state.",
        "The message names the state. Nothing was changed.",
        "See where the run stands: weft explain RUN",
    ),
    "run.id_taken": ErrorPage(
        "A run with this id exists, with another workflow or other arguments.",
        "An id names one run for ever, so that starting it twice is safe. The message shows the difference; arguments "
        "left to their defaults are not compared.",
        "Choose another id, or omit it for a new run.",
    ),
    "run.key_reused": ErrorPage(
        "An idempotency key came back with another body.",
        "A key names one command, so that sending it twice is safe; two different commands need two keys.",
        "Send the new command under a new key, or the old one unchanged.",
    ),
    "run.finished": ErrorPage(
        "A message or command came for a run that is over.",
        "A run that has completed, failed or been cancelled takes nothing more in. Nothing was delivered.",
        "See how it ended: weft show RUN. Start a new run under another id.",
    ),
    "run.undone": ErrorPage(
        "A graph or goal run was to be tried again after its completed work had been undone.",
        "A failed run undoes what it did. What its later steps would build on is no longer there.",
        "Fork it: start a new run with the same input under another id. weft show RUN has the input.",
    ),
    "run.already_decided": ErrorPage(
        "A question was answered that has been answered before, or whose time is over.",
        "The first answer in the log counts.",
        "See the answer: weft show RUN",
    ),
    "access.not_allowed": ErrorPage(
        "The caller may not do this.",
        "The question or the command is reserved for others; the message says for whom.",
        "Ask one of them.",
    ),
    "access.unknown": ErrorPage(
        "A request to the API did not say who makes it, or what it said is not good.",
        "The key was never made, was revoked or has expired, or the token is not one of the provider that is trusted. "
        "Which of these it is, is not told.",
        "Send Authorization: Bearer KEY. weft keys list shows which keys are good; weft keys create makes one.",
    ),
    "ask.not_yours": ErrorPage(
        "Somebody answered a question that others are asked.",
        "A question names people, roles or teams; it may also be closed to whoever started the run.",
        "Let one of them answer. On your own machine say who you are: weft decide ID approve --by NAME.",
    ),
    "ask.ambiguous": ErrorPage(
        "An answer names a node or step that has several open questions.",
        "In a fan-out each branch asks its own question. Nothing was decided.",
        "Name the place of one of them: weft inbox lists them, weft decide RUN:NODE/TOKEN approve answers one.",
    ),
    "ask.other_subject": ErrorPage(
        "An answer was given for something else than what is asked.",
        "It names the digest of what was shown, and that is not the digest of what the run asks now.",
        "Look at the question again, weft inbox ID, and decide on that.",
    ),
    "ask.link_expired": ErrorPage(
        "A link by which somebody could decide is too old.",
        "A link is good for a week, and not longer than its question.",
        "Ask for a new one, or answer by weft decide.",
    ),
    "run.not_found": ErrorPage(
        "There is no run, question or message of that name in this store.",
        "Either it is misspelt, or it lives in another store.",
        "weft list shows the runs and names the store. Another one: --url sqlite:///other.db, or set WEFT_URL.",
    ),
    # Steps and runs that fail
    "step.failed": ErrorPage(
        "A step failed for good: it has no attempts left, or its exception is one that is not retried.",
        "The message shows the last exception and the line that raised it.",
        "To catch an exception itself in the workflow, declare it: @app.step(raises=[CardDeclined]). It must be a "
        "subclass of Exception: SystemExit and the like are a weft.StepFailed in the workflow. "
        "To try the run again once the cause is gone: weft retry RUN",
    ),
    "step.outcome_unknown": ErrorPage(
        "An irreversible step was started and no answer came: its worker died, or its time was up.",
        'With effect="irreversible" a step is performed at most once. It may have happened, so it is not repeated.',
        "Find out whether it happened. Catch weft.OutcomeUnknown in the workflow to do that by code.",
    ),
    "step.worker_lost": ErrorPage(
        "The workers of a step died again and again before it ended.",
        "A step that takes its process down (memory, a crash in native code) would do so for ever.",
        "Look at the step's memory and native libraries, then: weft retry RUN",
    ),
    "step.timed_out": ErrorPage(
        "Every attempt of a step took longer than its timeout.",
        "The timeout counts for one attempt; the attempt was given up and counts as failed. `except weft.StepFailed` "
        "and `except weft.TimedOut` both catch it.",
        "Allow more time (timeout=...), or look why it hangs: a plain `def` step keeps its thread until it returns.",
    ),
    "run.timed_out": ErrorPage(
        "A run did not end in the time that its workflow allows.",
        "@app.workflow(timeout=...) counts from the start, waits included. The run failed and was undone.",
        "Allow more time, or start it again under another id.",
    ),
    "wait.timed_out": ErrorPage(
        "A wait took longer than its timeout.",
        "The timeout given to the wait was reached first.",
        "Catch weft.TimedOut (a TimeoutError) where it may happen, or allow more time.",
    ),
    "run.branches_failed": ErrorPage(
        "Several branches of a join or map failed.",
        "Each branch has its own error: `error.errors` by name, or `except*`, for it is an ExceptionGroup.",
        "Take failures as data where they are expected: ctx.map_outcomes(...) or ctx.try_step(...).",
    ),
    "run.failed": ErrorPage(
        "A run ended in failure; what it did has been undone, newest first.",
        "`error.failure` says what ended it: the exception, and the step, its place and its attempts. `cause` names "
        "the failure at the root, if that is another one; `traceback` is the recorded traceback.",
        "See the whole story: weft show RUN. Try again: weft retry RUN",
    ),
    "run.rollback": ErrorPage(
        "A workflow or a step raised weft.Rollback.",
        "It fails the run at once: it is not retried, and ctx.try_step and ctx.map_outcomes let it pass.",
        "Nothing, if that was meant: what the run did has been undone. Else raise another exception.",
    ),
    "run.cancelled": ErrorPage(
        "A run was cancelled; what it did has been undone, newest first.",
        "Somebody, or its parent, asked for it; `error.reason` says why.",
        "Start a new run under another id if it should happen after all.",
    ),
    "code.diverged": ErrorPage(
        "A run came back and its code asks for something else than the log holds at that place.",
        "The code was changed while the run was under way, or it depends on something that is not recorded (time, "
        "random, the environment). The run stopped for you; nothing was undone.",
        "Put the old code back, then: weft resume RUN. If the change is on purpose, say so in the code: "
        'await ctx.version("price", 2). If a step was renamed or removed: @app.step(name="charge"), '
        'await ctx.removed("charge", "step"). The page "Changing workflow code" lists every change. '
        "To perform the rest anew from a step on: weft retry RUN --from STEP",
    ),
    # The store
    "store.failed": ErrorPage(
        "The store could not do what was asked.",
        "The message has the store's own words.",
        "Correct the cause; runs go on by themselves once the store answers.",
    ),
    "store.conflict": ErrorPage(
        "A run's log does not end where its writer thought.",
        "A commit whose answer was lost did arrive. The engine reloads the run and goes on.",
        "Nothing, if you see it in a log. If it persists, two programs write the same file without Weft's knowledge.",
    ),
    "store.fenced": ErrorPage(
        "Another process owns the run now.",
        "This process was silent for too long (suspended, overloaded), and its runs were taken over.",
        "Nothing: the run goes on over there.",
    ),
    "store.unavailable": ErrorPage(
        "The store did not answer, or cannot be written.",
        "The disk is read-only, the file locked or the server away. What was asked may or may not have happened; "
        "the engine finds out before it goes on.",
        "Make the store reachable and writable; runs then go on by themselves.",
    ),
    "store.corrupt": ErrorPage(
        "Something in the store cannot be read back.",
        "A row is not what Weft wrote: a damaged disk, or another program. Only the run it belongs to is stopped.",
        "Restore the file from a backup, or look at the run: weft events RUN",
    ),
    "run.unreadable": ErrorPage(
        "Something that is stored of a run cannot be read.",
        "An event or a piece of mail is damaged, or was written by a newer Weft. The run stands still (held) and takes "
        "no commands, because nobody could act on them. Other runs are not concerned.",
        "Restore the store from a backup, or update Weft; then: weft resume RUN. "
        "To end the run without undoing anything: weft cancel RUN --force",
    ),
    "store.newer_schema": ErrorPage(
        "The store was written by a newer version of Weft.",
        "An older version could misread what a newer one wrote, so it does not try.",
        "Update Weft, or open another store: --url, or WEFT_URL.",
    ),
    "store.file_gone": ErrorPage(
        "The database file was deleted or replaced while a host had it open.",
        "What the host writes would go into a file without a name, which nobody can ever read. So it writes nothing "
        'and acknowledges nothing. With durability="fast" it looks every 50 ms; what it accepted in between is lost.',
        "Put the right file in its place (a backup, or the one that was moved away) and restart the host.",
    ),
    "store.full": ErrorPage(
        "The store has no room left.",
        "The disk, or the quota on it, is full. Nothing was written half.",
        "Make room; runs then go on by themselves.",
    ),
    "limit.exceeded": ErrorPage(
        "A limit on size, depth, count or time was reached.",
        "A single value may have 16 MiB as JSON and 100 levels. Limits are checked first, so nothing was stored.",
        "Store big things elsewhere and pass their address; pass deep or long ones in pieces.",
    ),
    "limit.tree_depth": ErrorPage(
        "A run cannot start another one: too many runs below each other wait already.",
        "A workflow that starts itself, or a graph with a node that names the graph, goes on without end. A tree of "
        "runs may be 32 deep.",
        "Let the workflow end before it starts itself again, or set the limit: weft.App(tree_depth=64).",
    ),
    "limit.tree_runs": ErrorPage(
        "A run cannot start another one: its tree has too many open runs.",
        "A tree may have 20,000 runs that are not over. Those that are over do not count.",
        "Wait for some before you start others (ctx.map has a width), or set the limit: weft.App(tree_runs=50_000).",
    ),
    "limit.busy": ErrorPage(
        "The server takes no more of this now.",
        "Too many requests at once or per second, too many that listen, or work has waited too long to take new runs.",
        "Come again after the seconds that Retry-After names. If it lasts: more workers, or shorter steps.",
    ),
    # Requests to the API
    "request.malformed": ErrorPage(
        "A request to the API cannot be read.",
        "Its body is not JSON, or its path, query or headers are not text as HTTP has it. Nothing was done.",
        "Send JSON in UTF-8, and encode what stands in a path or a query.",
    ),
    "request.too_slow": ErrorPage(
        "The body of a request did not arrive in time.",
        "A body has 30 seconds, and all bodies that are still arriving share 64 MB. Nothing was done.",
        "Send it again, over a faster connection or with less in it.",
    ),
    "request.unknown_route": ErrorPage(
        "There is nothing at this path of the API.",
        "The path is wrong, or a slash in an id was not written as %2F.",
        "GET /openapi.json has all paths.",
    ),
    "request.wrong_method": ErrorPage(
        "This path of the API takes another method.",
        "Looking is GET, changing is POST or PUT.",
        "The header Allow of the answer has the methods that are possible.",
    ),
    "request.wrong_type": ErrorPage(
        "The body of a request is not said to be JSON.",
        "Only JSON is taken: what a page of another site could send without asking is turned away unread.",
        "Send the header Content-Type: application/json.",
    ),
    "task.not_yours": ErrorPage(
        "A worker answered for a task that is no longer its own.",
        "It was silent for longer than its lease, or nobody waits for the task any more. What it did decides nothing.",
        "Stop working on it. Send heartbeats more often than the lease, or claim with a longer one.",
    ),
    # Scripts
    "script.invalid": ErrorPage(
        "A script in Lua or Ale does not compile.",
        "The message has the line and the reason. Only the names of its inputs, and what is safe of the language, "
        "exist in it.",
        "Correct it; nothing was registered or changed.",
    ),
    "script.failed": ErrorPage(
        "A script raised, or gave something that is not JSON.",
        "The message has the line and the reason. The same inputs give the same failure, so it is not tried again.",
        "Correct the script, or what it is given.",
    ),
    "script.limit": ErrorPage(
        "A script took too many steps, too much memory or too long.",
        "Scripts run beside everything else, so each call is bounded; nothing of it is left behind.",
        "Do less in it, or write a step in Python.",
    ),
    # HTTP
    "http.failed": ErrorPage(
        "An HTTP call was answered, and the answer was a no or not usable.",
        "A 4xx, a redirect that leads nowhere, or a body that is not what its headers say. Trying again would not "
        "help.",
        "Read the status and the message; correct the request, or catch the error: "
        "catch: [{error: HttpFailed, to: …}].",
    ),
    "http.not_an_answer": ErrorPage(
        "A service answered, and the answer cannot be read as outputs.",
        "The body is no JSON, or JSON that is no object with the names of the outputs.",
        'Let the service answer with an object, for example {"total": 42}. A webhook with such a body is refused, and '
        "the step goes on waiting for a better one.",
    ),
    "http.unavailable": ErrorPage(
        'An HTTP call was not answered, or with "not now" (408, 425, 429, 5xx).',
        "It is tried again as the step's policy says, and not before the other side's Retry-After.",
        "Nothing, if it passes. Otherwise look at the other side, or raise retry and timeout.",
    ),
    "http.address_refused": ErrorPage(
        "An HTTP call was to go to a private, local or otherwise special address.",
        "Addresses come from data, and data must not reach into your network. Redirects and every resolved address "
        "count.",
        "If it is meant to be called, allow it: WEFT_HTTP_ALLOW=10.0.0.0/8,localhost.",
    ),
}
