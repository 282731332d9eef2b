-- The first schema. Why it looks like this:
--  * A row id is account number << 24 | sequence, so every read of a person's rows is a range of the
--    primary key: no index is needed and the owner filter cannot be left out.
--  * One counter an account (accounts.next_seq) numbers the rows of all its tables and is never reused:
--    an id names one row for ever, and an old button can never hit a new row.
--  * Times are whole microseconds of UTC.
--  * hidden_by names the /forget that hid a row; such rows are read by nothing but undo and erasure.

CREATE TABLE accounts (
    no         INTEGER PRIMARY KEY AUTOINCREMENT,
    platform   TEXT    NOT NULL,
    user_id    TEXT    NOT NULL,
    name       TEXT    NOT NULL DEFAULT '',
    language   TEXT    NOT NULL DEFAULT 'en',
    zone       TEXT    NOT NULL DEFAULT 'UTC',
    next_seq   INTEGER NOT NULL DEFAULT 1,
    created_at INTEGER NOT NULL,
    UNIQUE (platform, user_id)
) STRICT;

CREATE TABLE chats (
    no         INTEGER PRIMARY KEY AUTOINCREMENT,
    platform   TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    thread     TEXT    NOT NULL DEFAULT '',
    private    INTEGER NOT NULL,
    parent     INTEGER REFERENCES chats (no),
    created_at INTEGER NOT NULL,
    UNIQUE (platform, key, thread)
) STRICT;

CREATE TABLE sessions (
    no         INTEGER PRIMARY KEY AUTOINCREMENT,
    chat       INTEGER NOT NULL REFERENCES chats (no),
    started_at INTEGER NOT NULL,
    last_at    INTEGER NOT NULL,
    ended_at   INTEGER
) STRICT;
CREATE INDEX sessions_chat ON sessions (chat, no);

-- Distillation goes by (session, account): in a group each person's words are distilled for that person.
CREATE TABLE session_members (
    session      INTEGER NOT NULL REFERENCES sessions (no),
    account      INTEGER NOT NULL REFERENCES accounts (no),
    distilled_to INTEGER NOT NULL DEFAULT 0,
    waiting      INTEGER NOT NULL DEFAULT 1,
    attempts     INTEGER NOT NULL DEFAULT 0,
    not_before   INTEGER NOT NULL DEFAULT 0,
    failed       TEXT,
    PRIMARY KEY (session, account)
) STRICT, WITHOUT ROWID;
CREATE INDEX session_members_waiting ON session_members (account, session) WHERE waiting = 1;

CREATE TABLE journal (
    id          INTEGER PRIMARY KEY,
    chat        INTEGER NOT NULL REFERENCES chats (no),
    session     INTEGER NOT NULL REFERENCES sessions (no),
    role        TEXT    NOT NULL,
    speaker     TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    text        TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    platform_id TEXT,
    answers     INTEGER,
    tokens      INTEGER NOT NULL,
    text_hash   BLOB    NOT NULL,
    hidden_by   INTEGER
) STRICT;
CREATE INDEX journal_session ON journal (session, at);
CREATE INDEX journal_answers ON journal (answers) WHERE answers IS NOT NULL;
-- The same platform message is one line, however often it is delivered.
CREATE UNIQUE INDEX journal_platform_id ON journal (chat, platform_id, role) WHERE platform_id IS NOT NULL;

CREATE TABLE profile (
    id           INTEGER PRIMARY KEY,
    attribute    TEXT    NOT NULL,
    value        TEXT    NOT NULL,
    text         TEXT    NOT NULL,
    text_hash    BLOB    NOT NULL,
    language     TEXT    NOT NULL,
    subject      TEXT    NOT NULL,
    audience     INTEGER NOT NULL,
    source       TEXT    NOT NULL,
    confidence   REAL    NOT NULL,
    importance   REAL    NOT NULL,
    said_at      INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    confirmed_at INTEGER,
    expires_at   INTEGER,
    retired_at   INTEGER,
    successor    INTEGER,
    reason       TEXT,
    hidden_by    INTEGER
) STRICT;

