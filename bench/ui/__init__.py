"""What people wait for in the web UI: a real browser before a real server (``make bench-ui``)."""
