-- What rests, what was folded and brought back, and what the jobs did. Why it looks like this:
--  * cold_at is when a memory was found to have been of no use for a long time. It is looked at when the index is
--    brought up to date and decides nothing that is sealed, so no segment has to be made again for it.
--  * kept_apart names two memories that were folded into one and that their owner wants as two: they are never folded
--    again. It holds row numbers only, and goes with either of the two.
--  * job_runs tells of each job when it last did something, what (counts), and how often it has failed since it last
--    came to its end. Names and numbers, nobody's words.

ALTER TABLE profile ADD COLUMN cold_at INTEGER;
ALTER TABLE timeline ADD COLUMN cold_at INTEGER;
ALTER TABLE facts ADD COLUMN cold_at INTEGER;
CREATE INDEX profile_cold ON profile (id) WHERE cold_at IS NOT NULL;
CREATE INDEX timeline_cold ON timeline (id) WHERE cold_at IS NOT NULL;
CREATE INDEX facts_cold ON facts (id) WHERE cold_at IS NOT NULL;

CREATE TABLE kept_apart (
    kept   INTEGER NOT NULL,
    double INTEGER NOT NULL,
    PRIMARY KEY (kept, double)
) STRICT, WITHOUT ROWID;
CREATE INDEX kept_apart_double ON kept_apart (double);
CREATE TRIGGER profile_apart AFTER DELETE ON profile BEGIN
    DELETE FROM kept_apart WHERE kept = old.id OR double = old.id;
END;
CREATE TRIGGER timeline_apart AFTER DELETE ON timeline BEGIN
    DELETE FROM kept_apart WHERE kept = old.id OR double = old.id;
END;
CREATE TRIGGER facts_apart AFTER DELETE ON facts BEGIN
    DELETE FROM kept_apart WHERE kept = old.id OR double = old.id;
END;

ALTER TABLE job_runs ADD COLUMN did_at INTEGER;
ALTER TABLE job_runs ADD COLUMN counts TEXT NOT NULL DEFAULT '{}';
ALTER TABLE job_runs ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
