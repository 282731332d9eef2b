-- Texts too long for one vector have several. Why it looks like this:
--  * A chunk has its own number in its owner's range, so that an index can ask what is new, and names the row it is
--    part of; begins and ends count characters of that row's text. Its words are nowhere but in that text.
--  * A chunk goes with the text it was cut from, whatever removes or changes that; its vector, keyed by its hash as
--    every other, has then no row that holds it, and is swept with the rest.

CREATE TABLE chunks (
    id        INTEGER PRIMARY KEY,
    part_of   INTEGER NOT NULL,
    begins    INTEGER NOT NULL,
    ends      INTEGER NOT NULL,
    text_hash BLOB    NOT NULL
) STRICT;
CREATE INDEX chunks_part_of ON chunks (part_of);

CREATE TRIGGER journal_cut AFTER DELETE ON journal BEGIN
    DELETE FROM chunks WHERE part_of = old.id;
END;
CREATE TRIGGER journal_recut AFTER UPDATE OF text ON journal BEGIN
    DELETE FROM chunks WHERE part_of = old.id;
END;
CREATE TRIGGER profile_cut AFTER DELETE ON profile BEGIN
    DELETE FROM chunks WHERE part_of = old.id;
END;
CREATE TRIGGER timeline_cut AFTER DELETE ON timeline BEGIN
    DELETE FROM chunks WHERE part_of = old.id;
END;
CREATE TRIGGER facts_cut AFTER DELETE ON facts BEGIN
    DELETE FROM chunks WHERE part_of = old.id;
END;
