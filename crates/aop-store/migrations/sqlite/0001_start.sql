-- The embedded store. Times are milliseconds since 1970. `project` is the row of `projects`: one file holds
-- one project today, and every key starts with it so that the same queries serve many in one database.

CREATE TABLE projects (
    project    INTEGER PRIMARY KEY,
    project_id TEXT    NOT NULL UNIQUE,
    last_seq   INTEGER NOT NULL DEFAULT 0,  -- the event counter: no gaps, because it moves with its commit
    last_at    INTEGER NOT NULL DEFAULT 0   -- the latest time ever used, so that time never runs backwards
) STRICT;

CREATE TABLE features (
    project    INTEGER NOT NULL,
    feature_id TEXT    NOT NULL,
    status     TEXT    NOT NULL,
    adhoc      INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    record     TEXT    NOT NULL,
    PRIMARY KEY (project, feature_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE specs (
    project    INTEGER NOT NULL,
    feature_id TEXT    NOT NULL,
    spec       TEXT    NOT NULL,
    PRIMARY KEY (project, feature_id)
) STRICT;

CREATE TABLE questions (
    project     INTEGER NOT NULL,
    question_id TEXT    NOT NULL,
    feature_id  TEXT    NOT NULL,
    status      TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER,
    answered_at INTEGER,
    record      TEXT    NOT NULL,
    PRIMARY KEY (project, question_id)
) STRICT;
CREATE INDEX questions_inbox    ON questions (project, status, created_at, question_id);
CREATE INDEX questions_feature  ON questions (project, feature_id, created_at, question_id);
CREATE INDEX questions_open     ON questions (project, feature_id, created_at, question_id) WHERE status = 'open';
CREATE INDEX questions_due      ON questions (project, expires_at) WHERE status = 'open' AND expires_at IS NOT NULL;
CREATE INDEX questions_answered ON questions (project, feature_id, answered_at) WHERE status = 'answered';

CREATE TABLE events (
    project    INTEGER NOT NULL,
    seq        INTEGER NOT NULL,
    feature_id TEXT    NOT NULL,
    event      TEXT    NOT NULL,
    PRIMARY KEY (project, seq)
) STRICT, WITHOUT ROWID;

-- The events of each feature, in words and side by side: the decision log of a long history is one straight
-- read without parsing, and this is the way from a feature to its events.
CREATE TABLE log (
    project     INTEGER NOT NULL,
    feature_id  TEXT    NOT NULL,
    seq         INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    question_id TEXT,
    line        TEXT    NOT NULL,
    PRIMARY KEY (project, feature_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE operations (
    project      INTEGER NOT NULL,
    operation_id TEXT    NOT NULL,
    digest       TEXT    NOT NULL,
    envelope     TEXT    NOT NULL,
    PRIMARY KEY (project, operation_id)
) STRICT, WITHOUT ROWID;

-- Secret answers stand here and nowhere else, and are erased once the asking engine has them.
CREATE TABLE secrets (
    project     INTEGER NOT NULL,
    question_id TEXT    NOT NULL,
    feature_id  TEXT    NOT NULL,
    answer      TEXT    NOT NULL,
    PRIMARY KEY (project, question_id)
) STRICT;

-- A lease belongs to its holder until it expires; the epoch grows with every change of holder and fences
-- off whatever an earlier holder still tries to do.
CREATE TABLE leases (
    project    INTEGER NOT NULL,
    name       TEXT    NOT NULL,
    holder     TEXT    NOT NULL,
    epoch      INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (project, name)
) STRICT, WITHOUT ROWID;

-- One row per thing that may be done once: a turn of a feature, the delivery of an answer.
CREATE TABLE claims (
    project    INTEGER NOT NULL,
    subject    TEXT    NOT NULL,
    holder     TEXT    NOT NULL,
    epoch      INTEGER NOT NULL,
    state      TEXT    NOT NULL CHECK (state IN ('claimed', 'spawned', 'delivered')),
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (project, subject)
) STRICT, WITHOUT ROWID;

-- Small documents beside the questions: engine sessions, runs, notes, results, tokens.
CREATE TABLE documents (
    project INTEGER NOT NULL,
    shelf   TEXT    NOT NULL,
    key     TEXT    NOT NULL,
    value   TEXT    NOT NULL,
    PRIMARY KEY (project, shelf, key)
) STRICT, WITHOUT ROWID;
