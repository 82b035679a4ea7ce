"""The official client of OpenAI."""

import json
from base64 import b64encode
from typing import Any

import openai
from cases import BASE_URL, KEY, MODEL, PNG, raised, report, weather
from pydantic import BaseModel

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


def client(key: str = KEY) -> openai.OpenAI:
    return openai.OpenAI(base_url=BASE_URL, api_key=key, max_retries=0)


def ask(text: str, **more: Any) -> Any:
    return client().chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": text}], **more
    )


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
        reply = (
            client()
            .chat.completions.create(model=MODEL, messages=messages, tools=[TOOL])
            .choices[0]
            .message
        )
        messages.append(reply)
        if not reply.tool_calls:
            return {"text": reply.content, "messages": len(messages)}
        for call in reply.tool_calls:
            result = weather(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def structured() -> Any:
    messages: Any = [{"role": "user", "content": "Who is it?"}]
    done = client().chat.completions.parse(model=MODEL, messages=messages, response_format=Person)
    person = done.choices[0].message.parsed
    return person.model_dump() if person else None


def image() -> Any:
    url = f"data:image/png;base64,{b64encode(PNG).decode()}"
    content: Any = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": url}},
    ]
    messages: Any = [{"role": "user", "content": content}]
    return (
        client().chat.completions.create(model=MODEL, messages=messages).choices[0].message.content
    )


def errors() -> Any:
    messages: Any = [{"role": "user", "content": "hi"}]
    return {
        "model": raised(lambda: client().chat.completions.create(model="gpt-5", messages=messages)),
        "key": raised(
            lambda: client("dh_wrong").chat.completions.create(model=MODEL, messages=messages)
        ),
        "field": raised(lambda: ask("hi", n=2)),
        "failed": raised(lambda: ask("break")),
    }


def cancel() -> Any:
    headers = {"X-Deskhand-Session": "cancel-openai"}
    with ask("on and on", stream=True, extra_headers=headers) as chunks:
        for chunk in chunks:
            if chunk.choices[0].delta.content:
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
