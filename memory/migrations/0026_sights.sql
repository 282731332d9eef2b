-- Who may see a room can change on its platform without anybody of those who spoke there having a say in it. Why it
-- looks like this:
--  * sights has what the platform told last of a room (a channel of a server, say), in the platform's own names of
--    roles and people, so that a change is noticed after a time away, too.
--  * sessions.aside marks what was said in a room before it was opened to more people: for private chats alone from
--    then on. The memories made of it get the audience of a private chat; of journal lines their session tells it.

CREATE TABLE sights (
    platform TEXT NOT NULL,
    key      TEXT NOT NULL,
    sight    TEXT NOT NULL,
    PRIMARY KEY (platform, key)
) STRICT, WITHOUT ROWID;

ALTER TABLE sessions ADD COLUMN aside INTEGER NOT NULL DEFAULT 0;

CREATE INDEX sessions_aside ON sessions (no) WHERE aside = 1;

CREATE TRIGGER sessions_unseal AFTER UPDATE OF aside ON sessions WHEN old.aside IS NOT new.aside BEGIN
    UPDATE journal SET session = session WHERE session = new.no;
END;
