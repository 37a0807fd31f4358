-- policy: JSON, goes before the mode. fork: the next process branches off from native_session
-- instead of going on with it.
ALTER TABLE conversations ADD COLUMN policy TEXT;
ALTER TABLE conversations ADD COLUMN fork INTEGER NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN forked_from TEXT;
