"""The floors Weft must keep, each as one figure over the medians of the same benchmark run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

# The median of (system, workload, metric, n), or None if it was not measured. W is code, G and C are
# graphs, A, P and S are goals.
Look = Callable[[str, str, str, int | None], float | None]


@dataclass(frozen=True, slots=True)
class Bar:
    """``value`` is what was found; it is met when it keeps to ``limit`` in the direction of ``sign``."""

    text: str
    sign: str
    limit: float
    value: float | None

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "not measured"
        met = self.value >= self.limit if self.sign == "≥" else self.value <= self.limit
        return "met" if met else "MISSED"


def bars(look: Look) -> list[Bar]:
    def ratio(metric: str, workload: str, other: str) -> float | None:
        return divided(look("weft", workload, metric, None), look(other, workload, metric, None))

    def weft(workload: str, metric: str, n: int | None = None) -> float | None:
        return look("weft", workload, metric, n)

    restate_w2, langgraph_g3 = look("restate", "W2", "runs_per_s", None), look("langgraph", "G3", "seconds", None)
    steps = _spread(look, "W6", "us_per_step", (100, 1000, 5000, 20000))
    branches = _spread(look, "G8", "cpu_us_per_branch", (100, 1000, 10_000))
    of_frozen = divided(weft("A2", "runs_per_s"), weft("A2", "frozen_runs_per_s"))
    items = _spread(look, "A8", "cpu_us_per_item", (100, 1000, 10_000))
    finished = ratio("finished_per_s", "ingress", "restate")
    return [
        Bar("W1 steps/s, times DBOS", "≥", 7, ratio("steps_per_s", "W1", "dbos")),
        Bar("W1 steps/s, times Restate", "≥", 2, ratio("steps_per_s", "W1", "restate")),
        Bar("W1 steps/s, of raw commits/s", "≥", 0.4, ratio("steps_per_s", "W1", "raw")),
        Bar("W2 runs/s, times DBOS", "≥", 40, ratio("runs_per_s", "W2", "dbos")),
        Bar("W2 runs/s, times Restate", "≥", 4, ratio("runs_per_s", "W2", "restate")),
        Bar("W2 p50 of one run, of Restate's", "≤", 0.5, ratio("p50_ms", "W2", "restate")),
        Bar("W3 seconds, of Restate's", "≤", 0.5, ratio("seconds", "W3", "restate")),
        Bar("W4 replay, µs per recorded step", "≤", 20, weft("W4", "us_per_step")),
        Bar("W5 seconds until all slept", "≤", 1.5, weft("W5", "seconds", 2000)),
        Bar("W6 dearest over cheapest step, 100 to 20,000", "≤", 1.2, steps),
        Bar("W7 MB with 5,000 suspended", "≤", 120, weft("W7", "rss_mb", 5000)),
        Bar("W7 idle, % of a core, 5,000 suspended", "≤", 2, weft("W7", "idle_cpu_percent", 5000)),
        Bar("W7 MB with 100,000 suspended", "≤", 250, weft("W7", "rss_mb", 100_000)),
        Bar("G2 graph runs/s, times LangGraph", "≥", 15, ratio("runs_per_s", "G2", "langgraph")),
        Bar("G2 graph runs/s, times Restate's W2", "≥", 3, divided(weft("G2", "runs_per_s"), restate_w2)),
        Bar("G3 LangGraph's seconds, times Weft's", "≥", 5, divided(langgraph_g3, weft("G3", "seconds"))),
        Bar("G8 seconds for 10,000 branches", "≤", 10, weft("G8", "seconds", 10_000)),
        Bar("G8 dearest over cheapest branch, 100 to 10,000", "≤", 1.2, branches),
        Bar("C µs of a cached CEL condition", "≤", 30, weft("C", "cel_us")),
        Bar("C µs of a cached JSON Schema", "≤", 10, weft("C", "schema_us")),
        Bar("C µs of a cached plain JSONPath", "≤", 20, weft("C", "jsonpath_us")),
        Bar("C µs in the Python sandbox", "≤", 5_000, weft("C", "python_us")),
        Bar("Starts/s accepted over HTTP, times Restate", "≥", 2, ratio("accepted_per_s", "ingress", "restate")),
        Bar("Runs/s started over HTTP and finished, times Restate", "≥", 2, finished),
        Bar("Starts over HTTP, p99 of Restate's", "≤", 1, ratio("p99_ms", "ingress", "restate")),
        Bar("weft serve to the first answer, ms", "≤", 1_500, weft("ingress", "first_answer_ms")),
        Bar("MB of the server with 1,000 live clients", "≤", 300, weft("live", "rss_mb_most", 1000)),
        Bar("Events missed because one client is stuck", "≤", 0, weft("live", "events_missing", 1000)),
        Bar("A2 goal runs/s, of graph runs/s", "≥", 0.7, divided(weft("A2", "runs_per_s"), weft("G2", "runs_per_s"))),
        Bar("A2 goal runs/s, of the same plan frozen", "≥", 0.7, of_frozen),
        Bar("A8 dearest over cheapest work item, 100 to 10,000", "≤", 1.2, items),
        Bar("P ms for a plan of 10,000 steps", "≤", 50, weft("P", "all_ms", 10_000)),
        Bar("P ms for a plan of three among 10,000", "≤", 1, weft("P", "three_ms", 10_000)),
        Bar("S µs of a compiled Lua call", "≤", 50, weft("S", "lua_us")),
        Bar("S µs of a compiled Ale call of ten forms", "≤", 200, weft("S", "ale_us")),
    ]


def _spread(look: Look, workload: str, metric: str, sizes: Sequence[int]) -> float | None:
    costs = [look("weft", workload, metric, n) for n in sizes]
    known = [cost for cost in costs if cost is not None]
    return max(known) / min(known) if len(known) == len(costs) else None


def divided(over: float | None, under: float | None) -> float | None:
    return over / under if over is not None and under else None
