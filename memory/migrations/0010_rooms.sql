-- Who may hear what, when that changes. Why it looks like this:
--  * shared_from is the audience a memory had before its owner opened it to every place, so that it can go back to
--    where it was said though the journal may be trimmed by then. NULL while it is not open to every place.
--  * A departure is an account that is no longer in a chat (a group; its topics go with it). What it said there keeps
--    its audience: it is usable there again once they are back. Leaving is a state, not a change of any memory.

ALTER TABLE profile ADD COLUMN shared_from INTEGER;
ALTER TABLE timeline ADD COLUMN shared_from INTEGER;
ALTER TABLE facts ADD COLUMN shared_from INTEGER;

CREATE TABLE departures (
    chat    INTEGER NOT NULL REFERENCES chats (no),
    account INTEGER NOT NULL REFERENCES accounts (no) ON DELETE CASCADE,
    at      INTEGER NOT NULL,
    PRIMARY KEY (chat, account)
) STRICT, WITHOUT ROWID;
