"""Agents: models, tools, pipelines, policies and budgets."""
