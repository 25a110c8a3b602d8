"""Tools of MCP servers: connections, pinned definitions, and the step that calls a tool.

Only ``wire``, ``child_process``, ``guarded_http`` and ``results`` import the package ``mcp``, at the first connection.
"""
