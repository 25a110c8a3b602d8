"""A data pipeline from goals: steps say what they need and give, and Weft plans which of them to run."""
import csv
import io
from typing import TypedDict

import weft

app = weft.App()


class Row(TypedDict):
    city: str
    celsius: float


@app.step(gives="raw")
async def download(source: str) -> str:
    """A real one would fetch the source over HTTP."""
    return "city,celsius\nKiel,11.5\nBonn,n/a\nKiel,12.5\nBonn,14\n"


@app.step(gives="rows")
def clean(raw: str) -> list[Row]:
    read = csv.DictReader(io.StringIO(raw))
    return [{"city": row["city"], "celsius": float(row["celsius"])} for row in read if row["celsius"] != "n/a"]


@app.step(gives="averages")
def average(rows: list[Row]) -> dict[str, float]:
    cities = {row["city"] for row in rows}
    values = {city: [row["celsius"] for row in rows if row["city"] == city] for city in cities}
    return {city: sum(found) / len(found) for city, found in sorted(values.items())}


@app.step(gives="report")
def report(averages: dict[str, float], rows: list[Row]) -> str:
    lines = [f"{city}: {celsius:.1f}" for city, celsius in averages.items()]
    return "\n".join([*lines, f"from {len(rows)} rows"])


@app.step(gives="warehouse")
def load_warehouse(rows: list[Row]) -> int:
    return len(rows)


daily = app.goal("daily", report)

if __name__ == "__main__":
    print(app.plan(daily, given={"source": "https://example.com/weather.csv"}))
    print(app.run(daily, {"source": "https://example.com/weather.csv"}, id="weather")["report"])
