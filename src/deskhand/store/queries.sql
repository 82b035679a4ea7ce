-- inbox_insert: at most one row for one event of one platform; with an n it is taken in at once --
INSERT INTO inbox(channel, account, external_id, session, body, n) VALUES(?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING RETURNING id

-- inbox_find --
SELECT id, session, n FROM inbox WHERE channel = ? AND account = ? AND external_id = ?

-- inbox_said: where a message went, and what it was --
SELECT session, body FROM inbox WHERE channel = ? AND account = ? AND external_id = ?

-- inbox_session: for which session a row is --
SELECT session FROM inbox WHERE id = ?

-- inbox_waiting: in order of arrival --
SELECT id, body FROM inbox WHERE session = ? AND n IS NULL ORDER BY id

-- inbox_count: no more than one above the limit is counted --
SELECT count(*) FROM (SELECT 1 FROM inbox WHERE session = ? AND n IS NULL LIMIT ?) AS waiting

-- inbox_after: rows that any process accepted after this id --
SELECT id, session, body FROM inbox WHERE id > ? ORDER BY id

-- inbox_last --
SELECT coalesce(max(id), 0) FROM inbox

-- inbox_leave: it was not taken in at once after all --
UPDATE inbox SET n = NULL WHERE id = ?

-- inbox_admit --
UPDATE inbox SET n = ? WHERE id = ? AND n IS NULL

-- event_head: the number and hash of the session's last event --
SELECT n, hash FROM event WHERE session = ? ORDER BY n DESC LIMIT 1

-- event_insert --
INSERT INTO event(session, n, at, kind, body, salt, hash) VALUES(?, ?, ?, ?, ?, ?, ?)

-- event_insert on postgresql --
INSERT INTO event(session, n, at, kind, body, salt, hash) VALUES($1, $2, $3, $4, $5, $6, $7) RETURNING seq

-- event_read --
SELECT seq, session, n, at, kind, body FROM event WHERE session = ? AND n > ? ORDER BY n LIMIT ?

-- event_since: of the sessions that this principal takes part in; an owner sees all --
SELECT seq, session, n, at, kind, body FROM event
WHERE seq > ?1 AND (?2 OR session IN (SELECT session FROM session_member WHERE principal = ?3)) ORDER BY seq LIMIT ?4

-- event_latest: before this number --
SELECT seq, session, n, at, kind, body FROM event
WHERE seq < ?4 AND kind IN (SELECT value FROM json_each(?1))
AND (?2 OR session IN (SELECT session FROM session_member WHERE principal = ?3)) ORDER BY seq DESC LIMIT ?5

-- event_options_set --
SELECT body FROM event WHERE session = ? AND kind = 'options_set' ORDER BY n

-- event_turn_opening: the message that opened the turn which ended with this event --
SELECT at, body FROM event WHERE session = ?1 AND kind = 'message_received' AND n < ?2 AND n > coalesce(
  (SELECT n FROM event WHERE session = ?1 AND kind = 'turn_ended' AND n < ?2 ORDER BY n DESC LIMIT 1), 0)
ORDER BY n LIMIT 1

-- event_last_reply --
SELECT body FROM event WHERE session = ? AND kind = 'model_replied' AND n < ? ORDER BY n DESC LIMIT 1

-- usage_members: who takes part in conversations that have used anything from that day on --
SELECT session, principal FROM session_member WHERE session IN (SELECT session FROM usage WHERE day >= ?)
ORDER BY session, principal

-- inbox_seen_get --
SELECT seq FROM inbox_seen WHERE person = ?

-- inbox_seen_set: it never goes back --
INSERT INTO inbox_seen(person, seq) VALUES(?, ?)
ON CONFLICT(person) DO UPDATE SET seq = excluded.seq WHERE excluded.seq > inbox_seen.seq

-- inbox_seen_drop --
DELETE FROM inbox_seen WHERE person = ?

-- event_amends: what reaches back to events before it; the index event_amends holds these kinds alone --
SELECT seq, session, n, at, kind, body FROM event
WHERE session = ? AND kind IN ('undone', 'message_edited', 'reacted') AND n > ? ORDER BY n LIMIT ?

-- event_last_seq --
SELECT coalesce(max(seq), 0) FROM event

-- event_history: what a fold needs of each event; what was erased is told as the event `erased` --
SELECT n, at, coalesce(body, json_object('type', 'erased', 'of', kind)) FROM event WHERE session = ? AND n > ? ORDER BY n

-- event_history on postgresql --
SELECT n, at, coalesce(body, to_utf8(json_build_object('type', 'erased', 'of', kind)::text)) FROM event
WHERE session = $1 AND n > $2 ORDER BY n

-- event_last_of_kind --
SELECT coalesce(max(n), 0) FROM event WHERE session = ? AND kind = ?

-- event_chain: everything that the hash chain covers, session by session --
SELECT session, n, at, kind, body, salt, digest, hash FROM event ORDER BY session, n

-- event_of --
SELECT n, body, salt FROM event WHERE session = ? AND body IS NOT NULL AND kind <> 'erased' ORDER BY n

-- event_erase --
UPDATE event SET body = NULL, salt = NULL, digest = ? WHERE session = ? AND n = ?

-- event_all --
SELECT session, n, at, body FROM event WHERE body IS NOT NULL ORDER BY seq

-- event_heads --
SELECT session, max(n), hash FROM event GROUP BY session

-- event_heads on postgresql --
SELECT DISTINCT ON (session) session, n, hash FROM event ORDER BY session, n DESC

-- open_insert: something is owed now; a rest is over --
INSERT INTO open_session(session, wake_at) VALUES(?, NULL)
ON CONFLICT(session) DO UPDATE SET wake_at = NULL

-- open_progress: a commit forgets earlier crashes; nothing rests while something waits that came meanwhile --
INSERT INTO open_session(session, wake_at)
VALUES(?1, CASE WHEN EXISTS(SELECT 1 FROM inbox WHERE session = ?1 AND n IS NULL) THEN NULL ELSE CAST(?2 AS DOUBLE PRECISION) END)
ON CONFLICT(session) DO UPDATE SET wake_at = excluded.wake_at, attempts = 0

-- open_close: nothing is owed unless something waits --
DELETE FROM open_session WHERE session = ?1
AND NOT EXISTS(SELECT 1 FROM inbox WHERE session = ?1 AND n IS NULL)

-- open_keep: something waits, so what was to be closed is owed now --
UPDATE open_session SET wake_at = NULL, attempts = 0 WHERE session = ?

-- open_list --
SELECT session, wake_at, attempts FROM open_session ORDER BY session

-- open_crashed: count the crash for what was driven alone, else for all that was owed; what is due may have been woken --
UPDATE open_session SET attempts = attempts + 1
WHERE coalesce(wake_at, 0) <= ?2 AND CASE ?1 WHEN '' THEN attempts < 3 ELSE session = ?1 END

-- open_crashed on postgresql: not for what another worker drives --
UPDATE open_session SET attempts = attempts + 1
WHERE coalesce(wake_at, 0) <= $2 AND CASE $1 WHEN '' THEN attempts < 3 ELSE session = $1 END
AND NOT EXISTS(SELECT 1 FROM lease WHERE duty = 'agent/' || split_part(session, '/', 1))

-- run_read --
SELECT clean, alone FROM run

-- run_write --
UPDATE run SET clean = ?, alone = ?

-- dead_insert --
INSERT INTO dead_letter(session, n, at, reason) VALUES(?, ?, ?, ?)

-- dead_list: conversations that were given up, the latest first --
SELECT id, session, n, at, reason FROM dead_letter ORDER BY id DESC

-- dead_drop --
DELETE FROM dead_letter WHERE id = ?

-- outbox_insert --
INSERT INTO outbox(key, session, body, state, at, channel) VALUES(?, ?, ?, 'pending', ?, ?)

-- outbox_due: what must be sent now; not what is behind a waiting row of its place. An hour on: the clock went back --
SELECT id, session, body, state, attempts, at, sent_id, mark FROM outbox AS due INDEXED BY outbox_waiting
WHERE state IN ('pending', 'sending') AND (due_at <= ?1 OR due_at > ?1 + 3600)
AND NOT EXISTS(
  SELECT 1 FROM outbox WHERE place = due.place AND id < due.id AND state IN ('pending', 'sending')
  AND due_at > ?1 AND due_at <= ?1 + 3600
)
AND (CAST(?3 AS TEXT) IS NULL OR channel IN (SELECT value FROM json_each(?3))) ORDER BY id LIMIT ?2

-- outbox_set_sending --
UPDATE outbox SET state = 'sending', attempts = attempts + 1, mark = ? WHERE key = ? AND state IN ('pending', 'sending')

-- outbox_set_sent --
UPDATE outbox SET state = 'sent', sent_id = ? WHERE key = ? AND state = 'sending'

-- outbox_again --
UPDATE outbox SET state = ?, due_at = ?, error = ? WHERE key = ? AND state = 'sending'

-- outbox_set_failed --
UPDATE outbox SET state = 'failed', error = ? WHERE key = ? AND state IN ('pending', 'sending')

-- outbox_hold_back: all that is on its way; a person may have it sent again --
UPDATE outbox SET state = 'failed', error = ? WHERE state IN ('deferred', 'pending', 'sending')

-- outbox_said: in which conversation a message was said, by what its platform calls it --
SELECT session FROM outbox WHERE channel = ? AND sent_id = ? AND sent_id <> '' AND state = 'sent' LIMIT 1

-- outbox_unreported --
SELECT key, sent_id, mark FROM outbox WHERE session = ? AND state = 'sent' AND reported = 0 ORDER BY id

-- outbox_reported --
UPDATE outbox SET reported = 1 WHERE key = ?

-- outbox_erase --
DELETE FROM outbox WHERE session = ?

-- inbox_erase: the row stays, so that a redelivery is still recognised --
UPDATE inbox SET body = x'', n = coalesce(n, 0) WHERE session = ?

-- process_erase --
DELETE FROM process WHERE session = ?

-- subagent_erase --
DELETE FROM subagent WHERE parent = ?

-- subagent_lost: who gave it a task is told --
UPDATE subagent SET said = 'its conversation was erased', label = NULL,
  state = CASE WHEN state IN ('wanted', 'running') THEN 'error' ELSE state END
WHERE session = ?

-- teammate_lost: its conversation is gone, and so is what it knew --
DELETE FROM teammate WHERE id IN (SELECT id FROM subagent WHERE session = ?)

-- teammate_erase --
DELETE FROM teammate WHERE team = ?

-- mail_erase --
DELETE FROM mail WHERE team = ?

-- task_erase --
DELETE FROM task WHERE session = ?

-- long_work_erase --
DELETE FROM long_work WHERE session = ?

-- share_erase --
DELETE FROM share WHERE session = ?

-- long_work_deep --
INSERT INTO long_work(session, deep) VALUES(?, ?) ON CONFLICT(session) DO UPDATE SET deep = excluded.deep

-- long_work_goal --
INSERT INTO long_work(session, goal) VALUES(?, ?) ON CONFLICT(session) DO UPDATE SET goal = excluded.goal

-- session_seen: to the minute, since a page that is not written costs nothing; the end of the turn writes it anyway --
INSERT INTO session(session, agent, channel, chat, title, opened_at, last_at) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT(session) DO UPDATE
SET last_at = excluded.last_at, title = CASE session.title WHEN '' THEN excluded.title ELSE session.title END,
  over = session.over AND NOT ?8, archived = FALSE
WHERE excluded.last_at >= session.last_at + 60 OR (session.title = '' AND excluded.title <> '') OR (session.over AND ?8)
  OR session.archived

-- session_begin: without a message; one that is there stays as it is --
INSERT INTO session(session, agent, channel, chat, title, opened_at, last_at) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT DO NOTHING

-- session_over: unless a turn is open, which a command like this does not end --
UPDATE session SET over = TRUE WHERE session = ?1 AND coalesce((
  SELECT kind FROM event WHERE session = ?1 AND n < ?2 AND kind IN ('message_received', 'turn_ended')
  ORDER BY n DESC LIMIT 1
), 'turn_ended') <> 'message_received'

-- session_title_heard: of a conversation that began with a recording --
UPDATE session SET title = ?1 WHERE session = ?2 AND title = ''

-- session_title --
UPDATE session SET title = ? WHERE session = ?

-- session_place: where it is in the list; NULL leaves what is --
UPDATE session SET pinned = coalesce(?2, pinned), folder = coalesce(?3, folder), archived = coalesce(?4, archived)
WHERE session = ?1

-- session_turn --
UPDATE session SET turns = turns + 1, last_at = ? WHERE session = ?

-- session_join --
INSERT INTO session_member(session, principal) VALUES(?, ?)
ON CONFLICT DO NOTHING

-- session_leave --
DELETE FROM session_member WHERE session = ? AND principal = ?

-- session_forget --
DELETE FROM session WHERE session = ?

-- session_member_forget --
DELETE FROM session_member WHERE session = ?

-- session_of: those that this principal takes part in; an owner sees all. The latest first, behind a cursor, in a place of the list (NULL: any) --
SELECT session, agent, channel, chat, title, opened_at, last_at, turns, pinned, folder, archived FROM session
WHERE channel <> 'subagent' AND (?1 OR session IN (SELECT session FROM session_member WHERE principal = ?2))
AND (last_at, session) < (?3, ?4)
AND pinned = coalesce(?5, pinned) AND folder = coalesce(?6, folder) AND archived = coalesce(?7, archived)
ORDER BY last_at DESC, session DESC LIMIT ?8

-- branch_begin: where it goes on from, and how many turns had ended there --
INSERT INTO branch(session, origin, from_n, turns) VALUES(?1, ?2, ?3,
  (SELECT count(*) FROM event WHERE session = ?2 AND n <= ?3 AND kind = 'turn_ended'))
ON CONFLICT DO NOTHING

-- branch_erase: its own branches keep what they know of it, and are roots from now on --
DELETE FROM branch WHERE session = ?

-- branch_family: the root of this session and all below it, of those that ?3 sees, each below the nearest origin that they see --
-- Those that lead from the root to ?1 come first. `begun` is how many turns a session took along. substr() makes an empty
-- text of the same collation, as PostgreSQL wants it.
WITH RECURSIVE above(session) AS (
  SELECT session FROM session WHERE session = ?1
  UNION SELECT branch.origin FROM above JOIN branch ON branch.session = above.session
), below(session, seen, depth, begun, origin, from_n, turn) AS (
  SELECT above.session, EXISTS(SELECT 1 FROM session WHERE session.session = above.session) AND (?2 OR EXISTS(
      SELECT 1 FROM session_member AS member WHERE member.session = above.session AND member.principal = ?3)),
    0, CAST(0 AS BIGINT), substr(above.session, 1, 0), CAST(0 AS BIGINT), CAST(0 AS BIGINT)
  FROM above WHERE NOT EXISTS(SELECT 1 FROM branch WHERE branch.session = above.session)
  UNION ALL
  SELECT branch.session, EXISTS(SELECT 1 FROM session WHERE session.session = branch.session) AND (?2 OR EXISTS(
      SELECT 1 FROM session_member AS member WHERE member.session = branch.session AND member.principal = ?3)),
    below.depth + 1, below.begun + branch.turns, CASE WHEN below.seen THEN below.session ELSE below.origin END,
    CASE WHEN below.seen THEN branch.from_n ELSE below.from_n END,
    CASE WHEN below.seen THEN below.begun + branch.turns ELSE below.turn END
  FROM below JOIN branch ON branch.origin = below.session
), family AS (
  SELECT below.session, session.title, below.origin, below.from_n, below.turn, session.last_at, session.archived,
    below.session IN (SELECT session FROM above) AS leads_here, below.depth, session.opened_at
  FROM below LEFT JOIN session ON session.session = below.session WHERE below.seen
  ORDER BY leads_here DESC, below.depth, below.from_n, session.opened_at, below.session LIMIT ?4
)
SELECT session, title, origin, from_n, turn, last_at, archived, (
  SELECT said.body FROM event AS said
  WHERE said.session = family.origin AND said.n <= family.from_n AND said.kind = 'message_received'
  AND said.body IS NOT NULL AND NOT EXISTS(
    SELECT 1 FROM event AS back WHERE back.session = said.session AND back.n > said.n AND back.n <= family.from_n
    AND back.kind IN ('undone', 'message_edited', 'reacted') AND back.kind = 'undone'
    AND CAST(json_extract(CAST(back.body AS TEXT), '$.to_n') AS BIGINT) < said.n)
  ORDER BY said.n DESC LIMIT 1
), (
  SELECT said.body FROM event AS said
  WHERE said.session = family.session AND said.kind = 'message_received'
  AND said.body IS NOT NULL AND NOT EXISTS(
    SELECT 1 FROM event AS back WHERE back.session = said.session AND back.n > said.n
    AND back.kind IN ('undone', 'message_edited', 'reacted') AND back.kind = 'undone'
    AND CAST(json_extract(CAST(back.body AS TEXT), '$.to_n') AS BIGINT) < said.n)
  ORDER BY said.n LIMIT 1
)
FROM family ORDER BY leads_here DESC, depth, from_n, opened_at, session

-- session_folders: how many conversations of theirs are in each; archived ones are in '' --
SELECT place, count(*) FROM (
  SELECT CASE WHEN archived THEN '' ELSE folder END AS place FROM session
  WHERE (folder <> '' OR archived) AND channel <> 'subagent'
  AND (?1 OR session IN (SELECT session FROM session_member WHERE principal = ?2))
) AS placed GROUP BY place ORDER BY lower(place), place

-- session_titled: the same, of those whose title may hold this pattern --
SELECT session, agent, channel, chat, title, opened_at, last_at, turns, pinned, folder, archived FROM session
WHERE (?1 OR session IN (SELECT session FROM session_member WHERE principal = ?2))
AND (last_at, session) < (?3, ?4) AND lower(title) LIKE ?5 ORDER BY last_at DESC, session DESC LIMIT ?6

-- session_messages: how often people and models said something in these --
SELECT session, count(*) FROM event WHERE session IN (SELECT value FROM json_each(?))
AND kind IN ('message_received', 'model_replied') GROUP BY session

-- session_get --
SELECT session, agent, channel, chat, title, opened_at, last_at, turns, pinned, folder, archived FROM session WHERE session = ?

-- session_is_member --
SELECT EXISTS(SELECT 1 FROM session_member WHERE session = ? AND principal = ?)

-- blob_used --
INSERT INTO blob_use(digest, session, n) VALUES(?, ?, ?)
ON CONFLICT DO NOTHING

-- blob_is_used --
SELECT EXISTS(SELECT 1 FROM blob_use WHERE digest = ?1) OR EXISTS(SELECT 1 FROM effect_item WHERE blob = ?1)
  OR EXISTS(SELECT 1 FROM written WHERE blob = ?1)

-- blob_is_in: whether that session names it --
SELECT EXISTS(SELECT 1 FROM blob_use WHERE digest = ? AND session = ?)

-- blob_sent --
INSERT INTO blob_sent(digest, principal, at) VALUES(?, ?, ?)
ON CONFLICT(digest, principal) DO UPDATE SET at = excluded.at

-- blob_sent_expire: before that time --
DELETE FROM blob_sent WHERE at < ?

-- blob_is_theirs: whether ?3 has sent it, or sees a session that names it; ?2 says that they see all --
SELECT EXISTS(SELECT 1 FROM blob_sent WHERE digest = ?1 AND principal = ?3) OR EXISTS(
  SELECT 1 FROM blob_use WHERE digest = ?1
  AND (?2 OR session IN (SELECT session FROM session_member WHERE principal = ?3))
)

-- blob_forget --
DELETE FROM blob_use WHERE session = ?

-- path_grant_set --
INSERT INTO path_grant(agent, path, write, at, by) VALUES(?, ?, ?, ?, ?)
ON CONFLICT(agent, path) DO UPDATE
SET write = excluded.write, at = excluded.at, by = excluded.by, outside = FALSE

-- path_grant_outside: it may be written also by conversations that have read something from outside --
UPDATE path_grant SET outside = TRUE WHERE agent = ? AND path = ?

-- path_grant_drop --
DELETE FROM path_grant WHERE agent = ? AND path = ?

-- path_grants: of one agent --
SELECT path, write, at, by, outside FROM path_grant WHERE agent = ? ORDER BY path

-- call_grant_set --
INSERT INTO call_grant(hash, verdict, agent, tool, shown, at, by) VALUES(?, ?, ?, ?, ?, ?, ?)
ON CONFLICT(hash) DO UPDATE SET verdict = excluded.verdict, at = excluded.at, by = excluded.by

-- call_grant_get --
SELECT verdict, by, at FROM call_grant WHERE hash = ?

-- call_grant_drop --
DELETE FROM call_grant WHERE hash LIKE ? || '%'

-- effect_item_forget: of a session that is erased --
DELETE FROM effect_item WHERE effect IN (SELECT n FROM effect WHERE session = ?)

-- effect_forget --
DELETE FROM effect WHERE session = ?

-- ask_add --
INSERT INTO ask(ask_id, session, n, call_id) VALUES(?, ?, ?, ?)
ON CONFLICT(ask_id) DO UPDATE SET session = excluded.session, n = excluded.n, call_id = excluded.call_id

-- ask_answered --
DELETE FROM ask WHERE ask_id = ?

-- ask_closed --
DELETE FROM ask WHERE session = ? AND call_id = ?

-- ask_forget --
DELETE FROM ask WHERE session = ?

-- ask_session --
SELECT session FROM ask WHERE ask_id = ?

-- ask_open: what waits for a person and not for a program, the oldest first --
SELECT ask.session, coalesce(session.title, ''), event.at, event.body FROM ask
JOIN event ON event.session = ask.session AND event.n = ask.n LEFT JOIN session ON session.session = ask.session
WHERE event.body IS NOT NULL AND event.kind <> 'calls_handed_over'
AND (?1 OR ask.session IN (SELECT session FROM session_member WHERE principal = ?2)) ORDER BY event.seq

-- said_add --
INSERT INTO said(rowid, words) VALUES(?, ?)

-- said_add on postgresql --
INSERT INTO said(seq, words) VALUES($1, to_tsvector('simple', bare_words($2)))

-- said_forget --
DELETE FROM said WHERE rowid IN (SELECT seq FROM event WHERE session = ?)

-- said_forget on postgresql --
DELETE FROM said WHERE seq IN (SELECT seq FROM event WHERE session = $1)

-- said_tidy: what was deleted leaves the pages of the index --
INSERT INTO said(said) VALUES('optimize')

-- said_tidy on postgresql: vacuum does it --
SELECT 1

-- said_clear --
INSERT INTO said(said) VALUES('delete-all')

-- said_clear on postgresql --
DELETE FROM said

-- said_find: what fits best first, of equals the latest; what says who said it has ?6 in it, and not ?7 --
SELECT event.session, event.n, event.at, coalesce(session.title, ''), event.body, event.seq FROM said
JOIN event ON event.seq = said.rowid LEFT JOIN session ON session.session = event.session
LEFT JOIN event AS heard ON heard.session = event.session AND heard.n = CASE event.kind WHEN 'transcribed' THEN (
  SELECT n FROM event AS spoken WHERE spoken.session = event.session AND spoken.n < event.n
  AND spoken.kind IN ('message_received', 'question_answered') ORDER BY n DESC LIMIT 1) END
WHERE said MATCH ?3 AND event.body IS NOT NULL AND (?4 = '' OR event.session = ?4)
AND (?1 OR event.session IN (SELECT session FROM session_member WHERE principal = ?2))
AND instr(coalesce(heard.body, event.body), ?6) > 0 AND instr(coalesce(heard.body, event.body), ?7) = 0
AND event.at >= ?8 AND event.at < ?9
AND (?10 = '' OR session.agent = ?10) AND (?11 OR NOT coalesce(session.archived, FALSE))
ORDER BY said.rank, event.seq DESC LIMIT ?5

-- said_find on postgresql --
SELECT event.session, event.n, event.at, coalesce(session.title, ''), event.body, event.seq FROM said
JOIN event ON event.seq = said.seq LEFT JOIN session ON session.session = event.session
LEFT JOIN event AS heard ON heard.session = event.session AND heard.n = CASE event.kind WHEN 'transcribed' THEN (
  SELECT n FROM event AS spoken WHERE spoken.session = event.session AND spoken.n < event.n
  AND spoken.kind IN ('message_received', 'question_answered') ORDER BY n DESC LIMIT 1) END
WHERE said.words @@ match_query('simple', $3) AND event.body IS NOT NULL AND ($4 = '' OR event.session = $4)
AND ($1 OR event.session IN (SELECT session FROM session_member WHERE principal = $2))
AND instr(coalesce(heard.body, event.body), $6) > 0 AND instr(coalesce(heard.body, event.body), $7) = 0
AND event.at >= $8 AND event.at < $9
AND ($10 = '' OR session.agent = $10) AND ($11 OR NOT coalesce(session.archived, FALSE))
ORDER BY ts_rank(said.words, match_query('simple', $3), 1) DESC, event.seq DESC LIMIT $5

-- said_latest: the latest first, before this number --
SELECT event.session, event.n, event.at, coalesce(session.title, ''), event.body, event.seq FROM said
JOIN event ON event.seq = said.rowid LEFT JOIN session ON session.session = event.session
LEFT JOIN event AS heard ON heard.session = event.session AND heard.n = CASE event.kind WHEN 'transcribed' THEN (
  SELECT n FROM event AS spoken WHERE spoken.session = event.session AND spoken.n < event.n
  AND spoken.kind IN ('message_received', 'question_answered') ORDER BY n DESC LIMIT 1) END
WHERE said MATCH ?3 AND said.rowid < ?12 AND event.body IS NOT NULL AND (?4 = '' OR event.session = ?4)
AND (?1 OR event.session IN (SELECT session FROM session_member WHERE principal = ?2))
AND instr(coalesce(heard.body, event.body), ?6) > 0 AND instr(coalesce(heard.body, event.body), ?7) = 0
AND event.at >= ?8 AND event.at < ?9
AND (?10 = '' OR session.agent = ?10) AND (?11 OR NOT coalesce(session.archived, FALSE))
ORDER BY said.rowid DESC LIMIT ?5

-- said_latest on postgresql --
SELECT event.session, event.n, event.at, coalesce(session.title, ''), event.body, event.seq FROM said
JOIN event ON event.seq = said.seq LEFT JOIN session ON session.session = event.session
LEFT JOIN event AS heard ON heard.session = event.session AND heard.n = CASE event.kind WHEN 'transcribed' THEN (
  SELECT n FROM event AS spoken WHERE spoken.session = event.session AND spoken.n < event.n
  AND spoken.kind IN ('message_received', 'question_answered') ORDER BY n DESC LIMIT 1) END
WHERE said.words @@ match_query('simple', $3) AND said.seq < $12 AND event.body IS NOT NULL
AND ($4 = '' OR event.session = $4)
AND ($1 OR event.session IN (SELECT session FROM session_member WHERE principal = $2))
AND instr(coalesce(heard.body, event.body), $6) > 0 AND instr(coalesce(heard.body, event.body), $7) = 0
AND event.at >= $8 AND event.at < $9
AND ($10 = '' OR session.agent = $10) AND ($11 OR NOT coalesce(session.archived, FALSE))
ORDER BY said.seq DESC LIMIT $5

-- usage_add --
INSERT INTO usage VALUES(?, ?, ?, 1, ?, ?, ?, ?) ON CONFLICT(session, model, day) DO UPDATE SET
  calls = usage.calls + 1, input_tokens = usage.input_tokens + excluded.input_tokens,
  output_tokens = usage.output_tokens + excluded.output_tokens,
  cached_tokens = usage.cached_tokens + excluded.cached_tokens,
  cache_write_tokens = usage.cache_write_tokens + excluded.cache_write_tokens

-- usage_forget --
DELETE FROM usage WHERE session = ?

-- usage_in: what was used in these, all in all --
SELECT session, sum(input_tokens), sum(output_tokens), sum(calls) FROM usage
WHERE session IN (SELECT value FROM json_each(?)) AND (model <> '' OR input_tokens + output_tokens > 0) GROUP BY session

-- usage_totals: what each model has used, all in all --
SELECT model, sum(calls), sum(input_tokens), sum(output_tokens), sum(cached_tokens), sum(cache_write_tokens)
FROM usage WHERE model <> '' AND model NOT LIKE 'script/%' GROUP BY model ORDER BY model

-- count_all: events, conversations, those that are open, questions, and those that were given up --
SELECT (SELECT coalesce(max(seq), 0) FROM event), (SELECT count(*) FROM session),
  (SELECT count(*) FROM open_session), (SELECT count(*) FROM ask), (SELECT count(*) FROM dead_letter)

-- usage_of: from that day on, the latest first. A message that was said elsewhere has no model, and used nothing here --
SELECT usage.session, coalesce(session.title, ''), model, day * 86400, calls, input_tokens, output_tokens,
  cached_tokens, cache_write_tokens FROM usage LEFT JOIN session ON session.session = usage.session
WHERE day >= ?3 AND (model <> '' OR input_tokens + output_tokens > 0) AND (?1 OR usage.session IN (SELECT session FROM session_member WHERE principal = ?2))
ORDER BY day DESC, usage.session, model

-- looked_up_behind: whether anything is new --
SELECT (SELECT coalesce(max(seq), 0) FROM event) > seq FROM looked_up

-- looked_up_next --
SELECT seq, session, at, body FROM event WHERE seq > (SELECT seq FROM looked_up) AND body IS NOT NULL
AND kind IN ('message_received', 'history_message', 'model_replied', 'question_answered', 'asked_aside', 'transcribed')
ORDER BY seq LIMIT ?

-- looked_up_to: this event, or all there is --
UPDATE looked_up SET seq = coalesce(?1, (SELECT max(seq) FROM event), 0)

-- event_activity: the latest first --
SELECT seq, session, n, at, body FROM event WHERE body IS NOT NULL
AND (kind IN ('tool_finished', 'call_closed') OR (kind = 'model_replied' AND instr(body, x'22746f6f6c5f63616c6c22') > 0))
AND (?1 OR session IN (SELECT session FROM session_member WHERE principal = ?2)) ORDER BY seq DESC LIMIT ?3

-- event_calls_before: the latest first --
SELECT at, body FROM event WHERE session = ? AND n < ? AND kind = 'model_replied' AND body IS NOT NULL
AND instr(body, x'22746f6f6c5f63616c6c22') > 0 ORDER BY n DESC LIMIT 8

-- call_grant_drop_tool: a tool that is another one now --
DELETE FROM call_grant WHERE tool = ?

-- call_grants_of: of all people, or of one --
SELECT hash, verdict, agent, tool, shown, at, by FROM call_grant WHERE ?1 OR by = ?2 ORDER BY at

-- session_members: who takes part --
SELECT principal FROM session_member WHERE session = ?

-- session_has_members: somebody has written in it --
SELECT EXISTS(SELECT 1 FROM session_member WHERE session = ?)

-- session_count --
SELECT count(*) FROM session

-- process_stop --
UPDATE process SET stop = ? WHERE id = ? AND stop = '' AND state IN ('wanted', 'running')

-- process_list: the latest first --
SELECT id, session, agent, kind, command, name, state, at, timeout_s, started_at, ended_at, code, detail, said,
  json_extract(context, '$.label'), label
FROM process WHERE session = ? ORDER BY at DESC, id LIMIT ?

-- subagent_stop_all: whoever stops a conversation wants to hear no more of what was begun below it until then --
WITH RECURSIVE below(session) AS (
  SELECT CAST(?2 AS TEXT) UNION SELECT subagent.session FROM subagent JOIN below ON subagent.parent = below.session)
UPDATE subagent SET stop = CASE WHEN state IN ('wanted', 'running') THEN ?1 ELSE stop END, told = 1
WHERE parent IN (SELECT session FROM below) AND at <= ?3 AND (told = 0 OR state IN ('wanted', 'running'))

-- subagent_asking: of the sessions that ask a person, this one and those that work for it --
SELECT ask.session, ask.ask_id FROM ask JOIN event ON event.session = ask.session AND event.n = ask.n
WHERE event.kind <> 'calls_handed_over' AND (ask.session = ?1 OR ask.session IN (
  SELECT session FROM subagent WHERE state = 'running' AND json_extract(request, '$.root') = ?1))

-- subagent_stop_all on postgresql --
WITH RECURSIVE below(session) AS (
  SELECT CAST($2 AS TEXT) COLLATE "C"
  UNION SELECT subagent.session FROM subagent JOIN below ON subagent.parent = below.session)
UPDATE subagent SET stop = CASE WHEN state IN ('wanted', 'running') THEN $1 ELSE stop END, told = 1
WHERE parent IN (SELECT session FROM below) AND at <= $3 AND (told = 0 OR state IN ('wanted', 'running'))

-- subagent_unwanted: the call that waited for this task was interrupted --
UPDATE subagent SET stop = ?1, told = 1
WHERE CASE round WHEN 1 THEN id ELSE id || '.' || round END = ?2 AND state IN ('wanted', 'running')

-- subagent_take_back: the turn that gave this task is undone --
UPDATE subagent SET stop = CASE WHEN state IN ('wanted', 'running') THEN ?1 ELSE stop END, told = 1
WHERE id = ?2 AND round = ?3 AND (told = 0 OR state IN ('wanted', 'running'))

-- teammate_list: the members of a team, those that have shut down included --
SELECT team, name, role, id, state, at, idle_since,
  EXISTS(SELECT 1 FROM subagent WHERE subagent.id = teammate.id AND subagent.state IN ('wanted', 'running')),
  EXISTS(SELECT 1 FROM mail WHERE mail.team = teammate.team AND mail.sender = teammate.name
    AND mail.kind = 'plan_approval_request' AND mail.answer = '' AND mail.state <> 'dropped')
FROM teammate WHERE team = ? ORDER BY at, name

-- teammate_stop_work: its teammates work on for nobody --
UPDATE subagent SET stop = ?, told = 1
WHERE id IN (SELECT id FROM teammate WHERE team = ? AND at <= ?) AND state IN ('wanted', 'running')

-- teammate_gone --
UPDATE teammate SET state = 'leaving', idle_since = NULL WHERE team = ? AND name = ? AND state = 'active'

-- teammate_stop: whoever stops a conversation ends its team --
UPDATE teammate SET state = 'leaving', idle_since = NULL WHERE team = ? AND at <= ? AND state = 'active'

-- mail_stop --
UPDATE mail SET state = 'dropped' WHERE team = ? AND at <= ? AND state = 'wanted'

-- session_calls --
SELECT count(*) FROM event WHERE session = ? AND at >= ? AND kind IN ('tool_finished', 'call_closed')

-- subagent_of: its latest task --
SELECT id, round, parent, session, title, state, told, stop, at, ended_at, input_tokens, output_tokens,
  request, said, label FROM subagent
WHERE session = ? ORDER BY round DESC LIMIT 1

-- subagent_seen_by: the latest first; ?1 says that they see all --
SELECT id, round, parent, session, title, state, told, stop, at, ended_at, input_tokens, output_tokens,
  request, said, label FROM subagent
WHERE (?1 OR parent IN (SELECT session FROM session_member WHERE principal = ?2))
AND (?3 = '' OR parent = ?3) AND (?4 OR state IN ('wanted', 'running')) ORDER BY at DESC, id, round DESC LIMIT ?5

-- subagent_find --
SELECT id, round, parent, session, title, state, told, stop, at, ended_at, input_tokens, output_tokens,
  request, said, label FROM subagent
WHERE id = ? ORDER BY round

-- subagent_stop --
UPDATE subagent SET stop = ? WHERE id = ? AND stop = '' AND state IN ('wanted', 'running')

-- subagent_list: the latest first --
SELECT id, round, parent, session, title, state, told, stop, at, ended_at, input_tokens, output_tokens,
  request, said, label FROM subagent
WHERE parent = ? ORDER BY at DESC, id, round DESC LIMIT ?

-- process_seen_by: ?1 says that they see all --
SELECT id, session, agent, kind, command, name, state, at, timeout_s, started_at, ended_at, code, detail, said,
  json_extract(context, '$.label'), label
FROM process WHERE ?1 OR session IN (SELECT session FROM session_member WHERE principal = ?2)
ORDER BY at DESC, id LIMIT ?3

-- worker_join on postgresql --
INSERT INTO worker(id, name) VALUES($1, $2)

-- worker_beat on postgresql --
UPDATE worker SET beat = clock_timestamp() WHERE id = $1

-- worker_alone on postgresql --
UPDATE worker SET alone = $2 WHERE id = $1

-- worker_leave on postgresql: its leases go with it --
DELETE FROM worker WHERE id = $1

-- worker_reap on postgresql: who says nothing is gone; a crash counts for what it drove (of who leads, the next counts it) --
WITH gone AS (
  DELETE FROM worker WHERE beat < clock_timestamp() - make_interval(secs => $1)
  AND pg_postmaster_start_time() < clock_timestamp() - make_interval(secs => $1) RETURNING id, alone
), agents AS (
  SELECT substr(duty, 7) AS agent, alone FROM lease JOIN gone ON gone.id = lease.worker
  WHERE NOT EXISTS(SELECT 1 FROM lease AS other WHERE other.worker = gone.id AND other.duty = 'lead')
)
UPDATE open_session SET attempts = attempts + 1 FROM agents
WHERE split_part(session, '/', 1) = agents.agent
AND coalesce(wake_at, 0) <= extract(epoch FROM clock_timestamp())
AND CASE agents.alone WHEN '' THEN attempts < 3 ELSE session = agents.alone END

-- worker_list on postgresql: each with what it does --
SELECT worker.id, worker.name, coalesce(json_agg(duty ORDER BY duty) FILTER (WHERE duty IS NOT NULL), '[]')::text
FROM worker LEFT JOIN lease ON lease.worker = worker.id
WHERE beat > clock_timestamp() - make_interval(secs => $1) GROUP BY worker.id, worker.name ORDER BY worker.name, worker.id

-- lease_take on postgresql --
INSERT INTO lease(duty, worker) SELECT value, $2 FROM json_each($1) ON CONFLICT DO NOTHING

-- lease_give_back on postgresql --
DELETE FROM lease WHERE worker = $2 AND duty IN (SELECT value FROM json_each($1))
