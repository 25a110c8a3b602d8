"""Pipelines as a way to perform steps: nodes of graphs, steps of goals, and steps of apps.

run       performs a pipeline: its requests by the HTTP client, the rest in a thread or a worker process
request   sends the request of a pipeline
bodies    what graphs, goals and apps use
"""
