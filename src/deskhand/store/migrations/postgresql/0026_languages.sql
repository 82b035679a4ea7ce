-- In which language somebody reads what Deskhand itself says (users/reader_languages.py): the code that they `chose`, and the one that
-- their chat program has `reported` last; '' for none.
CREATE TABLE person_language(
  person TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  chosen TEXT COLLATE "C" NOT NULL DEFAULT '',
  reported TEXT COLLATE "C" NOT NULL DEFAULT ''
);
