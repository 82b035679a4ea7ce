-- past_of_place: the conversations of an agent at one place, its threads included --
SELECT session FROM session WHERE agent = ?1 AND (session = ?2 OR substr(session, 1, length(?2) + 1) = ?2 || ':')
ORDER BY last_at DESC LIMIT ?3
