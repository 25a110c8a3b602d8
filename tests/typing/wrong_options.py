"""Deliberate mistakes in declaring steps and workflows. Both checkers must report every marked line, and no other."""

import weft

app = weft.App("memory://")
weft.App(durability="sometimes")  # wrong: full or fast
weft.App(replay=True)  # wrong: checked or tolerant
weft.App(17)  # wrong: the url is a string


@app.step(retry=3)  # wrong: the option is called retries
def one(item: str) -> str:
    return item


@app.step(retries="3")  # wrong: a number or a Retry
def two(item: str) -> str:
    return item


@app.step(effect="once")  # wrong: no such effect
def three(item: str) -> str:
    return item


@app.step(raises=["CardDeclined"])  # wrong: classes are wanted
def four(item: str) -> str:
    return item


@app.step(run_in="fibre")  # wrong: thread or process
def five(item: str) -> str:
    return item


@app.workflow  # wrong: a workflow is async
def six(item: str) -> str:
    return item


@app.workflow(version=2)  # wrong: versions of workflows are strings
async def seven(item: str) -> str:
    return item


@app.workflow(retries=3)  # wrong: steps are retried, workflows are not
async def eight(item: str) -> str:
    return item


@app.step
def nine(item: str) -> str:
    return item


nine.options(effect="pure")  # wrong: an effect cannot be changed for one call
nine.options(retries="many")  # wrong: a number or a Retry
weft.Retry(backoff="random")  # wrong: no such backoff
weft.Retry(attempts="5")  # wrong: attempts are a number
app.include(app.step)  # wrong: a group is wanted
app.include(nine)  # wrong: a group is wanted
weft.Group(1)  # wrong: the prefix is a string


@app.on("run_fails")  # wrong: no such kind of event
async def told(event: weft.HookEvent) -> None: ...


@app.on("run_failed")  # wrong: it takes an event
async def deaf(run_id: str) -> None: ...


@app.on("run_failed", where=3)  # wrong: a filter is a text
async def filtered(event: weft.HookEvent) -> None: ...
