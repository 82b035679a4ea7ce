-- Whether a link shows the files of its conversation too (web/shared_files.py).
ALTER TABLE share ADD COLUMN files BOOLEAN NOT NULL DEFAULT FALSE;
