"""A few operations of the document, asked for with what fits it and what does not; ``test_fuzz.py`` asks for all."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

EXAMPLES = 3
FEW = ["startRun", "listRuns", "getRun", "sendMessage", "decide", "claimTasks", "registerSteps", "plan"]


def test_no_request_of_a_sample_breaks_the_server() -> None:
    # The generator takes a second to import: only the process that runs this test pays for it.
    import schemathesis

    from tests.server.fuzz import attacked, schema, send

    modes = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]
    seen: Counter[str] = Counter()

    with attacked() as server:
        # One after the other: which of them a draw chooses depends on all modules that are loaded.
        for operation in map(schema.find_operation_by_id, FEW):

            @given(st.one_of([operation.as_strategy(generation_mode=mode) for mode in modes]))
            @settings(
                max_examples=EXAMPLES, phases=[Phase.generate], suppress_health_check=list(HealthCheck), deadline=None
            )
            def ask(case: schemathesis.Case) -> None:
                seen[case.operation.label] += 1
                send(case, server)

            ask()

    assert len(seen) == len(FEW)
