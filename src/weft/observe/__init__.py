"""The read side: views of runs for people and programs. Nothing here changes a run."""
