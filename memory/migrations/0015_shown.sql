-- Where an answer is shown, so that another one can take its place there. Why it looks like this:
--  * shown keeps the platform's ids of the messages that show a delivered reply, by its journal line: numbers, no words.
--    Until it is delivered they are in waiting, as before.
--  * They go with the reply, whatever removes that.

CREATE TABLE shown (
    id           INTEGER PRIMARY KEY,
    platform_ids TEXT    NOT NULL
) STRICT;

CREATE TRIGGER journal_unshown AFTER DELETE ON journal BEGIN
    DELETE FROM shown WHERE id = old.id;
END;
