-- Three trees less for a commit. Each event names the one before it of the same feature, and its line in words stands
-- beside it: there is no list of a feature's events. The last of them stands in the row of the feature, which every
-- change writes anyway. The counter is the number of the last event, and recent answers are found from there.
CREATE TABLE chained (
    seq         INTEGER PRIMARY KEY,
    project     INTEGER NOT NULL,
    feature_id  TEXT    NOT NULL,
    previous    INTEGER,
    at          INTEGER NOT NULL,
    question_id TEXT,
    line        TEXT    NOT NULL,
    event       TEXT    NOT NULL
) STRICT;
INSERT INTO chained
    SELECT e.seq, e.project, e.feature_id, lag(e.seq) OVER (PARTITION BY e.feature_id ORDER BY e.seq),
        l.at, l.question_id, l.line, e.event
    FROM events e LEFT JOIN log l ON l.project = e.project AND l.feature_id = e.feature_id AND l.seq = e.seq
    ORDER BY e.seq;

-- No default here either: a process of an earlier version can write no row.
CREATE TABLE ended (
    project    INTEGER NOT NULL,
    feature_id TEXT    NOT NULL,
    status     TEXT    NOT NULL,
    adhoc      INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    record     TEXT    NOT NULL,
    open       TEXT    NOT NULL,
    last       INTEGER NOT NULL,
    PRIMARY KEY (project, feature_id)
) STRICT, WITHOUT ROWID;
INSERT INTO ended SELECT project, feature_id, status, adhoc, version, record, open, (
    SELECT max(seq) FROM log l WHERE l.project = f.project AND l.feature_id = f.feature_id) FROM features f;

DROP TABLE log;
DROP TABLE events;
DROP TABLE features;
ALTER TABLE chained RENAME TO events;
ALTER TABLE ended RENAME TO features;
DROP INDEX questions_answered;

-- `last_at` is written by commits whose last event does not tell the time: those without one, and what was overdue.
ALTER TABLE projects DROP COLUMN last_seq;
