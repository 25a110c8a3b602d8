"""Agents of other frameworks in workflows, with the frameworks themselves and a scripted model server."""
