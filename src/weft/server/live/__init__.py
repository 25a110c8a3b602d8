"""Live streams: what is committed here, to many clients at once, and never more in memory for a slow one."""
