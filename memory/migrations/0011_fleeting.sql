-- What is said off the record or while learning is paused. Why it looks like this:
--  * journal.fleeting marks a line that is kept only to be answered: the window of its own owner reads it and nothing
--    else does. It goes when its session ends, at the latest after a day, and so does the reply to it.
--  * pauses holds where an account has paused learning: the number of a chat (a group's own for its topics and threads,
--    too) and since when. It holds no word.

ALTER TABLE journal ADD COLUMN fleeting INTEGER NOT NULL DEFAULT 0;
CREATE INDEX journal_fleeting ON journal (id) WHERE fleeting = 1;
CREATE TRIGGER journal_unseal_fleeting AFTER UPDATE OF fleeting ON journal BEGIN
    DELETE FROM segments WHERE id = (SELECT min(id) FROM segments WHERE id >= old.id) AND first <= old.id;
END;

CREATE TABLE pauses (
    account INTEGER NOT NULL REFERENCES accounts (no) ON DELETE CASCADE,
    place   INTEGER NOT NULL REFERENCES chats (no),
    since   INTEGER NOT NULL,
    PRIMARY KEY (account, place)
) STRICT, WITHOUT ROWID;
