"""The MCP server: offered workflows as tools, and runs as resources. Over HTTP at ``/mcp``, over stdio by ``weft mcp``.

Only ``protocol`` and what stands on it import the package ``mcp``, which is slow to import: at the first request.
"""
