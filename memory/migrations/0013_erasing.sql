-- Deletions that overlap, and what a restored backup has to forget again. Why it looks like this:
--  * deletions.scope says how a deletion was asked for ('words', 'since', 'here', 'everything'): the search after an
--    erasure looks for more or for less by it.
--  * A row is hidden by one deletion. also_hidden names the others that cover it while it is hidden, so that undoing
--    one shows nothing that another still hides. It goes with the deletion that made it.
--  * erased tells which rows are gone for good, in ranges of ids of one owner, without a word of theirs: whatever brings
--    an older copy of the file back erases these rows in it again (memory.erasing.Erasing.again) before anybody reads
--    it. A range holds no row that was left alone. One that begins with an account's first id is all of that account.
--  * A reply finds its trace by number: forgetting asks for many.

ALTER TABLE deletions ADD COLUMN scope TEXT NOT NULL DEFAULT 'words';

CREATE TABLE also_hidden (
    row      INTEGER NOT NULL,
    deletion INTEGER NOT NULL,
    PRIMARY KEY (row, deletion)
) STRICT, WITHOUT ROWID;
CREATE INDEX also_hidden_deletion ON also_hidden (deletion);

CREATE TABLE erased (
    first    INTEGER NOT NULL,
    deletion INTEGER NOT NULL,
    last     INTEGER NOT NULL,
    PRIMARY KEY (first, deletion)
) STRICT, WITHOUT ROWID;

CREATE INDEX traces_reply ON traces (reply) WHERE reply IS NOT NULL;
