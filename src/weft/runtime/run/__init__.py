"""One run in memory: its mailbox, its decisions and its code. A run uses its host only through ``ports.RunPorts``."""
