"""500 documents: read each with at most 20 at once, keep failures as data, and write one summary."""
import sys
from dataclasses import dataclass
from pathlib import Path

import weft

app = weft.App()


@dataclass
class Summary:
    words: int
    documents: int
    failed: list[str]


@app.step(run_in="thread", retries=2, timeout="1m")
def count_words(path: str) -> int:
    return len(Path(path).read_text(encoding="utf-8").split())


@app.step
def write_summary(folder: str, summary: Summary) -> str:
    target = Path(folder, "summary.txt")
    failed = "".join(f"failed: {path}\n" for path in summary.failed)
    target.write_text(f"{summary.documents} documents, {summary.words} words\n{failed}")
    return str(target)


@app.step
def documents_in(folder: str) -> list[str]:
    return sorted(str(path) for path in Path(folder).glob("*.md"))


@app.workflow
async def summarize(ctx: weft.Context, folder: str) -> Summary:
    paths = await documents_in(folder)
    outcomes = await ctx.map_outcomes("documents", count_words, paths, width=20)
    words = [outcome.value for outcome in outcomes if isinstance(outcome, weft.Ok)]
    failed = [path for path, outcome in zip(paths, outcomes, strict=True) if not isinstance(outcome, weft.Ok)]
    summary = Summary(sum(words), len(words), failed)
    await write_summary(folder, summary)
    return summary


if __name__ == "__main__":
    print(app.run(summarize(sys.argv[1] if len(sys.argv) > 1 else "."), id="documents"))
