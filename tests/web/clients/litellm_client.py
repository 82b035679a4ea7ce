"""litellm, as OpenAI's provider."""

import json
import os
from base64 import b64encode
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would fetch prices from the web

import litellm
from cases import BASE_URL, KEY, MODEL, PNG, raised, report, weather
from pydantic import BaseModel

litellm.telemetry = False
litellm.suppress_debug_info = True
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}


class Person(BaseModel):
    name: str
    age: int


def complete(messages: list[Any], model: str = MODEL, key: str = KEY, **more: Any) -> Any:
    where = {"api_base": BASE_URL, "api_key": key, "num_retries": 0, "max_retries": 0}
    return litellm.completion(model=f"openai/{model}", messages=messages, **where, **more)


def ask(text: str, **more: Any) -> Any:
    return complete([{"role": "user", "content": text}], **more)


def chat() -> Any:
    return ask("hello").choices[0].message.content


def stream() -> Any:
    pieces = [
        chunk.choices[0].delta.content or "" for chunk in ask("hello", stream=True) if chunk.choices
    ]
    return {"text": "".join(pieces), "pieces": len(pieces)}


def rounds(text: str) -> Any:
    messages: list[Any] = [{"role": "user", "content": text}]
    while True:
        reply = complete(messages, tools=[TOOL]).choices[0].message
        messages.append(reply.model_dump(exclude_none=True))
        if not reply.tool_calls:
            return {"text": reply.content, "messages": len(messages)}
        for call in reply.tool_calls:
            result = weather(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def structured() -> Any:
    schema = {
        "name": "person",
        "schema": Person.model_json_schema() | {"additionalProperties": False},
        "strict": True,
    }
    done = ask("Who is it?", response_format={"type": "json_schema", "json_schema": schema})
    return Person.model_validate_json(done.choices[0].message.content).model_dump()


def image() -> Any:
    url = f"data:image/png;base64,{b64encode(PNG).decode()}"
    content: Any = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": url}},
    ]
    return complete([{"role": "user", "content": content}]).choices[0].message.content


def errors() -> Any:
    messages: Any = [{"role": "user", "content": "hi"}]
    return {
        "model": raised(lambda: complete(messages, "gpt-5")),
        "key": raised(lambda: complete(messages, key="dh_wrong")),
        "field": raised(lambda: ask("hi", n=2)),
        "failed": raised(lambda: ask("break")),
    }


def cancel() -> Any:
    chunks = ask("on and on", stream=True, extra_headers={"X-Deskhand-Session": "cancel-litellm"})
    for chunk in chunks:
        if chunk.choices[0].delta.content:
            chunks.completion_stream.close()
            return "left"
    return "nothing came"


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