CREATE TABLE timeline (
    id           INTEGER PRIMARY KEY,
    text         TEXT    NOT NULL,
    text_hash    BLOB    NOT NULL,
    language     TEXT    NOT NULL,
    start_at     INTEGER NOT NULL,
    end_at       INTEGER NOT NULL,
    precision    TEXT    NOT NULL,
    zone         TEXT    NOT NULL,
    words        TEXT    NOT NULL,
    rrule        TEXT,
    subject      TEXT    NOT NULL,
    audience     INTEGER NOT NULL,
    source       TEXT    NOT NULL,
    confidence   REAL    NOT NULL,
    importance   REAL    NOT NULL,
    said_at      INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    confirmed_at INTEGER,
    expires_at   INTEGER,
    retired_at   INTEGER,
    successor    INTEGER,
    reason       TEXT,
    hidden_by    INTEGER
) STRICT;

CREATE TABLE facts (
    id           INTEGER PRIMARY KEY,
    text         TEXT    NOT NULL,
    text_hash    BLOB    NOT NULL,
    language     TEXT    NOT NULL,
    subject      TEXT    NOT NULL,
    audience     INTEGER NOT NULL,
    source       TEXT    NOT NULL,
    confidence   REAL    NOT NULL,
    importance   REAL    NOT NULL,
    said_at      INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    confirmed_at INTEGER,
    expires_at   INTEGER,
    retired_at   INTEGER,
    successor    INTEGER,
    reason       TEXT,
    hidden_by    INTEGER
) STRICT;

-- A citation carries its own words and time, so that trimming the journal orphans nothing.
CREATE TABLE citations (
    entry   INTEGER NOT NULL,
    message INTEGER NOT NULL,
    quote   TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (entry, message)
) STRICT, WITHOUT ROWID;
CREATE INDEX citations_message ON citations (message);

CREATE TABLE models (
    no    INTEGER PRIMARY KEY AUTOINCREMENT,
    name  TEXT    NOT NULL UNIQUE,
    width INTEGER NOT NULL
) STRICT;

-- int16 with one scale a vector: 2 bytes a number; the error, at most 1/65534 of the largest number,
-- leaves the order of an exact float32 search intact.
CREATE TABLE embeddings (
    id        INTEGER PRIMARY KEY,
    model     INTEGER NOT NULL REFERENCES models (no),
    text_hash BLOB    NOT NULL,
    scale     REAL    NOT NULL,
    data      BLOB    NOT NULL
) STRICT;
CREATE INDEX embeddings_text ON embeddings (text_hash, model, id);

-- Vectors of texts that ship with the program; nobody's memory.
CREATE TABLE probes (
    model     INTEGER NOT NULL REFERENCES models (no),
    text_hash BLOB    NOT NULL,
    scale     REAL    NOT NULL,
    data      BLOB    NOT NULL,
    PRIMARY KEY (model, text_hash)
) STRICT;

-- How a reply came to be: ids and scores only, the words stay where they can be forgotten.
CREATE TABLE traces (
    id    INTEGER PRIMARY KEY,
    chat  INTEGER NOT NULL REFERENCES chats (no),
    reply INTEGER,
    at    INTEGER NOT NULL,
    data  TEXT    NOT NULL
) STRICT;

-- What a command offered and waits to be told ("delete 1 and 2?"): ids only.
CREATE TABLE offers (
    id         INTEGER PRIMARY KEY,
    chat       INTEGER NOT NULL REFERENCES chats (no),
    kind       TEXT    NOT NULL,
    data       TEXT    NOT NULL,
    expires_at INTEGER NOT NULL,
    closed_at  INTEGER
) STRICT;

CREATE TABLE deletions (
    id        INTEGER PRIMARY KEY,
    chat      INTEGER NOT NULL REFERENCES chats (no),
    at        INTEGER NOT NULL,
    erase_at  INTEGER NOT NULL,
    undone_at INTEGER,
    erased_at INTEGER,
    counts    TEXT    NOT NULL
) STRICT;

-- What the program owes a person without being asked: receipts.
CREATE TABLE notices (
    id      INTEGER PRIMARY KEY,
    chat    INTEGER NOT NULL REFERENCES chats (no),
    at      INTEGER NOT NULL,
    phrase  TEXT    NOT NULL,
    data    TEXT    NOT NULL,
    sent_at INTEGER
) STRICT;

CREATE TABLE job_runs (
    name        TEXT    PRIMARY KEY,
    finished_at INTEGER NOT NULL
) STRICT;
