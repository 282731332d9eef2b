-- Sensitive matters are kept only as far as their owner agrees, where the settings say so. Why it looks like this:
--  * journal.held names the matters (health, money ...) for which a line waits for its owner's word. It is fleeting
--    meanwhile, so that nothing reads it but the window; a yes makes it an ordinary line again ('' then: agreed to), a no or time lets it go.
--  * consents has a row for each matter an account was asked about: answer 1 yes, always; 0 no, never; NULL not
--    answered yet. It names matters, never what was said of them.

ALTER TABLE journal ADD COLUMN held TEXT;
CREATE INDEX journal_held ON journal (id) WHERE held != '';

CREATE TABLE consents (
    account INTEGER NOT NULL REFERENCES accounts (no) ON DELETE CASCADE,
    matter  TEXT    NOT NULL,
    answer  INTEGER,
    at      INTEGER NOT NULL,
    PRIMARY KEY (account, matter)
) STRICT, WITHOUT ROWID;
