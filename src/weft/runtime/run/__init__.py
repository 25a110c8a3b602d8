"""One run in memory: its mailbox, what it decides, its code. It knows its host only as `ports.RunPorts`."""
