"""Tests of the client of MCP servers."""
