"""The official Python SDK as a client of aop: asks one question and prints what came back, one JSON object a line.

Called with one JSON argument: {"url", "token"} or {"command", "args", "env", "cwd"}, and "mode" (legacy for the
protocols with a handshake, auto for the newest), "tool", "input", "accept" (what a form is filled in with, or null).
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.types import ElicitResult


def say(what, **more):
    print(json.dumps({"what": what, **more}), flush=True)


async def main():
    wanted = json.loads(sys.argv[1])
    shown = []

    async def elicit(context, params):
        shown.append(params.message)
        say("form", message=params.message)
        if wanted["accept"] == "never":
            await asyncio.Event().wait()
        return ElicitResult(action="accept", content=wanted["accept"])

    if "url" in wanted:
        headers = {"Authorization": "Bearer " + wanted["token"]}
        server = streamable_http_client(wanted["url"], http_client=create_mcp_http_client(headers=headers))
    else:
        server = StdioServerParameters(
            command=wanted["command"], args=wanted["args"], env=wanted["env"], cwd=wanted["cwd"]
        )
    form = elicit if wanted.get("accept") is not None else None
    async with Client(server, mode=wanted["mode"], elicitation_callback=form) as client:
        tools = await client.list_tools()
        say("tools", names=[tool.name for tool in tools.tools])
        result = await client.call_tool(wanted["tool"], wanted["input"])
        say("result", is_error=bool(result.is_error), envelope=result.structured_content,
            text=result.content[0].text)


asyncio.run(main())
