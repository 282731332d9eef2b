-- Budgets of a day. Why it looks like this:
--  * group_usage counts what was used in a group by everybody together, as usage does for an account: by day of UTC and
--    kind, without a word. A topic counts for its group.
--  * budget_told says that an account (chat 0) or a group (account 0) was told on a day that its budget nears its end.

CREATE TABLE group_usage (
    chat       INTEGER NOT NULL REFERENCES chats (no),
    day        INTEGER NOT NULL,
    kind       TEXT    NOT NULL,
    times      INTEGER NOT NULL,
    tokens_in  INTEGER NOT NULL,
    tokens_out INTEGER NOT NULL,
    PRIMARY KEY (chat, day, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE budget_told (
    account INTEGER NOT NULL,
    chat    INTEGER NOT NULL,
    day     INTEGER NOT NULL,
    PRIMARY KEY (account, chat, day)
) STRICT, WITHOUT ROWID;
