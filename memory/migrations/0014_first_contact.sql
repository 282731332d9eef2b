-- The notice at the first contact: what is remembered, and how to see and erase it. Why it looks like this:
--  * accounts.noticed is the journal line whose answer carries the notice; 0 once that was delivered, NULL before. Bound
--    to one line, it comes with that answer however often a stop has it taken up again, and with no other.

ALTER TABLE accounts ADD COLUMN noticed INTEGER;
