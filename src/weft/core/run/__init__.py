"""The parts of a run that are the same in every style. Pure."""
