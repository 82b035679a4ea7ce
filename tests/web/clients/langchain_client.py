"""langchain-openai's chat model, with bound tools and structured output."""

from base64 import b64encode
from typing import Any

from cases import BASE_URL, KEY, MODEL, PNG, raised, report, weather
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, SecretStr


class Person(BaseModel):
    """A person."""

    name: str
    age: int


def model(name: str = MODEL, key: str = KEY, **more: Any) -> ChatOpenAI:
    return ChatOpenAI(model=name, base_url=BASE_URL, api_key=SecretStr(key), max_retries=0, **more)


def chat() -> Any:
    return model().invoke("hello").content


def stream() -> Any:
    pieces = [str(chunk.content) for chunk in model().stream("hello")]
    return {"text": "".join(pieces), "pieces": len(pieces)}


def rounds(text: str) -> Any:
    bound = model().bind_tools([tool(weather)])
    messages: list[Any] = [HumanMessage(text)]
    while True:
        reply = bound.invoke(messages)
        assert isinstance(reply, AIMessage)
        messages.append(reply)
        if not reply.tool_calls:
            return {"text": reply.content, "messages": len(messages)}
        messages += [
            ToolMessage(weather(**call["args"]), tool_call_id=call["id"])
            for call in reply.tool_calls
        ]


def structured() -> Any:
    found = [
        model().with_structured_output(Person, method=method).invoke("Who is it?")
        for method in METHODS
    ]
    assert found[0] == found[1]
    return found[0].model_dump()


METHODS: Any = ("json_schema", "function_calling")


def image() -> Any:
    url = f"data:image/png;base64,{b64encode(PNG).decode()}"
    content: Any = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": url}},
    ]
    return model().invoke([HumanMessage(content)]).content


def errors() -> Any:
    return {
        "model": raised(lambda: model("gpt-5").invoke("hi")),
        "key": raised(lambda: model(key="dh_wrong").invoke("hi")),
        "field": raised(lambda: model(n=2).invoke("hi")),
        "failed": raised(lambda: model().invoke("break")),
    }


def cancel() -> Any:
    chunks = model(default_headers={"X-Deskhand-Session": "cancel-langchain"}).stream("on and on")
    for chunk in chunks:
        if chunk.content:
            chunks.close()
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
