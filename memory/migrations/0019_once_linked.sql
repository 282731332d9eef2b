-- What a link leaves behind. Why it looks like this:
--  * While two accounts are linked, the bot answers one with what the other told. Such an answer stays when the link is
--    taken back, and has to go when those words are forgotten: once_linked tells in whose talks to look for it.

CREATE TABLE once_linked (
    account INTEGER NOT NULL REFERENCES accounts (no) ON DELETE CASCADE,
    other   INTEGER NOT NULL REFERENCES accounts (no) ON DELETE CASCADE,
    PRIMARY KEY (account, other)
) STRICT, WITHOUT ROWID;
INSERT INTO once_linked (account, other)
SELECT one.account, two.account FROM links one JOIN links two ON two.person = one.person AND two.account != one.account;
