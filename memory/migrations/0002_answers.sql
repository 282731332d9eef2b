-- Answers that survive a kill, edits and deletions on the platform, groups that move. Why it looks like this:
--  * waiting has a row for each message that wants an answer and has none yet. Its id is that of the journal
--    line, so it lies in the owner's range and goes with the line; arrived counts up over all owners, for ids of
--    two members of a group tell nothing about who wrote first.
--  * A platform's ids of messages that show an answer are no words, and are kept only as long as it is on its way.
--  * journal.turn names the line whose answer is this line's, too (quick messages are answered as one): whoever
--    edits or deletes any of them has to reach that answer.
--  * journal.revised marks a line that was edited behind the cursor of its session: it alone is distilled again.
--  * ended_by is the line whose words ended a memory without a successor, so that taking those words back reopens
--    it, as taking back a successor does.
--  * A chat that moved to a new key leaves its old key behind with a pointer (moved_to): what the platform
--    delivers again under that key is still known.

CREATE TABLE waiting (
    id      INTEGER PRIMARY KEY,
    arrived INTEGER NOT NULL,
    begun   INTEGER NOT NULL DEFAULT 0,
    shown   TEXT    NOT NULL DEFAULT '[]',
    reply   INTEGER
) STRICT;

ALTER TABLE journal ADD COLUMN turn INTEGER;
ALTER TABLE journal ADD COLUMN revised INTEGER NOT NULL DEFAULT 0;
CREATE INDEX journal_turn ON journal (turn) WHERE turn IS NOT NULL;
CREATE INDEX journal_revised ON journal (session, id) WHERE revised = 1;

ALTER TABLE profile ADD COLUMN ended_by INTEGER;
ALTER TABLE timeline ADD COLUMN ended_by INTEGER;
ALTER TABLE facts ADD COLUMN ended_by INTEGER;

ALTER TABLE chats ADD COLUMN moved_to INTEGER REFERENCES chats (no);
ALTER TABLE accounts ADD COLUMN language_fixed INTEGER NOT NULL DEFAULT 0;
