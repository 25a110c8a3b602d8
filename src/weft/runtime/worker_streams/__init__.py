"""Publish tasks on Redis streams, for workers in any language, and take in their answers.

A queue that is marked as a stream is performed by such workers alone. Its rows stay in the store until their answers
are there too, so Redis may lose everything: what is missing is published again.
"""
