"""The whole behaviour of code workflows, a file per feature, through the real app, engine and memory store."""
