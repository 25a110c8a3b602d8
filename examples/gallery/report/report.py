"""A nightly report: every night at two in Berlin, collected region by region, sent by mail."""
from datetime import date

import weft

app = weft.App()
REGIONS = ["north", "south", "west"]


@app.step(retries=weft.Retry(attempts=10, delay="1m", max_delay="15m"))
async def sales_of(region: str, day: date) -> int:
    return len(region) * day.day


@app.step
async def send(subject: str, text: str) -> None:
    print(subject, text, sep="\n")


@app.workflow
async def nightly(ctx: weft.Context) -> str:
    day = (ctx.scheduled_at or await ctx.now()).date()
    sums = await ctx.map("regions", lambda region: sales_of(region, day), REGIONS)
    text = "\n".join(f"{region}: {cents}" for region, cents in zip(REGIONS, sums, strict=True))
    await send(f"Sales of {day}", text)
    return text


app.schedule("nightly", nightly(), cron="0 2 * * *", timezone="Europe/Berlin", overlap="skip", catch_up="6h")

if __name__ == "__main__":
    print(app.run(nightly(), id="report-by-hand"))
