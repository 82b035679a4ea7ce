-- In which language somebody reads what Deskhand itself says (users/reader_languages.py): the code that they `chose`, and the one that
-- their chat program has `reported` last; '' for none.
CREATE TABLE person_language(
  person TEXT PRIMARY KEY,
  chosen TEXT NOT NULL DEFAULT '',
  reported TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;
