"""Blocking use of apps and clients, for programs without an event loop: Flask, Django, scripts."""
