-- restart_note: who goes on there has to know this too --
UPDATE restart_owed SET text = text || ? WHERE session = ? AND text <> ''
