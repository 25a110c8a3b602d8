"""Live streams, which send the commits of this process to many clients, without extra buffers for slow ones."""
