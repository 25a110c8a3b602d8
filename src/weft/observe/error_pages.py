"""A page for every error code: what happened, why, and what to do. ``weft help CODE`` prints it."""

from __future__ import annotations

from typing import NamedTuple

from weft.observe.agent_error_pages import AGENT_PAGES
from weft.observe.budget_error_pages import BUDGET_PAGES
from weft.observe.bulk_error_pages import BULK_PAGES
from weft.observe.fork_error_pages import FORK_PAGES
from weft.observe.goal_error_pages import GOAL_PAGES
from weft.observe.hand_error_pages import HAND_PAGES
from weft.observe.hook_error_pages import HOOK_PAGES
from weft.observe.model_error_pages import MODEL_PAGES
from weft.observe.patch_error_pages import PATCH_PAGES
from weft.observe.pipeline_error_pages import PIPELINE_PAGES
from weft.observe.policy_error_pages import POLICY_PAGES
from weft.observe.resource_error_pages import RESOURCE_PAGES
from weft.observe.retention_error_pages import RETENTION_PAGES
from weft.observe.schedule_error_pages import SCHEDULE_PAGES
from weft.observe.server_error_pages import SERVER_PAGES
from weft.observe.start_error_pages import START_PAGES
from weft.observe.version_error_pages import VERSION_PAGES


class ErrorPage(NamedTuple):
    """The explanation of one error code."""

    what: str
    why: str
    todo: str


def page(code: str) -> str | None:
    """Return the page of a code as text, or None if there is no such code."""
    text = PAGES.get(code)
    if text is None:
        return None
    return f"{code}\n\nWhat happened\n  {text.what}\n\nWhy\n  {text.why}\n\nWhat to do\n  {text.todo}\n"


