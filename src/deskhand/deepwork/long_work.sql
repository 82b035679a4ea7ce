-- long_work_of: whether it is in deep work, and whether it has a goal --
SELECT deep, goal FROM long_work WHERE session = ?

-- long_work_all: the conversations that may have to go on by themselves --
SELECT session FROM long_work WHERE deep OR goal ORDER BY session
