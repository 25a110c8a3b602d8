"""A new colleague over three months: laptop, mails, a manager who must answer, a check after 90 days."""
import asyncio
from dataclasses import dataclass

import weft

app = weft.App()


@dataclass
class Person:
    name: str
    email: str
    manager: str


@app.step
async def create_account(email: str) -> str:
    return f"account-{email}"


@create_account.undo
async def close_account(result: str) -> None:
    print("closed", result)


@app.step
async def order_laptop(name: str) -> str:
    return f"laptop-{name}"


@app.step
async def mail(to: str, text: str) -> None:
    print("mail to", to, text)


async def equip(person: Person) -> None:
    await asyncio.gather(create_account(person.email), order_laptop(person.name))
    await mail(person.email, "welcome")


@app.workflow
async def onboarding(ctx: weft.Context, person: Person) -> str:
    await equip(person)
    for week in range(1, 5):
        await ctx.sleep("7d")
        await mail(person.email, f"how was week {week}?")
    await ctx.sleep("62d")
    answer = await ctx.ask("probation", title=f"Does {person.name} stay?", of=[f"role:{person.manager}"],
                           timeout="14d", on_timeout="approve")
    if not answer.approved:
        raise weft.Rollback(answer.reason or "it was not a match")
    await mail(person.email, "you stay!")
    return f"{person.name} stays"


if __name__ == "__main__":
    print("Three months do not fit into a demo: run the tests, or weft serve onboarding.py and weft start.")
