"""The read side: what people and programs are told about runs. Nothing here changes a run."""
