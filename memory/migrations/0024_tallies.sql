-- What the program did, for whoever runs it. Why it looks like this:
--  * tallies counts by day of UTC what was written, dropped, closed, recalled, erased ... label is a word of ours: the
--    store, the reason. Nobody's number and nobody's word is in it, so there is nothing in it to forget; what a person
--    used is in usage.
--  * job_runs.due_at is when a job runs next; run is the number under which the log tells of its last run.
--  * traces.turn is the number of the turn in the log, and in the apology of an answer that failed.

CREATE TABLE tallies (
    day   INTEGER NOT NULL,
    name  TEXT    NOT NULL,
    label TEXT    NOT NULL,
    times INTEGER NOT NULL,
    PRIMARY KEY (day, name, label)
) STRICT, WITHOUT ROWID;

ALTER TABLE job_runs ADD COLUMN due_at INTEGER;
ALTER TABLE job_runs ADD COLUMN run TEXT NOT NULL DEFAULT '';

ALTER TABLE traces ADD COLUMN turn TEXT NOT NULL DEFAULT '';
CREATE INDEX traces_turn ON traces (turn) WHERE turn != '';
