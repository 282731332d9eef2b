-- Long messages are read to their end, what was set aside gets a second chance, and whose zone it is. Why so:
--  * journal.read_to counts the characters of a line that are distilled while the rest of it waits: a message longer
--    than a request goes in pieces, and a kill between two of them repeats none. 0 once it is done, or edited.
--  * journal.second_at is the moment from which a line that was set aside is tried once more, and 0 when it has been.
--  * accounts.zone_set is the zone a person chose by command; profile.zone the one that a line about where they are
--    tells ("I live in Berlin"). It is kept with the line, so that it ends, is hidden and is erased with it. The set
--    one goes before the told one, and that before accounts.zone, the operator's at the first meeting.
--  * accounts.zone_asked tells that the person was asked for it; nobody is asked twice.

ALTER TABLE journal ADD COLUMN read_to INTEGER NOT NULL DEFAULT 0;
ALTER TABLE journal ADD COLUMN second_at INTEGER;
CREATE INDEX journal_second ON journal (second_at, id) WHERE second_at > 0;

ALTER TABLE accounts ADD COLUMN zone_set TEXT;
ALTER TABLE accounts ADD COLUMN zone_asked INTEGER NOT NULL DEFAULT 0;
ALTER TABLE profile ADD COLUMN zone TEXT;
CREATE INDEX profile_zone ON profile (id) WHERE zone IS NOT NULL;
