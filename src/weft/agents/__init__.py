"""What agents need and no context does: models, tools, conversations, pipelines, policies and budgets."""
