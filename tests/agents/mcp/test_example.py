"""The example ``a05_research.py`` as it stands, but for its addresses: a scripted provider and a local MCP server."""

from __future__ import annotations

import asyncio
import sys
import types
from pathlib import Path

import pytest

from tests.agents.scripted_server import scripted, text, tool_calls
from tests.agents.test_responses_wire import ended, message
from tests.mcp.toolbox import serving_http

EXAMPLE = Path(__file__).parents[3] / "examples" / "a05_research.py"


def test_the_example_reads_repositories_and_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "GITHUB_TOKEN"):
        monkeypatch.setenv(name, "a secret of the test")
    monkeypatch.setenv("WEFT_URL", "memory://")

    async def work(box: str) -> None:
        script = (
            tool_calls(("c1", "github__search_code", '{"q": "retry"}')),
            text("weft retries in worker.py, without jitter."),
            ended("completed", message("I wrote one issue.")),
        )
        async with scripted(*script) as model:
            source = EXAMPLE.read_text()
            source = source.replace("https://api.openai.com/v1", model.url)
            source = source.replace("https://mcp.github.example/mcp", box)
            program = types.ModuleType("a05_research")
            monkeypatch.setitem(sys.modules, program.__name__, program)
            exec(compile(source, str(EXAMPLE), "exec"), program.__dict__)
            async with program.app:
                run = await program.app.start(program.audit(["weft"]))
                assert await run.result() == "I wrote one issue."
        tools = [tool["function"]["name"] for tool in model.requests[0].body["tools"]]
        assert [name for name in tools if name.startswith("github")] == ["github__search_code"]
        assert "retry" in str(model.requests[1].body["messages"][-1]["content"])
        assert model.requests[2].path.endswith("/responses")

    with serving_http(tmp_path) as url:
        asyncio.run(work(url))
