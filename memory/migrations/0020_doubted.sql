-- Whether there is anything to ask a person about is looked at on every turn; doubts are few, memories are many.

CREATE INDEX profile_doubted ON profile (id) WHERE doubts IS NOT NULL;
CREATE INDEX timeline_doubted ON timeline (id) WHERE doubts IS NOT NULL;
CREATE INDEX facts_doubted ON facts (id) WHERE doubts IS NOT NULL;
