-- Whether a link shows the files of its conversation too (web/shared_files.py).
ALTER TABLE share ADD COLUMN files INTEGER NOT NULL DEFAULT 0;
