"""The fake provider as a process of its own, and what its script can do."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from typing import Any

import msgspec
import pytest

from deskhand.testing.llm import FakeLLM
from deskhand.testing.llm_script import NAMED, Behaviour, FakeCall


def call(url: str, body: object = None) -> Any:
    data = None if body is None else msgspec.json.encode(body)
    with urllib.request.urlopen(urllib.request.Request(url, data), timeout=30) as answer:
        return msgspec.json.decode(answer.read())


def asked(text: str, *more: object) -> dict[str, object]:
    return {"model": "m", "messages": [{"role": "user", "content": text}, *more]}


def test_it_runs_as_a_process() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "deskhand.testing.llm", "--port", "0"], stdout=subprocess.PIPE
    ) as child:
        try:
            assert child.stdout is not None
            root = f"http://127.0.0.1:{int(child.stdout.readline())}"
            call(f"{root}/script", [{"match": "weather", "text": "Rain.", "times": 1}])
            answers = [call(f"{root}/v1/chat/completions", asked("the weather")) for _ in range(2)]
            texts = [answer["choices"][0]["message"]["content"] for answer in answers]
            assert texts == ["Rain.", "This is the answer of a fake model."]
            seen = call(f"{root}/requests")
            assert [request["path"] for request in seen] == ["/v1/chat/completions"] * 2
            assert seen[0]["body"]["messages"][0]["content"] == "the weather"
            assert call(f"{root}/stats") == {"open": 1, "aborted": 0, "asked": 2}
        finally:
            child.terminate()
    assert child.returncode == 0


def test_the_last_user_text_decides_without_a_script() -> None:
    fake = FakeLLM()
    called: dict[str, object] = {"role": "assistant", "content": None, "tool_calls": []}
    done = {"role": "tool", "tool_call_id": "c", "content": "ok"}
    first = fake.decide(asked("do it TOOLS:2 CHUNKS:50"))
    assert (first.calls, first.chunks) == ((FakeCall("list_dir", '{"path": "."}'),), 50)
    assert fake.decide(asked("TOOLS:2", called, done)).calls
    assert not fake.decide(asked("TOOLS:2", called, done, called, done)).calls
    assert fake.decide(asked("FAULT:reset")) == NAMED["reset"]
    blocks = [{"type": "tool_result", "tool_use_id": "c", "content": "ok"}]
    assert not fake.decide(asked("TOOLS:1", called, {"role": "user", "content": blocks})).calls


def test_a_rule_may_hold_for_one_model_and_some_times() -> None:
    fake = FakeLLM()
    fake.script(
        Behaviour(model="a", named="500"), Behaviour(text="one", times=1), Behaviour(text="two")
    )
    assert fake.decide({"model": "a", "messages": []}).status == 500
    assert [fake.decide({"model": "b", "messages": []}).text for _ in range(3)] == [
        "one",
        "two",
        "two",
    ]
    with pytest.raises(KeyError):
        fake.script(Behaviour(named="no such fault"))
