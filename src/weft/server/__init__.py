"""The server: an HTTP API for every language, live streams, and tasks for remote workers.

It knows an application only by the protocol in ``hosted_app``. ``app.router`` is the ``Api`` of an app.
"""
