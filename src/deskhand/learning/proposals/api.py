"""Proposed skills for the page and the API: it implements `web.ports.ProposalsBackend`."""

from __future__ import annotations

from contextlib import suppress

from ...assembly.host import Host
from ...tools.documents.invisible_characters import escape_invisible
from ...types.errors import ConfigError, Refused, ToolError
from ...types.identity import Principal
from ...types.marked_texts import mark_text
from ...types.messages import Usage
from ...web.names import format_session_name
from ...web.proposal_views import FindingView, ProposalDetail, ProposalView, ScoreView
from . import queries
from .queries import Score, StoredProposal
from .review import render_verdict
from .store import Proposals


class ProposalsApi:
    """For owners only: proposals come from the conversations of everybody."""

    def __init__(self, ground: Host, proposals: Proposals) -> None:
        self._ground = ground
        self._proposals = proposals

    async def list_proposals(self, principal: Principal, every: bool) -> list[ProposalView]:
        _require_owner(principal)
        proposals = await self._proposals.list_proposals(every=every)
        return [self._make_view(principal, each) for each in proposals]

    async def get_proposal(self, principal: Principal, id_: int) -> ProposalDetail:
        _require_owner(principal)
        proposal = await self._proposals.get(id_)
        findings = proposal.findings
        if proposal.state == "proposed":  # scanned as it will be when it is accepted
            with suppress(ConfigError):
                findings = await self._proposals.check(proposal)
        uses = await queries.skill_uses(self._ground.store, id_)
        redact = self._ground.redact
        card = proposal.card
        spent = card.spent if card is not None else Usage()
        return ProposalDetail(
            proposal=self._make_view(principal, proposal),
            body=escape_invisible(redact(proposal.body)),
            file=proposal.file,
            findings=[
                FindingView(each.severity, each.words, redact(each.excerpt)) for each in findings
            ],
            scores=[_make_score_view(each) for each in card.scores] if card is not None else [],
            spent=spent.input_tokens + spent.output_tokens,
            decided_by=proposal.decided_by,
            decided_at=proposal.decided_at,
            uses=len(uses),
            bad_uses=sum(use.bad for use in uses),
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

    def _make_view(self, principal: Principal, proposal: StoredProposal) -> ProposalView:
        redact = self._ground.redact
        source = proposal.label.source or "something from outside"
        first_agent = self._ground.settings().agents[0]
        return ProposalView(
            id=proposal.id,
            name=proposal.name,
            description=escape_invisible(redact(proposal.description)),
            agent=proposal.agent,
            state=proposal.state,
            source=source if proposal.untrusted else "",
            verdict=render_verdict(proposal.card) if proposal.card is not None else "",
            conversation=format_session_name(proposal.session, principal, first_agent),
            at=proposal.at,
            why=redact(proposal.why),
            by=list(proposal.label.by),
        )


def _require_owner(principal: Principal) -> None:
    if "owner" not in principal.roles:
        raise Refused(
            mark_text(
                "only an owner can see proposed skills: they come from the conversations "
                "of everybody"
            )
        )


def _make_score_view(score: Score) -> ScoreView:
    return ScoreView(
        asked=score.asked,
        solved=score.with_it.solved,
        read=score.read,
        calls=score.with_it.calls,
        calls_before=score.without.calls,
        tokens=score.with_it.tokens,
        tokens_before=score.without.tokens,
        unknown=score.unknown,
    )
