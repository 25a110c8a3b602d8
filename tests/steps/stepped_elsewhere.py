"""An app whose step fails in another process."""

import weft

app = weft.App("memory://")


@app.step(run_in="process", retries=0)
def fails() -> None:
    raise LookupError("no such price")


@app.workflow
async def flow() -> None:
    await fails()
