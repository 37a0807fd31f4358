-- position: the agent's name for the end of the last turn in native_session; where fork is set, the
-- place in that session to branch off from. forked_at_*: how far the other conversation had come.
ALTER TABLE conversations ADD COLUMN position TEXT;
ALTER TABLE conversations ADD COLUMN forked_at_turn INTEGER;
ALTER TABLE conversations ADD COLUMN forked_at_seq INTEGER;
