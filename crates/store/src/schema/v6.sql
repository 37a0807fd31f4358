-- The place of an event is one number, id = conversation << 36 | seq. So a row is appended at the end
-- of a table, not sorted into an index: it lies whole on its page, and a commit changes fewer of them.
CREATE TABLE placed_events (
    id INTEGER PRIMARY KEY,
    ts INTEGER NOT NULL,
    kind TEXT NOT NULL,
    turn TEXT,
    json BLOB NOT NULL
) STRICT;

INSERT INTO placed_events
SELECT conversation << 36 | seq, ts, kind, turn, json FROM events ORDER BY conversation, seq;

DROP TABLE events;
ALTER TABLE placed_events RENAME TO events;
