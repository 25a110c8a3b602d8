"""The shell: it loads, decides, appends, and lets effects out after the commit."""
