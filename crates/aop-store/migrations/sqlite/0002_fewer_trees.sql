-- What a question costs is how many trees its commit touches: each is a page more in the log of the file.

-- The log of events only ever grows at its end, which is cheapest by row number.
CREATE TABLE appended (
    seq        INTEGER PRIMARY KEY,
    project    INTEGER NOT NULL,
    feature_id TEXT    NOT NULL,
    event      TEXT    NOT NULL
) STRICT;
INSERT INTO appended SELECT seq, project, feature_id, event FROM events ORDER BY seq;
DROP TABLE events;
ALTER TABLE appended RENAME TO events;

-- The open questions of a feature stand in its row, which every change of them writes anyway: their ids, a space
-- between two. There is no default: a process of the version before, which knows nothing of them, can write no row.
CREATE TABLE listed (
    project    INTEGER NOT NULL,
    feature_id TEXT    NOT NULL,
    status     TEXT    NOT NULL,
    adhoc      INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    record     TEXT    NOT NULL,
    open       TEXT    NOT NULL,
    PRIMARY KEY (project, feature_id)
) STRICT, WITHOUT ROWID;
INSERT INTO listed SELECT project, feature_id, status, adhoc, version, record, (
    SELECT ifnull(group_concat(question_id, ' '), '') FROM (
        SELECT question_id FROM questions q
        WHERE q.project = f.project AND q.feature_id = f.feature_id AND q.status = 'open'
        ORDER BY question_id)) FROM features f;
DROP TABLE features;
ALTER TABLE listed RENAME TO features;
DROP INDEX questions_open;
