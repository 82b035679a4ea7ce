"""Proposed skills for the page and the API: it implements `web.ports.ProposalsBackend`."""

from __future__ import annotations

from contextlib import suppress

from ...assembly.host import Host
from ...tools.documents.invisible import written_out
from ...types.errors import ConfigError, Refused, ToolError
from ...types.identity import Principal
from ...types.messages import Usage
from ...web.names import format_session_name
from ...web.proposal_views import FindingView, ProposalDetail, ProposalView, ScoreView
from .review import render_verdict
from .store import Proposals, Row, Score


class ProposalsApi:
    """For owners alone: what is proposed comes from conversations of all."""

    def __init__(self, ground: Host, proposals: Proposals) -> None:
        self._ground = ground
        self._proposals = proposals

    async def list_proposals(self, principal: Principal, every: bool) -> list[ProposalView]:
        _require_owner(principal)
        return [
            self._make_view(principal, row)
            for row in await self._proposals.list_proposals(every=every)
        ]

    async def get_proposal(self, principal: Principal, id_: int) -> ProposalDetail:
        _require_owner(principal)
        row = await self._proposals.get(id_)
        findings = row.findings
        if row.state == "proposed":  # by what is known now, as at a yes
            with suppress(ConfigError):
                findings = await self._proposals.check(row)
        uses = await self._ground.store.query("skill_uses", (row.id,))
        redact = self._ground.redact
        spent = row.card.spent if row.card is not None else Usage()
        return ProposalDetail(
            self._make_view(principal, row),
            written_out(redact(row.body)),
            row.file,
            [FindingView(each.severity, each.words, redact(each.excerpt)) for each in findings],
            [_make_score_view(each) for each in row.card.scores] if row.card is not None else [],
            spent.input_tokens + spent.output_tokens,
            row.decided_by,
            row.decided_at,
            len(uses),
            sum(use[3] for use in uses),
        )

    async def accept(self, principal: Principal, id_: int, untrusted: bool) -> ProposalDetail:
        try:
            await self._proposals.accept(id_, principal, untrusted=untrusted)
        except ToolError as error:
            raise Refused(str(error)) from error
        return await self.get_proposal(principal, id_)

    async def reject(self, principal: Principal, id_: int, why: str) -> ProposalDetail:
        await self._proposals.reject(id_, principal, why)
        return await self.get_proposal(principal, id_)

    async def revert(self, principal: Principal, id_: int) -> ProposalDetail:
        try:
            await self._proposals.revert(id_, principal)
        except ToolError as error:
            raise Refused(str(error)) from error
        return await self.get_proposal(principal, id_)

    def _make_view(self, principal: Principal, row: Row) -> ProposalView:
        redact = self._ground.redact
        return ProposalView(
            row.id,
            row.name,
            written_out(redact(row.description)),
            row.agent,
            row.state,
            (row.label.source or "something from outside") if row.untrusted else "",
            render_verdict(row.card) if row.card is not None else "",
            format_session_name(row.session, principal, self._ground.settings().agents[0]),
            row.at,
            redact(row.why),
            list(row.label.by),
        )


def _require_owner(principal: Principal) -> None:
    if "owner" not in principal.roles:
        raise Refused(
            "only an owner may see which skills are proposed: they come from conversations of all"
        )


def _make_score_view(score: Score) -> ScoreView:
    then = score.without
    now = score.with_it
    sides = (now.calls, then.calls, now.tokens, then.tokens)
    return ScoreView(score.asked, now.solved, score.read, *sides, score.unknown)
