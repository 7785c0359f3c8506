-- One database for many projects. Times are milliseconds since 1970. Every key starts with `project`, the row of
-- `projects`, and every query names it: a project cannot reach another one's rows.
--
-- Texts that are compared or sorted are compared byte by byte (COLLATE "C"), as in the embedded store, whatever
-- the language of the database.

CREATE TABLE projects (
    project    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id text   COLLATE "C" NOT NULL UNIQUE,
    last_seq   bigint NOT NULL DEFAULT 0,  -- the event counter: no gaps, because it moves with its commit
    last_at    bigint NOT NULL DEFAULT 0   -- the latest time ever used, so that time never runs backwards
) WITH (fillfactor = 50);                  -- one row that is always being written: room for it beside itself

CREATE TABLE features (
    project    bigint  NOT NULL,
    feature_id text    COLLATE "C" NOT NULL,
    status     text    NOT NULL,
    adhoc      boolean NOT NULL,
    version    bigint  NOT NULL,
    record     text    NOT NULL,
    PRIMARY KEY (project, feature_id)
) WITH (fillfactor = 80);

-- Bytes, because a text of PostgreSQL cannot hold every character that a specification may.
CREATE TABLE specs (
    project    bigint NOT NULL,
    feature_id text   COLLATE "C" NOT NULL,
    spec       bytea  NOT NULL,
    PRIMARY KEY (project, feature_id)
);

CREATE TABLE questions (
    project     bigint NOT NULL,
    question_id text   COLLATE "C" NOT NULL,
    feature_id  text   COLLATE "C" NOT NULL,
    status      text   COLLATE "C" NOT NULL,
    created_at  bigint NOT NULL,
    expires_at  bigint,
    answered_at bigint,
    record      text   NOT NULL,
    PRIMARY KEY (project, question_id)
);
CREATE INDEX questions_inbox    ON questions (project, status, created_at, question_id);
CREATE INDEX questions_feature  ON questions (project, feature_id, status, created_at, question_id);
CREATE INDEX questions_urgent   ON questions (project, expires_at, created_at, question_id) WHERE status = 'open';
CREATE INDEX questions_answered ON questions (project, feature_id, answered_at, question_id) WHERE status = 'answered';

-- The log, each event with its line in words: the decision log of a long history is read without parsing.
CREATE TABLE events (
    project     bigint NOT NULL,
    seq         bigint NOT NULL,
    feature_id  text   COLLATE "C" NOT NULL,
    at          bigint NOT NULL,
    question_id text   COLLATE "C",
    line        text   NOT NULL,
    event       text   NOT NULL,
    PRIMARY KEY (project, seq)
);
CREATE INDEX events_feature ON events (project, feature_id, seq);

CREATE TABLE operations (
    project      bigint NOT NULL,
    operation_id text   COLLATE "C" NOT NULL,
    digest       text   NOT NULL,
    envelope     text   NOT NULL,
    PRIMARY KEY (project, operation_id)
);

-- Secret answers stand here and nowhere else, and are erased once the asking engine has them.
CREATE TABLE secrets (
    project     bigint NOT NULL,
    question_id text   COLLATE "C" NOT NULL,
    feature_id  text   COLLATE "C" NOT NULL,
    answer      text   NOT NULL,
    PRIMARY KEY (project, question_id)
);

-- A lease belongs to its holder until it expires; the epoch grows with every change of holder and fences
-- off whatever an earlier holder still tries to do.
CREATE TABLE leases (
    project    bigint NOT NULL,
    name       text   COLLATE "C" NOT NULL,
    holder     text   NOT NULL,
    epoch      bigint NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (project, name)
) WITH (fillfactor = 50);

-- One row per thing that may be done once: a turn of a feature, the delivery of an answer.
CREATE TABLE claims (
    project    bigint NOT NULL,
    subject    text   COLLATE "C" NOT NULL,
    holder     text   NOT NULL,
    epoch      bigint NOT NULL,
    state      text   NOT NULL CHECK (state IN ('claimed', 'spawned', 'delivered')),
    updated_at bigint NOT NULL,
    PRIMARY KEY (project, subject)
) WITH (fillfactor = 80);

-- Small documents beside the questions: engine sessions, runs, notes, results, tokens.
CREATE TABLE documents (
    project bigint NOT NULL,
    shelf   text   COLLATE "C" NOT NULL,
    key     text   COLLATE "C" NOT NULL,
    value   text   NOT NULL,
    stamp   text   COLLATE "C",            -- of the call that wrote it, by which a call finds what became of itself
    PRIMARY KEY (project, shelf, key)
) WITH (fillfactor = 80);
