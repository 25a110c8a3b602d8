"""The pages of the errors of agents and their tools: what happened, why, what to do."""

from __future__ import annotations

AGENT_PAGES: dict[str, tuple[str, str, str]] = {
    "tool.wrong_host": (
        "The credentials that an agent named may not go to this host.",
        "A profile in [tool.weft.auth] names the hosts that its secret is for.",
        "Name another profile, or add the host to hosts of this one.",
    ),
    "agent.failed": (
        "An agent came to no answer.",
        "The narrower code says why.",
        "Read the conversation: weft show RUN --conversation. Then retry the run, or change the agent.",
    ),
    "agent.turns": (
        "An agent used all its turns without an answer.",
        "It still called tools in the last turn that it may have.",
        "Give it more turns=, or on_exhausted='answer' or 'ask'.",
    ),
    "agent.stuck": (
        "An agent made the same calls with the same results again and again.",
        "It was told once that it repeats itself, and went on. repeats= says how often that may happen.",
        "Look at what the tool tells it: weft show RUN --conversation. A clearer result or system text often helps.",
    ),
    "agent.bad_output": (
        "An agent gave no valid answer.",
        "Its answers did not fit the output, or its calls were not possible, in more turns than repairs= allows.",
        "Make the output type simpler, use a model that supports schemas, or allow more repairs.",
    ),
    "agent.refused": (
        "A model refused to answer.",
        "The provider reports a refusal or a content filter. That is not repaired by asking again.",
        "The failure has the model's words. Change the request.",
    ),
    "agent.context": (
        "A conversation is too long for its model, and could not be made shorter.",
        "The provider refused the request as too long, also after old results were left out and summed up.",
        "Use a model with a larger context, or return large results of tools by reference (result_bytes=).",
    ),
    "agent.trifecta": (
        "An agent reads private data and words of strangers, and sends something outside.",
        "Words of strangers can make a model send private data. weft check finds it by touches= of the tools.",
        "Take one of the three away, or let two agents do it. Calls that send outside are asked for in any case.",
    ),
    "tool.unknown": (
        "An agent names a tool that nobody has.",
        "Tools are steps, workflows, agents, MCP servers, weft.person(), or names of registered or built-in tools.",
        "Correct the name, or register what it means before the agent.",
    ),
    "tool.failed": (
        "A tool of an MCP server failed.",
        "The server reports an error, refuses the call, or gave a result that is not what the tool promises.",
        "The message has the words of the server. It is not tried again: the same call would get the same answer.",
    ),
    "tool.unavailable": (
        "An MCP server gave no answer.",
        "It cannot be reached, it ended, or it took longer than the timeout of weft.mcp.",
        "The call is tried again, unless the tool is irreversible and may have been performed.",
    ),
    "tool.changed": (
        "A tool of an MCP server is not what was accepted, or it is new.",
        "Definitions of tools are kept when a server is seen first, so that none changes without somebody looking.",
        "weft tools list shows what has changed; weft tools accept SERVER accepts it.",
    ),
}
