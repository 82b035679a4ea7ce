-- Lists come in pages. A page of conversations begins behind the last one that was shown; what reaches back in a log
-- (an undo, an edit, a reaction) is found without reading all that was said since.
CREATE INDEX session_latest ON session(last_at, session);
CREATE INDEX event_amends ON event(session, n) WHERE kind IN ('undone', 'message_edited', 'reacted');
