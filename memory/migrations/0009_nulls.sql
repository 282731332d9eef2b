-- What foreign questions find in a memory need not be measured again after every start. Why it looks like this:
--  * nulls keeps the measured curves of an account: by place (the audience a question is asked from), language, whether
--    they are for talk that asks nothing, and embedding model ('' without one). program tells which program measured.
--  * data holds numbers only, no word and no hash of one. They go with their account, and whenever any of its words
--    are erased, for they were measured with these.

CREATE TABLE nulls (
    account  INTEGER NOT NULL REFERENCES accounts (no) ON DELETE CASCADE,
    place    INTEGER NOT NULL,
    language TEXT    NOT NULL,
    talk     INTEGER NOT NULL,
    model    TEXT    NOT NULL,
    program  BLOB    NOT NULL,
    data     TEXT    NOT NULL,
    PRIMARY KEY (account, place, language, talk, model)
) STRICT, WITHOUT ROWID;

-- Vectors of shipped texts took two bytes a number; they are asked for once more and take one.
DELETE FROM probes;
