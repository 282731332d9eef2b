-- What a memory is good for shows in its use. Why it looks like this:
--  * uses counts the replies that were given with a memory because it was asked about; used_at is when the last of
--    them was. Both stand in the row of the memory, so that whatever erases it erases them.
--  * What is read on every turn anyway counts for nothing: it would keep itself in use.

ALTER TABLE profile ADD COLUMN uses INTEGER NOT NULL DEFAULT 0;
ALTER TABLE profile ADD COLUMN used_at INTEGER;

ALTER TABLE timeline ADD COLUMN uses INTEGER NOT NULL DEFAULT 0;
ALTER TABLE timeline ADD COLUMN used_at INTEGER;

ALTER TABLE facts ADD COLUMN uses INTEGER NOT NULL DEFAULT 0;
ALTER TABLE facts ADD COLUMN used_at INTEGER;

-- Few memories are ever used: what is used most is found without reading the others.
CREATE INDEX profile_used ON profile (id, uses, used_at) WHERE uses > 0;
CREATE INDEX timeline_used ON timeline (id, uses, used_at) WHERE uses > 0;
CREATE INDEX facts_used ON facts (id, uses, used_at) WHERE uses > 0;
