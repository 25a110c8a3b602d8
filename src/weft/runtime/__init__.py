"""The runtime: loads runs, decides, appends, and applies effects after the commit."""
