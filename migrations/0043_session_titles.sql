-- The game master's title of a session.
ALTER TABLE sessions ADD COLUMN title TEXT NOT NULL DEFAULT '';
