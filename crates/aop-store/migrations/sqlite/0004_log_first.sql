-- What a caller waits for is one row more at the end of the log. The other tables follow a little later, many changes
-- at a time: they hold what the log says up to `settled`.
ALTER TABLE projects ADD COLUMN settled INTEGER NOT NULL DEFAULT 0;
UPDATE projects SET settled = (SELECT ifnull(max(seq), 0) FROM events);

-- The last event of an operation carries what its caller was told.
ALTER TABLE events ADD COLUMN operation_id TEXT;
ALTER TABLE events ADD COLUMN digest TEXT;
ALTER TABLE events ADD COLUMN envelope TEXT;

-- Where that event is; an operation without one has its own words here.
CREATE TABLE ledger (
    project      INTEGER NOT NULL,
    operation_id TEXT    NOT NULL,
    seq          INTEGER,
    digest       TEXT,
    envelope     TEXT,
    PRIMARY KEY (project, operation_id)
) STRICT, WITHOUT ROWID;
INSERT INTO ledger SELECT project, operation_id, NULL, digest, envelope FROM operations;
DROP TABLE operations;

-- A process of an earlier version would write to the tables at once, and read there what is not there yet. Whatever it
-- does with questions, it asks for this column first, and does not find it.
ALTER TABLE projects RENAME COLUMN last_at TO used_at;
