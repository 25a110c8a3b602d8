"""The read side: what people and programs see of runs. Nothing here changes a run."""
