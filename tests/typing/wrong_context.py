"""Deliberate mistakes in using the context. Both checkers must report every marked line, and no other."""

from dataclasses import dataclass

import weft

app = weft.App("memory://")


@dataclass
class Ship:
    carrier: str


@dataclass
class Progress:
    rows: int = 0


@app.step
async def fetch(url: str) -> int:
    return len(url)


@app.step
async def title(url: str) -> str:
    return url


@app.workflow
async def child(order_id: str) -> str:
    return order_id


async def one_page(at: Progress) -> weft.Turn[Progress, int]:
    if at.rows > 10:
        return weft.done("ten")  # wrong: the loop ends with an int
    if at.rows > 5:
        return weft.again(at.rows + 1)  # wrong: the loop goes on with a Progress
    if at.rows > 3:
        return at.rows  # wrong: neither again nor done
    return weft.again(Progress(at.rows + 1))


async def plain_body(at: Progress) -> int:
    return at.rows


@app.workflow
async def people(ctx: weft.Context) -> None:
    answer = await ctx.ask("ship", title="Ship?", form=Ship)
    print(answer.form.weight)  # wrong: the form has no such field
    note: int = answer.form.carrier  # wrong: it is a str
    by: str = answer.by  # wrong: a list of names
    bare = await ctx.ask("go", title="Go?")
    print(bare.form.carrier)  # wrong: there is no form
    await ctx.ask("ship", title="Ship?", form=Ship("dhl"))  # wrong: the form is a type
    await ctx.ask("ship")  # wrong: people need a title
    await ctx.ask("ship", title="Ship?", on_timeout="explode")  # wrong: no such choice
    print(note, by)


@app.workflow
async def messages(ctx: weft.Context) -> None:
    ship: Progress = await ctx.receive("ship", Ship)  # wrong: it is a Ship
    maybe = await ctx.receive("ship", Ship, timeout="1h", default=None)
    print(maybe.carrier)  # wrong: it may be None
    await ctx.receive("ship", Ship("dhl"))  # wrong: a type is wanted
    await ctx.receive("ship", Ship, timeout=Ship)  # wrong: not a duration
    found: list[str] = await ctx.messages("ship", most=3)  # wrong: a list of messages
    await ctx.messages("ship", most="all")  # wrong: most is a number
    print(ship, found)


@app.workflow
async def structure(ctx: weft.Context) -> int:
    a, b = await ctx.join("two", fetch("a"), title("b"))
    print(a + b)  # wrong: an int and a str
    _x, _y, _z = await ctx.join("two", fetch("a"), title("b"))  # wrong: two results, three names
    await ctx.join("two", fetch("a"), "b")  # wrong: not a call
    first = await ctx.race("fastest", {"a": fetch("a"), "b": fetch("b")})
    word: str = first.value  # wrong: it is an int
    await ctx.race("fastest", [fetch("a")])  # wrong: branches have names
    await ctx.map("each", fetch, [1, 2])  # wrong: fetch takes strings
    sizes: list[str] = await ctx.map("each", fetch, ["a"])  # wrong: a list of ints
    await ctx.map("each", fetch, ["a"], width="8")  # wrong: width is a number
    outcomes = await ctx.map_outcomes("each", fetch, ["a"])
    print(outcomes[0].value)  # wrong: it may be an Err
    await ctx.loop("pages", one_page, state=0)  # wrong: the state is a Progress
    await ctx.loop("pages", plain_body, state=Progress())  # wrong: the body returns no turn
    rows: str = await ctx.loop("pages", one_page, state=Progress())  # wrong: it ends with an int
    print(word, sizes, rows)
    return await ctx.call(child("o-1"))  # wrong: the child returns a str


@app.workflow
async def others(ctx: weft.Context) -> None:
    later = await ctx.spawn(child("o-1"))
    count: int = await later.result()  # wrong: it is a str
    await ctx.call(child("o-1"), id=7)  # wrong: ids are strings
    await ctx.call(child, "o-1")  # wrong: arguments are a mapping
    tried = await ctx.try_step(fetch("a"))
    print(tried.value)  # wrong: it may be an Err
    length: str = await ctx.step("inline", lambda: 1)  # wrong: it is an int
    await ctx.step("inline", 1)  # wrong: a function is wanted
    await ctx.step("inline", lambda: 1, effect="none")  # wrong: no such effect
    await ctx.sleep(None)  # wrong: not a duration
    await ctx.sleep_until("tomorrow")  # wrong: a datetime is wanted
    moment: float = await ctx.now()  # wrong: a datetime
    await ctx.version("price", "2")  # wrong: versions are numbers
    ctx.run_id = "x"  # wrong: read only
    await ctx.slep("1h")  # wrong: no such method
    print(count, length, moment)
