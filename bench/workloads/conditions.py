"""What one cached condition of a graph costs, for each kind that has a bar."""

from collections.abc import Iterable
from pathlib import Path

from bench.conditions import BINDINGS, CONDITIONS, measure
from bench.measure import Sample, main
from weft.conditions import compile_condition, enable_python_sandbox

KINDS = {"cel_us": "CEL", "schema_us": "JSON Schema", "jsonpath_us": "JSONPath, plain", "python_us": "Python sandbox"}


def conditions(n: int, _: Path) -> Iterable[Sample]:
    enable_python_sandbox()
    cases = {case.name: case for case in CONDITIONS}
    for metric, name in KINDS.items():
        condition = compile_condition(cases[name].spec)
        assert condition.evaluate(BINDINGS).value, name
        times = min(n, cases[name].times)
        cost = measure(lambda condition=condition: condition.evaluate(BINDINGS), times)  # type: ignore[misc]
        yield Sample("C", metric, cost, n, style="graph")


if __name__ == "__main__":
    main({"C": conditions})
