-- Doubt, and ends by the time they were said. Why it looks like this:
--  * doubts names the sure memory of the same table that an unsure one was said against; both stand. It counts only
--    while that memory stands, which is looked at when it is read, so nothing has to clear it.
--  * asked_at is when the person was asked which of the two holds. It stays with the row when that is closed:
--    nobody is asked twice about one thing.
--  * ended_at is when the words were said that ended a memory. retired_at is when that was worked out, maybe days
--    later, and what was said in between must not count as older than the end.

ALTER TABLE profile ADD COLUMN doubts INTEGER;
ALTER TABLE profile ADD COLUMN asked_at INTEGER;
ALTER TABLE profile ADD COLUMN ended_at INTEGER;

ALTER TABLE timeline ADD COLUMN doubts INTEGER;
ALTER TABLE timeline ADD COLUMN asked_at INTEGER;
ALTER TABLE timeline ADD COLUMN ended_at INTEGER;

ALTER TABLE facts ADD COLUMN doubts INTEGER;
ALTER TABLE facts ADD COLUMN asked_at INTEGER;
ALTER TABLE facts ADD COLUMN ended_at INTEGER;
