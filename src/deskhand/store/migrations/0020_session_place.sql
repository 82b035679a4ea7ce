-- Where people have put a conversation in the list.
ALTER TABLE session ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN folder TEXT NOT NULL DEFAULT '';
ALTER TABLE session ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
