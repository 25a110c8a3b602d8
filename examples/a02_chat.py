from fastapi import FastAPI
import weft
from a01_support import app, support

@app.workflow(budget=weft.Budget(money="2 USD", tokens=400_000))
async def chat(ctx: weft.Context, customer: str) -> int:
    async def turn(history: str) -> weft.Turn[str, int]:
        said = await ctx.receive("say", str, timeout="30m", default=None)
        if said is None:
            return weft.done(0)
        reply = await support(said, history=history or None)      # a child run per message; old ones can be forked
        return weft.again(reply.conversation)
    return await ctx.loop("talk", turn, state="")

api = FastAPI(lifespan=app.lifespan)
api.mount("/weft", app.router)
# POST /weft/api/v1/runs {"workflow": "chat", "id": "c-7", "input": {"customer": "ann"}}
# POST /weft/api/v1/runs/c-7/messages {"name": "say", "body": "Where is o-1?"}
# GET  /weft/api/v1/runs/c-7/streams/agent/live        tokens as they come; after a reload: Last-Event-ID
