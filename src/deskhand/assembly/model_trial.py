"""Tries a model before anything is kept: that it answers, and that it calls tools."""

from __future__ import annotations

import time

import anyio
from msgspec.structs import replace

from ..config.config import ProviderConfig, Settings
from ..models.base import ContextMessage, Reply, Request, TextDelta, ToolSchema
from ..types.errors import ConfigError, ModelError
from ..types.labels import OWNER
from ..types.marked_texts import mark_text
from ..types.messages import Message, Text
from ..web.setup_views import ProbeView
from .model_offers import default_model
from .models import Models, build_catalogue

PROBE_S = 120.0
_TOOL = ToolSchema(
    "weather",
    "The weather in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


async def try_model(models: Models, model: str) -> ProbeView:
    """Ask it for a sentence and a call of a tool. A failure is told in the result."""
    began = time.perf_counter()
    first = 0.0
    said = ""
    tools = False
    text = "Say hello in one short sentence, then call the tool `weather` for Paris."
    asked = Message("user", (Text(text, OWNER),))
    request = Request(
        model.partition("/")[2], (), (ContextMessage(4, asked),), (_TOOL,), max_output_tokens=300
    )
    try:
        with anyio.fail_after(PROBE_S):
            async for item in models.open(model).reply(request):
                if isinstance(item, TextDelta) and not first:
                    first = time.perf_counter() - began
                elif isinstance(item, Reply):
                    said, tools = item.message.text, bool(item.message.calls)
    except (ModelError, ConfigError) as error:
        return ProbeView(model, ok=False, problem=str(error))
    except TimeoutError:
        return ProbeView(
            model,
            ok=False,
            problem=mark_text("it did not answer within {limit_number} s").format(
                limit_number=f"{PROBE_S:.0f}"
            ),
        )
    whole = time.perf_counter() - began
    if not (said or tools):
        return ProbeView(model, ok=False, problem=mark_text("it answered with nothing"))
    return ProbeView(
        model, ok=True, said=said.strip(), tools=tools, first_s=first or whole, whole_s=whole
    )


async def try_provider(
    settings: Settings, provider: str, own: ProviderConfig, key: str, model: str
) -> ProbeView:
    """Try a model with this key and at this address, of which nothing is kept. Raises ConfigError
    for what could never be opened."""
    environment = {**settings.environment, own.key_env: key} if key else settings.environment
    config = replace(settings.config, providers={**settings.config.providers, provider: own})
    async with Models(replace(settings, environment=environment, config=config)) as models:
        models.check(model)
        return await try_model(models, model)


async def try_key(settings: Settings, variable: str, key: str) -> str:
    """What is wrong with a provider's key that is to replace another; '' for nothing, and for a
    variable that is no key of a provider's, or held nothing before."""
    if settings.environment.get(variable, key) == key:
        return ""
    for name, listed in build_catalogue(settings).providers.items():
        own = settings.config.providers.get(name, ProviderConfig())
        if variable in ((own.key_env,) if own.key_env else listed.keys):
            chosen = [
                model
                for model in settings.agent(settings.agents[0]).models
                if model.startswith(f"{name}/")
            ]
            model = next(iter(chosen), f"{name}/{default_model(listed)}")
            probe = await try_provider(settings, name, replace(own, key_env=variable), key, model)
            return probe.problem
    return ""
