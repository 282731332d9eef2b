-- What was imported from where, so that the same thing is never imported twice, nor again once it was erased here. Why
-- it looks like this:
--  * origin is a hash of numbers: which account of which installation, and which of its rows. It tells no word and none
--    can be found by it. row is the number it got here; it stays when the row is erased, as an id is never used twice.

CREATE TABLE imported (
    account INTEGER NOT NULL REFERENCES accounts (no) ON DELETE CASCADE,
    origin  BLOB    NOT NULL,
    row     INTEGER NOT NULL,
    PRIMARY KEY (account, origin)
) STRICT, WITHOUT ROWID;
