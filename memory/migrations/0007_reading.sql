-- Long messages are read to their end, what was set aside gets a second chance, and whose zone it is. Why so:
--  * journal.read_to counts the characters of a line that are distilled while the rest of it waits: a message longer
--    than a request goes in pieces, and a kill between two of them repeats none. 0 once it is done, or edited.
--  * journal.second_at is the moment from which a line that was set aside is tried once more, and 0 when it has been.
--  * accounts.zone_source tells where the zone comes from: 'default' (the operator's), 'said' (read in what the person
--    wrote) or 'set' (a command). A later word goes before an earlier one, but never before a command.
--  * accounts.zone_asked tells that the person was asked for it; nobody is asked twice.

ALTER TABLE journal ADD COLUMN read_to INTEGER NOT NULL DEFAULT 0;
ALTER TABLE journal ADD COLUMN second_at INTEGER;
CREATE INDEX journal_second ON journal (second_at, id) WHERE second_at > 0;

ALTER TABLE accounts ADD COLUMN zone_source TEXT NOT NULL DEFAULT 'default';
ALTER TABLE accounts ADD COLUMN zone_asked INTEGER NOT NULL DEFAULT 0;
