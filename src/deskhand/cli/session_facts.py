"""What the status line says of a conversation: its model, how full its context is, what it has
cost, and how free the agent is."""

from __future__ import annotations

from ..agent.agent import Agent, with_options
from ..assembly.models import build_catalogue
from ..budgets.prices import total_usd
from ..config.config import Settings
from ..store.base import Used
from ..types.events import AskedAside, Compacted, ModelReplied, OptionsSet, Recorded
from ..types.limits import Limits
from ..types.marked_texts import mark_text
from ..types.messages import Usage
from ..types.options import SessionOptions
from .plain import escape_control, shorten_line

MAX_MODEL_CELLS = 28


class SessionFacts:
    """Folds the events of one session."""

    def __init__(self) -> None:
        self.options = SessionOptions()
        self._context_tokens = 0
        self._replied = ""
        self._used: dict[str, Usage] = {}
        self._cost = ""

    def see(self, recorded: Recorded, settings: Settings) -> None:
        """Take in the next event."""
        match recorded.event:
            case ModelReplied(model=model, usage=usage):
                self._replied = model
                self._context_tokens = usage.input_tokens + usage.output_tokens
                self._spend(model, usage, settings)
            case AskedAside(model=model, usage=usage):
                self._spend(model, usage, settings)
            case OptionsSet(options=options):
                self.options = self.options.merge(options)
                if options.model is not None:
                    self._replied = ""
            case Compacted(ledger=ledger):
                self._context_tokens = ledger.context_tokens
                self.options = ledger.options
            case _:
                pass

    def _spend(self, model: str, usage: Usage, settings: Settings) -> None:
        self._used[model] = self._used.get(model, Usage()) + usage
        self._cost = _format_cost(self._used, settings)

    def list_facts(self, agent: Agent, settings: Settings) -> dict[str, str]:
        """What there is to say, by name; '' for what nobody knows."""
        held = with_options(agent, self.options)
        chosen = next(iter(held.models), "")
        model = escape_control(self._replied or chosen).rpartition("/")[2]
        return {
            "model": shorten_line(model, MAX_MODEL_CELLS),
            "effort": "" if held.thinking == "off" else held.thinking,
            "context": _format_context(self._context_tokens, held.limits),
            "cost": self._cost,
            "mode": self._describe_mode(agent, settings),
        }

    def _describe_mode(self, agent: Agent, settings: Settings) -> str:
        if self.options.plan_mode:
            return mark_text("plan mode")
        if self.options.approval:
            return mark_text("asks before each tool")
        return settings.permission_mode(agent.name)


def _format_context(tokens: int, limits: Limits) -> str:
    """How much of the window of the model is used; of one that nobody knows, how many tokens."""
    if not tokens:
        return ""
    if limits.guessed:
        return mark_text("context {count_number} tokens").format(count_number=f"{tokens:,}")
    share = 100 * tokens / (limits.model_window or limits.window)
    return mark_text("context {share_number}%").format(share_number=max(1, min(round(share), 100)))


def _format_cost(used: dict[str, Usage], settings: Settings) -> str:
    """What the calls cost; '' where they are free, or no price is known."""
    rows = [
        Used(
            session="",
            title="",
            model=model,
            day=0,
            calls=0,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=usage.cached_tokens,
            cache_write_tokens=usage.cache_write_tokens,
        )
        for model, usage in used.items()
    ]
    usd, is_all = total_usd(rows, build_catalogue(settings))
    if not usd:
        return ""
    amount = "<$0.01" if usd < 0.01 else f"${usd:,.2f}"
    return amount if is_all else f"{amount}+"
