"""pydantic-ai's agent on OpenAI's chat model."""

import asyncio
from typing import Any

from cases import BASE_URL, KEY, MODEL, PNG, raised, report, weather
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


class Person(BaseModel):
    name: str
    age: int


def agent(name: str = MODEL, key: str = KEY, **more: Any) -> Agent[None, Any]:
    provider = OpenAIProvider(base_url=BASE_URL, api_key=key)
    provider.client.max_retries = 0
    return Agent(OpenAIChatModel(name, provider=provider), **more)


def chat() -> Any:
    return agent().run_sync("hello").output


def stream() -> Any:
    async def pieces() -> list[str]:
        async with agent().run_stream("hello") as result:
            return [piece async for piece in result.stream_text(delta=True, debounce_by=None)]

    found = asyncio.run(pieces())
    return {"text": "".join(found), "pieces": len(found)}


def rounds(text: str) -> Any:
    done = agent(tools=[weather]).run_sync(text)
    return {"text": done.output, "messages": len(done.all_messages())}


def structured() -> Any:
    found = [
        agent(output_type=kind).run_sync("Who is it?").output
        for kind in (Person, NativeOutput(Person))
    ]
    assert found[0] == found[1]
    return found[0].model_dump()


def image() -> Any:
    return agent().run_sync(["What is it?", BinaryContent(PNG, media_type="image/png")]).output


def errors() -> Any:
    return {
        "model": raised(lambda: agent("gpt-5").run_sync("hi")),
        "key": raised(lambda: agent(key="dh_wrong").run_sync("hi")),
        "field": raised(lambda: agent(model_settings={"extra_body": {"n": 2}}).run_sync("hi")),
        "failed": raised(lambda: agent().run_sync("break")),
    }


def cancel() -> Any:
    async def leave() -> str:
        headers = {"X-Deskhand-Session": "cancel-pydantic_ai"}
        reading = agent(model_settings={"extra_headers": headers})
        came = asyncio.Event()

        async def read() -> None:
            async with reading.run_stream("on and on") as result:
                async for _ in result.stream_text(delta=True, debounce_by=None):
                    came.set()

        task = asyncio.create_task(read())
        await came.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return "left"

    return asyncio.run(leave())


report(
    {
        "chat": chat,
        "stream": stream,
        "tools": lambda: rounds("weather in Bern"),
        "parallel": lambda: rounds("weather in two cities"),
        "structured": structured,
        "image": image,
        "errors": errors,
        "cancel": cancel,
    }
)
