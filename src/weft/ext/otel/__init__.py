"""OpenTelemetry: traces of run trees, metrics and the output of steps, sent where the standard variables say.

    configuration   whether anything is configured, and the providers of the SDK
    span_sink       spans with ids that derive from runs
    run_spans       runs, waits and commits: from the commits of a host
    step_spans      attempts of steps: from the host that performs them
    agent_spans     names and attributes of the spans of agents and their tools
    log_records     what steps print
    measures        counters and the duration of commits
    telemetry       puts the parts together for one host
    opening         makes that, if anything is configured

A host that sends nothing imports only ``opening`` and ``configuration``.
"""
