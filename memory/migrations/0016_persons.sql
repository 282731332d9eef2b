-- One human with several accounts. Why it looks like this:
--  * links says which accounts are one person. It is a view and nothing else: no memory is moved or changed by it, so
--    that taking a row away gives every account its own memory back. A number of a person is never used again.
--  * link_codes holds what somebody was shown to type on their other account: a keyed hash and its salt, never the
--    code; one open code an account, gone once it is used. chat is where it was shown, for the word that it was used.
--  * link_tries counts wrong codes, so that guessing ends early.

CREATE TABLE persons (
    no      INTEGER PRIMARY KEY AUTOINCREMENT,
    made_at INTEGER NOT NULL
) STRICT;

CREATE TABLE links (
    account INTEGER PRIMARY KEY REFERENCES accounts (no) ON DELETE CASCADE,
    person  INTEGER NOT NULL REFERENCES persons (no),
    at      INTEGER NOT NULL
) STRICT;
CREATE INDEX links_person ON links (person);

CREATE TABLE link_codes (
    account    INTEGER PRIMARY KEY REFERENCES accounts (no) ON DELETE CASCADE,
    chat       INTEGER NOT NULL REFERENCES chats (no),
    salt       BLOB    NOT NULL,
    hash       BLOB    NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;

CREATE TABLE link_tries (
    account INTEGER NOT NULL REFERENCES accounts (no) ON DELETE CASCADE,
    at      INTEGER NOT NULL
) STRICT;
CREATE INDEX link_tries_at ON link_tries (at);
