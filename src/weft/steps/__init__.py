"""Steps: Python functions, HTTP calls and scripts that the engine runs, with JSON in and out."""
