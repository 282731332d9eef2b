-- What a person's chats cost, in counts. Why it looks like this:
--  * usage counts by account, day and kind ("message", "reply", "distil", "embed", "rewrite", "rerank") how often and
--    how many tokens, in and out. No word and no hash of one, so there is nothing in it to forget.
--  * day is the ordinal of the day of UTC, as in spending: budgets of a day and what was used of them go together.

CREATE TABLE usage (
    account    INTEGER NOT NULL REFERENCES accounts (no) ON DELETE CASCADE,
    day        INTEGER NOT NULL,
    kind       TEXT    NOT NULL,
    times      INTEGER NOT NULL,
    tokens_in  INTEGER NOT NULL,
    tokens_out INTEGER NOT NULL,
    PRIMARY KEY (account, day, kind)
) STRICT, WITHOUT ROWID;
