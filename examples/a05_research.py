# a05_research.py
import weft

app = weft.App()
app.model("fast", url="https://api.openai.com/v1", key=weft.Secret("env:OPENAI_API_KEY"), prices=weft.Prices("0.25", "2.00"))
app.model("deep", url="https://api.openai.com/v1", api="responses", key=weft.Secret("env:OPENAI_API_KEY"), prices=weft.Prices("2.50", "10.00"))
github = weft.mcp("github", url="https://mcp.github.example/mcp", headers={"authorization": weft.Secret("env:GITHUB_TOKEN")},
                  tools=["search_*", "create_issue"], effects={"search_*": "pure", "create_issue": "irreversible"})

reader = app.agent("reader", model="fast", system="Answer from the code, with file names.", tools=[weft.tool(github, touches=["untrusted"])], turns=12)
lead = app.agent("lead", model="deep", system="Plan, delegate, decide.", tools=[reader, github, weft.person(of=["role:eng"])], on_exhausted="ask")

@app.workflow(budget=weft.Budget(money="5 USD", time="30m", warn=0.7, of=["ann"]))
async def audit(ctx: weft.Context, repos: list[str]) -> str:
    notes = await ctx.map("read", lambda repo: reader(f"How does {repo} retry HTTP?"), repos, width=4)    # one budget for all
    reply = await lead("Write one issue per repository that retries without jitter.\n" + "\n".join(note.output for note in notes))
    return reply.output
