-- Who may talk to the bot on a platform; whoever is not named here or in the settings is turned away. Why it looks like this:
--  * allowed names people ("telegram:1001") and groups ("telegram:-1002", "discord:900") as the settings do, by the
--    platform's numbers, never by a name they chose. It is no memory: taking a row away erases nothing of anybody.
--  * pairing holds what a stranger was shown: a keyed hash and its salt, never the code; where to answer, and in which
--    language; no word of theirs and no account. One that was refused stays, without a code, so that nothing more is said.
--  * pairing_tries counts wrong codes, so that guessing ends early.
--  * Whoever had talked before there was a door goes on talking: nobody is locked out by an update.

CREATE TABLE allowed (
    name  TEXT    NOT NULL,
    kind  TEXT    NOT NULL CHECK (kind IN ('person', 'group')),
    admin INTEGER NOT NULL DEFAULT 0,
    how   TEXT    NOT NULL CHECK (how IN ('code', 'name', 'update', 'moved')),
    at    INTEGER NOT NULL,
    PRIMARY KEY (name, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE pairing (
    name       TEXT    PRIMARY KEY,
    key        TEXT    NOT NULL,
    language   TEXT    NOT NULL,
    salt       BLOB    NOT NULL,
    hash       BLOB    NOT NULL,
    refused    INTEGER NOT NULL DEFAULT 0,
    asked_at   INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE pairing_tries (
    who TEXT    NOT NULL,
    at  INTEGER NOT NULL
) STRICT;
CREATE INDEX pairing_tries_at ON pairing_tries (at);

INSERT INTO allowed (name, kind, how, at)
SELECT platform || ':' || user_id, 'person', 'update', created_at FROM accounts WHERE platform != 'console';
