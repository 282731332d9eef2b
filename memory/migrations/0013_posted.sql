-- Which messages of a platform show which answer. Why it looks like this:
--  * Who replies to one of them with /why, or says that it is wrong, means that answer. line is its journal line, in
--    the range of whom it was given to: nobody else finds it by the message.
--  * A platform's ids of messages are no words. They go with the line, whatever removes it.

CREATE TABLE posted (
    line        INTEGER NOT NULL,
    platform_id TEXT    NOT NULL,
    PRIMARY KEY (line, platform_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX posted_platform_id ON posted (platform_id);

CREATE TRIGGER journal_unposted AFTER DELETE ON journal BEGIN
    DELETE FROM posted WHERE line = old.id;
END;
