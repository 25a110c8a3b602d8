"""The server: an HTTP API for every language, live streams, and work for workers elsewhere.

It knows an application only by the protocol in ``hosted``; ``app.router`` is an ``Api`` over the app itself.
"""
