-- proposal_add: once; and nothing of a name that waits, was refused by a person or was taken back, and not without end --
INSERT INTO proposal(key, agent, name, description, body, session, n, label, writer, at, state, findings)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12
WHERE NOT EXISTS(
  SELECT 1 FROM proposal
  WHERE state IN ('proposed', 'accepted', 'rejected', 'reverted', 'kept') AND agent = ?2 AND name = ?3
)
AND (SELECT count(*) FROM proposal WHERE state = ?11) < 50
ON CONFLICT DO NOTHING

-- proposal_list: those that wait, or all; the latest first --
SELECT id, agent, name, description, body, session, n, label, writer, at, state, findings, card, decided_by, decided_at,
why, turns_before, bad_before
FROM proposal WHERE ?1 OR state = 'proposed' ORDER BY id DESC LIMIT 200

-- proposal_get --
SELECT id, agent, name, description, body, session, n, label, writer, at, state, findings, card, decided_by, decided_at,
why, turns_before, bad_before
FROM proposal WHERE id = ?

-- proposal_taken: those that a person took, whose skills are watched --
SELECT id, agent, name, description, body, session, n, label, writer, at, state, findings, card, decided_by, decided_at,
why, turns_before, bad_before
FROM proposal WHERE state = 'accepted' ORDER BY id

-- proposal_decide: in the state that it was seen in --
UPDATE proposal SET state = ?2, decided_by = ?3, decided_at = ?4, why = ?5 WHERE id = ?1 AND state = ?6

-- proposal_moved: those whose change was undone by hand, or put back --
SELECT proposal.id FROM proposal JOIN effect ON effect.key = 'skill:' || proposal.id
WHERE (state = 'accepted' AND undone_at IS NOT NULL) OR (state = 'reverted' AND undone_at IS NULL)

-- proposal_undone --
UPDATE proposal SET state = 'reverted', why = 'it was undone' WHERE state = 'accepted' AND EXISTS(
  SELECT 1 FROM effect WHERE effect.key = 'skill:' || proposal.id AND undone_at IS NOT NULL
)

-- proposal_redone: whoever puts it back wants it as it is --
UPDATE proposal SET state = 'kept', why = 'it was put back' WHERE state = 'reverted' AND EXISTS(
  SELECT 1 FROM effect WHERE effect.key = 'skill:' || proposal.id AND undone_at IS NULL
)

-- proposal_before --
UPDATE proposal SET turns_before = ?2, bad_before = ?3 WHERE id = ?1

-- proposal_card --
UPDATE proposal SET card = ?2 WHERE id = ?1 AND state = 'proposed'

-- proposal_erased: those of conversations that are erased, but for what a person took --
SELECT id FROM proposal WHERE state <> 'accepted' AND EXISTS(
  SELECT 1 FROM event WHERE event.session = proposal.session AND event.n = proposal.n AND event.body IS NULL
)

-- proposal_forget --
DELETE FROM proposal WHERE state <> 'accepted' AND EXISTS(
  SELECT 1 FROM event WHERE event.session = proposal.session AND event.n = proposal.n AND event.body IS NULL
)

-- skill_use_add --
INSERT INTO skill_use(proposal, session, n, at, bad, why) VALUES(?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING

-- skill_use_undone: a person took these turns back --
UPDATE skill_use SET bad = TRUE, why = 'it was taken back' WHERE session = ?1 AND n > ?2 AND NOT bad

-- skill_uses: the latest first --
SELECT session, n, at, bad, why FROM skill_use WHERE proposal = ? ORDER BY at DESC, n DESC LIMIT 30

-- approved_file_accepted: the folder of a skill, where it was just taken in --
INSERT INTO approved_file(path, digest, by, at)
SELECT ?1, ?2, ?3, ?4 FROM proposal WHERE id = ?5 AND state = 'accepted' AND decided_by = ?3
ON CONFLICT(path) DO UPDATE SET digest = excluded.digest, by = excluded.by, at = excluded.at
