-- What recall needs of old rows, ready to be read at once. Why it looks like this:
--  * segments holds what the recall index makes of the texts of a range of rows (terms by hash, columns, names), so
--    that a restart cuts no text into words again. Its id is the last row of the range; it can always be made again.
--    A change to any of its rows drops it in the same transaction, whoever makes the change.
--  * A new row has a number behind every range, so only changes and removals matter.
--  * vector_pages holds vectors that were written long enough ago, a byte a number around the model's centre
--    (models.centre, the mean of what ships with the program, nobody's memory). Their rows in embeddings stay as keys
--    and lose their data.

CREATE TABLE segments (
    id       INTEGER PRIMARY KEY,
    first    INTEGER NOT NULL,
    reading  BLOB    NOT NULL,
    rows     BLOB    NOT NULL,
    keys     BLOB    NOT NULL,
    starts   BLOB    NOT NULL,
    postings BLOB    NOT NULL,
    names    TEXT    NOT NULL
) STRICT;

CREATE TRIGGER journal_unseal AFTER UPDATE OF text, kind, speaker, role, chat, session, hidden_by ON journal BEGIN
    DELETE FROM segments WHERE id = (SELECT min(id) FROM segments WHERE id >= old.id) AND first <= old.id;
END;
CREATE TRIGGER journal_unseal_gone AFTER DELETE ON journal BEGIN
    DELETE FROM segments WHERE id = (SELECT min(id) FROM segments WHERE id >= old.id) AND first <= old.id;
END;
CREATE TRIGGER profile_unseal AFTER UPDATE OF attribute, text, text_hash, subject, audience, confidence, importance, said_at,
    expires_at, retired_at, hidden_by ON profile BEGIN
    DELETE FROM segments WHERE id = (SELECT min(id) FROM segments WHERE id >= old.id) AND first <= old.id;
END;
CREATE TRIGGER profile_unseal_gone AFTER DELETE ON profile BEGIN
    DELETE FROM segments WHERE id = (SELECT min(id) FROM segments WHERE id >= old.id) AND first <= old.id;
END;
CREATE TRIGGER timeline_unseal AFTER UPDATE OF text, text_hash, start_at, end_at, rrule, subject, audience, confidence, importance, said_at,
    expires_at, retired_at, hidden_by ON timeline BEGIN
    DELETE FROM segments WHERE id = (SELECT min(id) FROM segments WHERE id >= old.id) AND first <= old.id;
END;
CREATE TRIGGER timeline_unseal_gone AFTER DELETE ON timeline BEGIN
    DELETE FROM segments WHERE id = (SELECT min(id) FROM segments WHERE id >= old.id) AND first <= old.id;
END;
CREATE TRIGGER facts_unseal AFTER UPDATE OF text, text_hash, subject, audience, confidence, importance, said_at,
    expires_at, retired_at, hidden_by ON facts BEGIN
    DELETE FROM segments WHERE id = (SELECT min(id) FROM segments WHERE id >= old.id) AND first <= old.id;
END;
CREATE TRIGGER facts_unseal_gone AFTER DELETE ON facts BEGIN
    DELETE FROM segments WHERE id = (SELECT min(id) FROM segments WHERE id >= old.id) AND first <= old.id;
END;

-- Where lines may be used follows from their chat.
CREATE TRIGGER chats_unseal AFTER UPDATE OF private, parent ON chats
WHEN old.private IS NOT new.private OR old.parent IS NOT new.parent BEGIN
    DELETE FROM segments;
END;

ALTER TABLE models ADD COLUMN centre BLOB;

CREATE TABLE vector_pages (
    id      INTEGER PRIMARY KEY,
    model   INTEGER NOT NULL REFERENCES models (no),
    hashes  BLOB    NOT NULL,
    scales  BLOB    NOT NULL,
    offsets BLOB    NOT NULL,
    data    BLOB    NOT NULL
) STRICT;
