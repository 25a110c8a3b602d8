"""Steps: how Python functions and values meet the engine, which knows only JSON."""
