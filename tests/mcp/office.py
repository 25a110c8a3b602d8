"""An app with workflows for MCP clients, and one that is not offered. Also a program for ``weft mcp``."""

from __future__ import annotations

import os
from typing import Any

import msgspec

import weft


class Trip(msgspec.Struct):
    city: str
    nights: int = 1


class Room(msgspec.Struct):
    hotel: str
    nights: int


def office(url: str = "memory://") -> weft.App:
    """A new app with a store of its own."""
    app = weft.App(url)

    @app.workflow(mcp=True)
    async def greet(ctx: weft.Context, name: str, tail: str = "!") -> str:
        """Greets somebody.

        This part is for programmers.
        """
        return f"hello {name}{tail}"

    @app.workflow(mcp=True)
    async def book(ctx: weft.Context, trip: Trip) -> Room:
        """Books a room."""
        return Room(hotel=f"Grand {trip.city}", nights=trip.nights)

    @app.workflow(mcp=True)
    async def wait_for_quote(ctx: weft.Context, order: str) -> int:
        """Waits until somebody sends a quote."""
        return await ctx.receive("quote", int)

    @app.workflow(mcp=True)
    async def refund(ctx: weft.Context, cents: int) -> str:
        """Asks before it gives money back."""
        answer = await ctx.ask("approve", title=f"Give back {cents} cents?", about={"cents": cents})
        return f"{'paid' if answer.approved else 'refused'} by {', '.join(answer.by)}"

    @app.workflow(mcp=True)
    async def ship(ctx: weft.Context) -> str:
        """Asks which carrier."""
        answer = await ctx.ask("carrier", title="Which carrier?", form=Trip)
        return answer.form.city if answer.approved and answer.form is not None else "nobody"

    @app.workflow(mcp=True)
    async def ask_a_child(ctx: weft.Context) -> str:
        """Lets another workflow ask."""
        return await refund(7)

    @app.workflow(mcp=True)
    async def give_up(ctx: weft.Context) -> None:
        """Fails."""
        raise ValueError("no way")

    @app.workflow(mcp=True)
    async def talk(ctx: weft.Context) -> Any:
        """Prints."""
        print("this must not reach the client")
        os.write(1, b"nor this\n")
        return 1

    @app.workflow
    async def secret_plan(ctx: weft.Context) -> int:
        return 1

    return app


app = office()
