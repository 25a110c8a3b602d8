"""Live streams: sends commits of this process to many clients, without buffering more for slow ones."""
