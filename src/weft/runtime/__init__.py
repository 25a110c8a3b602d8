"""The imperative shell: loads runs, decides, appends, and applies effects after the commit."""