_OTHER_PAGES = (
    BULK_PAGES,
    FORK_PAGES,
    GOAL_PAGES,
    HAND_PAGES,
    HOOK_PAGES,
    MODEL_PAGES,
    AGENT_PAGES,
    PATCH_PAGES,
    POLICY_PAGES,
    PIPELINE_PAGES,
    RESOURCE_PAGES,
    BUDGET_PAGES,
    RETENTION_PAGES,
    SCHEDULE_PAGES,
    SERVER_PAGES,
    START_PAGES,
    VERSION_PAGES,
)
PAGES: dict[str, ErrorPage] = {
    "weft.error": ErrorPage(
        "Weft failed with an error that has no code of its own.",
        "Every expected failure has a more specific class. This is the base class of all of them.",
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
        "Calling a step only creates a call. Awaiting the call performs the step. Nothing happened.",
        "Write: await charge(...). For several at once: await asyncio.gather(charge(...), ship(...)).",
    ),
    "usage.not_running": ErrorPage(
        "A run was started or awaited, but no engine runs in this process.",
        "Without an engine the run would never make progress.",
        "Start the app: `async with app: ...`, FastAPI(lifespan=app.lifespan) or app.run(...). "
        "Without an event loop: app.sync.start(...). To talk to an engine elsewhere: weft.Client(url).",
    ),
    "usage.loop_running": ErrorPage(
        "app.run(), or a method of app.sync or client.sync, was called where an event loop runs (Jupyter, FastAPI).",
        "They block until they have an answer. The loop of this thread would stand still, perhaps forever.",
        "Write: handle = await app.start(order(...)); await handle.result(). In a plain thread, app.sync is right.",
    ),
    "usage.after_fork": ErrorPage(
        "A forked process uses app.sync or client.sync, which its parent had opened before the fork.",
        "The thread of the engine exists only in the parent, and two processes cannot share a connection to a store.",
        "Open it only after the fork: leave out app.sync while a pre-forking server loads the application, or close() "
        "it. The first call of each worker then opens its own.",
    ),
    "usage.not_async": ErrorPage(
        "A workflow was declared with plain `def`.",
        "A workflow awaits steps, timers and people, so it must be a coroutine.",
        "Declare it `async def`. Steps may be plain `def`.",
    ),
    "usage.no_context": ErrorPage(
        "weft.context() was called outside a workflow, or weft.task() outside a step.",
        "A context exists only while a workflow runs, and a task only while a step is performed.",
        "In a workflow use weft.context(), in a step weft.task(); in a script start a workflow: app.run(order(...)).",
    ),
    "usage.run_at_import": ErrorPage(
        "A file calls app.run() while a weft command imports it.",
        "The command needs only the definitions in the file and must not start a run.",
        'Put the call under: if __name__ == "__main__":',
    ),
    "usage.missing_extra": ErrorPage(
        "A part of Weft needs packages that are not installed.",
        "`pip install weft` brings SQLite, code, graphs, goals and the command line. "
        "The server, the HTTP client, Postgres, Redis, S3, Lua and the Python sandbox are extras.",
        'Run the command that the message names, for example: pip install "weft[server]"',
    ),
    "usage.name_taken": ErrorPage(
        "Two different steps or workflows have the same name.",
        "Names identify recorded results. A run that is loaded again must find the right function.",
        'Rename one, or give it another name: @app.step(name="sms.send").',
    ),
    "usage.unknown_workflow": ErrorPage(
        "No workflow with that name is registered.",
        "Either it is misspelt, or the file that defines it was not imported.",
        "Compare with the names in the message. List every file that defines workflows: weft run app.py order ...",
    ),
    "usage.unknown_step": ErrorPage(
        "No step with that name is registered.",
        "A run needs a step that this program does not define: it was renamed, removed or not imported.",
        "Import the file that defines it, or give the renamed function its old name: @app.step(name=...).",
    ),
    "value.bad_duration": ErrorPage(
        "A duration could not be read.",
        'Durations are "250ms", "30s", "1h30m", "2d", "1w", ISO 8601 ("PT1H30M"), timedelta, or seconds as a number. '
        "They are never negative and never longer than a thousand years.",
        'Write "1h", "30s", "2d", "1h30m", timedelta(hours=1) or seconds as a number.',
    ),
    "value.not_json": ErrorPage(
        "An input or output of a step or workflow, or a message, cannot be stored.",
        "Everything recorded is JSON, so that it can be read back by any version of the code, and by you. The message "
        "names the field. Sets have no order that a replay could repeat; JSON has no nan, no infinity and no NUL.",
        "Steps take and return builtins, dataclasses, pydantic or msgspec types. Return the id of a session or client "
        "and open it again in the step that needs it; use a sorted list for a set and None for nan.",
    ),
    "value.wrong_type": ErrorPage(
        "A value does not have the type in the function's type hints, or an argument is missing or unknown.",
        "Type hints are the schema. Values are checked strictly on arrival, so that no run starts with bad input. "
        '"17" is not an integer; 17 is a number.',
        "Correct the call or the type hint. If a recorded input no longer matches, the code was changed while the run "
        "was in progress: give the new parameter a default.",
    ),
    "value.bad_name": ErrorPage(
        "A step, workflow, message or branch has a name that cannot be used.",
        "Names are parts of locations such as pages/~3/fetch. They have 1 to 200 printable characters, no / or #, and "
        "do not begin with ~, & or !, which Weft uses itself.",
        "Choose another name.",
    ),
    "value.bad_policy": ErrorPage(
        "An option has an invalid value.",
        "The message names the option and the values it accepts. Nothing was started.",
        "Correct it: retries=3 means four attempts in all, width and most are at least 1.",
    ),
    "limit.bad_key": ErrorPage(
        "The key of a limit is neither a text nor an integer, or could not be found.",
        "A limit counts tasks or runs by the key of their input. The message says what the key was. The step or run "
        "failed before anything was performed.",
        "Correct the key= of the weft.Limit, or the input. A key in CEL also works on hosts that lack the step.",
    ),
    "value.secret": ErrorPage(
        'A value has the key "$secret" but is not a secret, or a secret is too short.',
        "An object with that key is a reference to a secret. Data from outside must not contain such references; "
        "otherwise a caller could pass any file or environment variable of the server to a step.",
        'In code write weft.Secret("env:NAME"); in data use another key. A secret has at least 6 characters.',
    ),
    "expression.invalid": ErrorPage(
        "An expression or a condition cannot be read.",
        "The message shows where the syntax is wrong, or which function or operator is unknown.",
        "Correct it where it is written; nothing was stored.",
    ),
    "expression.failed": ErrorPage(
        "An expression could not be evaluated.",
        "A field is missing or has the wrong type. The message has the values.",
        "Check first that the field exists, with has(output.score), or set it before.",
    ),
    "expression.limit": ErrorPage(
        "An expression took more steps than the limit allows.",
        "Conditions are for small decisions: loops over very many elements belong in a step.",
        "Compute the value in a step and use its result in the condition.",
    ),
    "graph.no_file": ErrorPage(
        "The file of a graph cannot be read.",
        "The file does not exist, relative to the working directory, or is not readable.",
        "Give a path relative to the working directory, or an absolute one.",
    ),
    "graph.not_json": ErrorPage(
        "A graph document contains a value that JSON does not have.",
        "Documents are data: text, numbers, true and false, lists and objects.",
        "Write the value as text, or leave it out.",
    ),
    "graph.too_deep": ErrorPage(
        "A graph document is nested deeper than any graph needs.",
        "The limit protects against documents that are made to exhaust the parser.",
        "Move parts of it into separate graphs (workflow).",
    ),
    "graph.yaml": ErrorPage(
        "A graph document is not YAML that Weft accepts.",
        "The message names the line. Only true and false are booleans. A condition that begins with ! must be quoted.",
        'Quote it: when: "!output.sure"',
    ),
    "graph.invalid": ErrorPage(
        "A graph document is not valid.",
        "The message names the place in the document and what is wrong there.",
        "Correct the document; nothing was stored.",
    ),
    **{code: ErrorPage(*texts) for pages in _OTHER_PAGES for code, texts in pages.items()},
    "code.foreign_await": ErrorPage(
        "A workflow waits for something that Weft cannot record: asyncio.sleep, a socket, a thread.",
        "After a restart the wait would start over, and a replay could take another path.",
        'Write await ctx.sleep("1h") instead of asyncio.sleep(3600); other I/O belongs in a step. '
        "To continue a held run: weft resume RUN",
    ),
    "code.unordered": ErrorPage(
        "A workflow uses an asyncio function whose order is not deterministic.",
        "asyncio.as_completed puts coroutines into a set. The order of a set differs between processes, so a replay "
        "could take another path.",
        "Create tasks first: asyncio.as_completed([asyncio.create_task(c) for c in calls]), or use ctx.map or "
        "ctx.race.",
    ),
    "code.spinning": ErrorPage(
        "A workflow loops without waiting for anything.",
        "For one second the code requested no step, no wait and no recorded value. It would keep its process busy for "
        "ever. Empty rounds of ctx.loop count as well.",
        "Wait with ctx.sleep, ctx.receive or a step inside the loop; long computations belong in a step. To "
        "continue a held run: weft resume RUN",
    ),
    "usage.simulated": ErrorPage(
        "A test used something that a simulated world does not have, or nothing can happen in that world any more.",
        "A simulated world has virtual time, and no threads, sockets or subprocesses. A run that waits for a person or "
        "a message waits forever unless the test sends an answer.",
        "Replace the step with world.fake(...), or use send() and answer() for what run.waiting_for() lists.",
    ),
    # Well formed, not possible now
    "run.refused": ErrorPage(
        "The request is well formed, but not possible in the current state of the run.",
        "The message names the state. Nothing was changed.",
        "To see the state of the run: weft explain RUN",
    ),
    "run.id_taken": ErrorPage(
        "A run with this id exists, with another workflow or other arguments.",
        "An id belongs to one run, so that it is safe to start it twice. The message shows the difference. Arguments "
        "that use their defaults are not compared.",
        "Choose another id, or omit it for a new run.",
    ),
    "run.key_reused": ErrorPage(
        "An idempotency key was used again with another body.",
        "A key belongs to one command, so that it is safe to send it twice. Two different commands need two keys.",
        "Send the new command under a new key, or the old one unchanged.",
    ),
    "run.finished": ErrorPage(
        "A message or command was sent to a run that is over.",
        "A run that has completed, failed or been cancelled accepts nothing more. Nothing was delivered.",
        "See how it ended: weft show RUN. Start a new run under another id.",
    ),
    "run.undone": ErrorPage(
        "A retry was requested for a graph or goal run whose completed work had been undone.",
        "A failed run undoes its completed steps. The results that later steps need are no longer valid.",
        "Start a new run with the same input under another id. weft show RUN has the input.",
    ),
    "run.already_decided": ErrorPage(
        "The question has already been answered, or has timed out.",
        "The first answer in the log counts.",
        "See the answer: weft show RUN",
    ),
    "access.not_allowed": ErrorPage(
        "The caller does not have permission.",
        "Only certain people may answer this question or use this command. The message names them.",
        "Ask one of them.",
    ),
    "access.unknown": ErrorPage(
        "A request to the API has no credentials, or its credentials are not valid.",
        "The key does not exist, was revoked or has expired, or the token was not issued by the trusted provider. For "
        "security the answer does not say which.",
        "Send Authorization: Bearer KEY. weft keys list shows the valid keys; weft keys create makes one.",
    ),
    "access.provider": ErrorPage(
        "Somebody could not be signed in, because the identity provider could not be used.",
        "It did not answer, it refused the sign-in, or its answer could not be read. The message says which.",
        "Try again, or sign in with a key. If it stays so, check WEFT_JWT_ISSUER and WEFT_OIDC_CLIENT_ID.",
    ),
    "ask.not_yours": ErrorPage(
        "A question was answered by a person who may not answer it.",
        "A question names people, roles or teams. It may also exclude the person who started the run.",
        "Let one of them answer. On your own machine say who you are: weft decide ID approve --by NAME.",
    ),
    "ask.ambiguous": ErrorPage(
        "An answer names a node or step that has several open questions.",
        "In a fan-out each branch has its own question. Nothing was decided.",
        "Name one of them. weft inbox lists the questions; weft decide RUN:NODE/TOKEN approve answers one.",
    ),
    "ask.other_subject": ErrorPage(
        "The question has changed since it was shown.",
        "The answer has the digest of the question that was shown, and the open question has another digest.",
        "Read the question again (weft inbox ID) and answer it.",
    ),
    "ask.link_expired": ErrorPage(
        "An approval link has expired.",
        "A link is valid for a week, and only while its question is open.",
        "Ask for a new link, or answer with weft decide.",
    ),
    "run.not_found": ErrorPage(
        "There is no run, question or message with that name in this store.",
        "Either the name is misspelt, or it is in another store.",
        "weft list shows the runs and names the store. To use another store: --url sqlite:///other.db, or set "
        "WEFT_URL.",
    ),
    # Steps and runs that fail
    "step.failed": ErrorPage(
        "A step failed for good: it has no attempts left, or its exception is not retried.",
        "The message shows the last exception and the line that raised it.",
        "To catch the original exception in the workflow, declare it: @app.step(raises=[CardDeclined]). It must be a "
        "subclass of Exception: SystemExit and the like are a weft.StepFailed in the workflow. "
        "To retry the run once the cause is fixed: weft retry RUN",
    ),
    "step.outcome_unknown": ErrorPage(
        "An irreversible step was started and gave no result: its worker died, it timed out, or what it returned "
        "cannot be stored.",
        'With effect="irreversible" a step is performed at most once. It may have been performed, so it is not '
        "repeated.",
        "Find out whether it was performed. To do that in code, catch weft.OutcomeUnknown in the workflow.",
    ),
    "step.worker_lost": ErrorPage(
        "The workers of a step died repeatedly before it ended.",
        "A step that crashes its process (memory, native code) would crash every worker, so it is not repeated.",
        "Check the step's memory use and native libraries, then: weft retry RUN",
    ),
    "step.timed_out": ErrorPage(
        "Every attempt of a step took longer than its timeout.",
        "The timeout applies to each attempt. An attempt that times out counts as failed. `except weft.StepFailed` "
        "and `except weft.TimedOut` both catch it.",
        "Allow more time (timeout=...), or find out why it hangs: a plain `def` step keeps its thread until it "
        "returns.",
    ),
    "run.timed_out": ErrorPage(
        "A run did not end before the deadline of its workflow.",
        "@app.workflow(timeout=...) counts from the start, waits included. The run failed and was undone.",
        "Allow more time, or start it again under another id.",
    ),
    "wait.timed_out": ErrorPage(
        "A wait took longer than its timeout.",
        "What the workflow waited for did not happen before the timeout.",
        "Catch weft.TimedOut (a TimeoutError) where it may happen, or allow more time.",
    ),
    "run.branches_failed": ErrorPage(
        "Several branches of a join or map failed.",
        "Each branch has its own error: `error.errors` by name, or use `except*`, because it is an ExceptionGroup.",
        "If failures are expected, get them as data: ctx.map_outcomes(...) or ctx.try_step(...).",
    ),
    "run.failed": ErrorPage(
        "A run ended in failure. Its completed steps have been undone, newest first.",
        "`error.failure` has the exception, the step, its place and its attempts. `cause` is the root cause, if that "
        "is another failure. `traceback` is the recorded traceback.",
        "To see the history: weft show RUN. To retry: weft retry RUN",
    ),
    "run.rollback": ErrorPage(
        "A workflow or a step raised weft.Rollback.",
        "weft.Rollback fails the run at once. It is not retried, and ctx.try_step and ctx.map_outcomes do not catch "
        "it.",
        "Nothing, if that was intended: the completed steps have been undone. Otherwise raise another exception.",
    ),
    "run.cancelled": ErrorPage(
        "A run was cancelled. Its completed steps have been undone, newest first.",
        "A person or the parent run cancelled it. `error.reason` says why.",
        "If the work is still wanted, start a new run under another id.",
    ),
    "code.diverged": ErrorPage(
        "On replay, the code of a run requested something else than the log has at that place.",
        "The code was changed while the run was in progress, or it depends on something that is not recorded (time, "
        "random numbers, the environment). The run is held; nothing was undone.",
        "Restore the old code, then: weft resume RUN. If the change is intended, declare it in the code: "
        'await ctx.version("price", 2). If a step was renamed or removed: @app.step(name="charge"), '
        'await ctx.removed("charge", "step"). The page "Changing workflow code" lists every change. '
        "To perform everything from a step on again: weft retry RUN --from STEP",
    ),
    # The store
    "store.failed": ErrorPage(
        "The store could not perform an operation.",
        "The message includes the store's own error.",
        "Fix the cause. Runs continue by themselves once the store answers.",
    ),
    "store.conflict": ErrorPage(
        "A run's log does not end where the writer expected.",
        "A commit was written although its confirmation was lost. The engine reloads the run and continues.",
        "Nothing, if it appears once in a log. If it persists, another program writes to the same database.",
    ),
    "store.fenced": ErrorPage(
        "Another process owns the run now.",
        "This process did not renew its lease in time (suspended, overloaded), and another one took over its runs.",
        "Nothing: the run continues in the other process.",
    ),
    "store.unavailable": ErrorPage(
        "The store did not answer, or is not writable.",
        "The disk is read-only, the file is locked or the server cannot be reached. The operation may or may not have "
        "happened; the engine finds out before it continues.",
        "Make the store reachable and writable. Runs then continue by themselves.",
    ),
    "store.corrupt": ErrorPage(
        "Stored data cannot be read.",
        "A row was changed by a damaged disk or another program. Only the run that it belongs to is stopped.",
        "Restore the file from a backup. To see the run: weft events RUN",
    ),
    "run.unreadable": ErrorPage(
        "Stored data of a run cannot be read.",
        "An event or a piece of mail is damaged, or was written by a newer Weft. The run is held and accepts no "
        "commands, because they could not be carried out. Other runs are not affected.",
        "Restore the store from a backup, or update Weft; then: weft resume RUN. "
        "To end the run without undoing anything: weft cancel RUN --force",
    ),
    "store.newer_schema": ErrorPage(
        "The store was written by a newer version of Weft.",
        "An older version could misread the data of a newer one, so it refuses to open the store.",
        "Update Weft, or open another store: --url, or WEFT_URL.",
    ),
    "store.wrong_schema": ErrorPage(
        "The store lacks tables or columns that its schema number promises.",
        "It was made by a version of Weft between two releases, changed by hand, or restored only in part, so no "
        "upgrade applies. Trying again does not help.",
        "Restore the store from a backup, or open another one: --url, or WEFT_URL.",
    ),
    "store.file_gone": ErrorPage(
        "The database file was deleted or replaced while a host had it open.",
        "Writes would go to a deleted file that nobody can open. So the host writes nothing and acknowledges nothing. "
        'With durability="fast" it checks every 50 ms; anything accepted between the checks is lost.',
        "Put the right file in its place (a backup, or the one that was moved away) and restart the host.",
    ),
    "store.full": ErrorPage(
        "The store has no space left.",
        "The disk or its quota is full. No write was left incomplete.",
        "Free some space. Runs then continue by themselves.",
    ),
    "limit.exceeded": ErrorPage(
        "A limit on size, depth, count or time was reached.",
        "A single value may have up to 16 MiB as JSON and 100 levels. Limits are checked first, so nothing was stored.",
        "Store large values elsewhere and pass their address. Split deep or long values.",
    ),
    "limit.tree_depth": ErrorPage(
        "A run cannot start a child: its tree of runs is too deep.",
        "A workflow that starts itself, or a graph with a node that starts the same graph, would never end. A tree of "
        "runs may be 32 levels deep.",
        "End the workflow before it starts itself again, or raise the limit: weft.App(tree_depth=64).",
    ),
    "limit.agent_depth": ErrorPage(
        "An agent was not run: there are 8 agents above it already.",
        "An agent that calls itself, or two that call each other, would never end. Other runs between the agents do "
        "not count.",
        "Offer an agent only tools that are below it. The agent that called the last one is told of the failure.",
    ),
    "limit.tree_runs": ErrorPage(
        "A run cannot start a child: its tree has too many open runs.",
        "A tree may have 20,000 open runs. Runs that are over do not count.",
        "Wait for some runs to end before you start others (ctx.map has a width), or raise the limit: "
        "weft.App(tree_runs=50_000).",
    ),
    "limit.busy": ErrorPage(
        "The server is too busy for this request.",
        "There are too many requests at once or per second, too many listeners, or queued work has waited too long.",
        "Retry after the number of seconds in Retry-After. If it persists, add workers or shorten the steps.",
    ),
    # Requests to the API
    "request.malformed": ErrorPage(
        "A request to the API cannot be read.",
        "Its body is not JSON, or its path, query or headers are not valid HTTP. Nothing was changed.",
        "Send JSON in UTF-8, and percent-encode values in the path and the query.",
    ),
    "request.too_slow": ErrorPage(
        "The body of a request did not arrive in time.",
        "A body must arrive within 30 seconds, and all incomplete bodies together may have 64 MB. Nothing was changed.",
        "Send it again, over a faster connection or with a smaller body.",
    ),
    "request.unknown_route": ErrorPage(
        "The API has no such path.",
        "The path is wrong, or a slash in an id was not written as %2F.",
        "GET /openapi.json lists all paths.",
    ),
    "request.wrong_method": ErrorPage(
        "This path of the API does not support the method.",
        "Use GET to read, and POST or PUT to change something.",
        "The Allow header of the response lists the supported methods.",
    ),
    "request.wrong_type": ErrorPage(
        "The request does not declare its body as JSON.",
        "Only JSON is accepted. This blocks forms that a page of another site could send without permission.",
        "Send the header Content-Type: application/json.",
    ),
    "task.not_yours": ErrorPage(
        "A worker reported on a task that it no longer owns.",
        "The worker did not renew its lease in time, or the task is no longer needed. The report has no effect.",
        "Stop working on the task. Send heartbeats more often, or claim tasks with a longer lease.",
    ),
    "stream.bad_answer": ErrorPage(
        "A worker on a Redis stream sent an answer that cannot be used.",
        "Its token is not the one that came with the task, or its status, result or error cannot be read. The stream "
        "wf.bad has the answer.",
        "Send the token unchanged, on the wf.done with the prefix of the task's stream, and JSON in result and error.",
    ),
    "stream.prefix_taken": ErrorPage(
        "The Redis streams with this prefix belong to another deployment.",
        "The key wf.owner names the deployment that uses them. Two of them would take each other's answers.",
        "Give each deployment its own WEFT_REDIS_PREFIX. If the other one is gone, delete the key.",
    ),
    "stream.cluster": ErrorPage(
        "The Redis server for streams is a cluster.",
        "Its nodes have a part of the streams each, and hosts and workers read several at once.",
        "Name a server that is not a cluster. The hot path can use a cluster; hosts have one setting for both.",
    ),
    # Scripts
    "script.invalid": ErrorPage(
        "A script in Lua or Ale does not compile.",
        "The message has the line and the reason. A script can use only its inputs and the safe part of the language.",
        "Correct it; nothing was registered or changed.",
    ),
    "script.failed": ErrorPage(
        "A script raised an error, or returned a value that is not JSON.",
        "The message has the line and the reason. The same inputs give the same failure, so it is not retried.",
        "Correct the script or its inputs.",
    ),
    "script.limit": ErrorPage(
        "A script used too many steps, too much memory or too much time.",
        "Scripts share the process with everything else, so each call is limited. The call left nothing behind.",
        "Do less in it, or write a step in Python.",
    ),
    # HTTP
    "http.failed": ErrorPage(
        "An HTTP call returned an error, or a response that cannot be used.",
        "The response is a 4xx, a redirect that leads nowhere, or a body that does not match its headers. A retry "
        "would not help.",
        "Read the status and the message; correct the request, or catch the error: "
        "catch: [{error: HttpFailed, to: …}].",
    ),
    "http.not_an_answer": ErrorPage(
        "The response of a service cannot be read as outputs.",
        "The body is not JSON, or not an object with the names of the outputs.",
        'Let the service answer with an object, for example {"total": 42}. A webhook with such a body is refused, and '
        "the step waits for another one.",
    ),
    "http.unavailable": ErrorPage(
        "An HTTP call got no response, or a temporary error (408, 425, 429, 5xx).",
        "The call is retried by the step's policy, and not before the time in Retry-After.",
        "Nothing, if a retry succeeds. Otherwise check the other service, or increase retry and timeout.",
    ),
    "http.address_refused": ErrorPage(
        "An HTTP call to a private, local or otherwise special address was blocked.",
        "Addresses can come from data, and data must not give access to your network. Redirects and all resolved "
        "addresses are checked too.",
        "If the call is intended, allow the address: WEFT_HTTP_ALLOW=10.0.0.0/8,localhost.",
    ),
}
