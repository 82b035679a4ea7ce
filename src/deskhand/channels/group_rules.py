"""What holds in one group, where several people read: whether the bot answers there, and whom."""

from __future__ import annotations

from ..types.identity import Deletion, Inbound
from .settings import ChannelConfig, GroupRule


class GroupRules:
    """The rules of one channel: `groups` for all of its groups, `group_rules` for single ones."""

    def __init__(self, config: ChannelConfig) -> None:
        self._usual = config.groups
        self._rules = config.group_rules

    def reads_everything(self, group: str) -> bool:
        """Whether what is said in this group need not be meant for the bot. `group` is the chat of
        its addresses."""
        return self._answers_in(group) == "all"

    def reads_everything_somewhere(self) -> bool:
        """Whether there is such a group."""
        answers = (self._usual, *(rule.answers for rule in self._rules.values()))
        return "all" in answers

    def admits(self, inbound: Inbound) -> bool:
        """Whether this may be heard, as far as these rules go. Who may write at all is another
        question."""
        if not inbound.address.group:
            return True
        group = inbound.address.chat
        if self._answers_in(group) == "none":
            return False
        if isinstance(inbound.body, Deletion):
            return True  # of what was heard; a platform may not say whose it was
        allowed = self._rules.get(group, GroupRule()).allow_from
        return not allowed or inbound.sender in map(str, allowed)

    def _answers_in(self, group: str) -> str:
        return self._rules.get(group, GroupRule()).answers or self._usual
