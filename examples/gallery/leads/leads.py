"""Lead scoring as a graph: enrich and score until we are sure, then route. People can change it while it runs."""
from pathlib import Path

import weft

app = weft.App()


@app.step
async def enrich(company: str, known: dict[str, int] | None = None) -> dict[str, int]:
    """Each time it knows more. A real one would call a provider of company data."""
    sources = (known or {}).get("sources", 0) + 1
    return {"sources": sources, "employees": 40 * sources}


@app.step
async def score(profile: dict[str, int]) -> dict[str, float]:
    return {"points": profile["employees"] / 2, "confidence": 0.45 * profile["sources"]}


@app.step
async def to_sales(company: str, points: float) -> str:
    return f"{company} goes to sales with {points:.0f} points"


@app.step
async def to_newsletter(company: str) -> str:
    return f"{company} gets the newsletter"


leads = app.graph(Path(__file__).with_name("leads.yaml"))

if __name__ == "__main__":
    print(app.run(leads, {"company": "Acme"}, id="lead-acme"))
