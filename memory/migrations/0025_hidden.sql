-- Lines are looked for by the deletion that hides them, whosever they are: what the bot told others because of
-- forgotten words is erased with them, by whatever way it once reached them.

CREATE INDEX journal_hidden ON journal (hidden_by) WHERE hidden_by IS NOT NULL;
