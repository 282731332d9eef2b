-- Distillation that loses nothing and costs no more than it may. Why it looks like this:
--  * journal.set_aside is why a line could not be distilled in any try. The cursor has passed it, so that it holds
--    up nothing; an edit gives it another turn. A reason is one word of ours, never anybody's.
--  * spending counts tokens by account and day (the ordinal of the day of UTC, one day for all, so that the sum over
--    accounts is what the whole program has spent). It is written before the model is asked: a kill makes no call free.
--  * Sessions that came to nothing in the old way, with the cursor still before them, are tried once more.

ALTER TABLE journal ADD COLUMN set_aside TEXT;

CREATE TABLE spending (
    account INTEGER NOT NULL REFERENCES accounts (no),
    day     INTEGER NOT NULL,
    tokens  INTEGER NOT NULL,
    PRIMARY KEY (account, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX spending_day ON spending (day);
