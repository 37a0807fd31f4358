-- A conversation without a key is being deleted.
-- Numbers start at 1; next_* is what comes next. Segments from tail_first on, tail_bytes long
-- before compression, are to be merged with what follows.
CREATE TABLE conversations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT UNIQUE,
    agent TEXT NOT NULL,
    workspace TEXT NOT NULL,
    mode TEXT NOT NULL,
    model TEXT,
    native_session TEXT,
    title TEXT,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    next_turn INTEGER NOT NULL DEFAULT 1,
    next_seq INTEGER NOT NULL DEFAULT 1,
    next_frame INTEGER NOT NULL DEFAULT 1,
    tail_first INTEGER NOT NULL DEFAULT 1,
    tail_bytes INTEGER NOT NULL DEFAULT 0,
    epoch INTEGER NOT NULL,
    lease_owner TEXT,
    lease_since INTEGER
) STRICT;

CREATE TABLE events (
    conversation INTEGER NOT NULL REFERENCES conversations (id),
    seq INTEGER NOT NULL,
    ts INTEGER NOT NULL,
    kind TEXT NOT NULL,
    turn TEXT,
    json BLOB NOT NULL,
    PRIMARY KEY (conversation, seq)
) STRICT, WITHOUT ROWID;

-- codec: 0 plain, 1 zstd. newest: time of the newest frame inside.
CREATE TABLE segments (
    id INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversations (id),
    first INTEGER NOT NULL,
    n_frames INTEGER NOT NULL,
    newest INTEGER NOT NULL,
    raw_bytes INTEGER NOT NULL,
    codec INTEGER NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (conversation, first)
) STRICT;

CREATE TABLE blobs (
    id INTEGER PRIMARY KEY,
    sha256 TEXT NOT NULL UNIQUE,
    raw_bytes INTEGER NOT NULL,
    codec INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT;

CREATE TABLE blob_refs (
    conversation INTEGER NOT NULL REFERENCES conversations (id),
    blob INTEGER NOT NULL REFERENCES blobs (id),
    PRIMARY KEY (conversation, blob)
) STRICT, WITHOUT ROWID;

CREATE INDEX blob_refs_by_blob ON blob_refs (blob);

-- resolution: JSON of what closed it. by: who answered.
CREATE TABLE requests (
    conversation INTEGER NOT NULL REFERENCES conversations (id),
    id TEXT NOT NULL,
    opened INTEGER NOT NULL,
    native TEXT,
    json TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('open', 'resolved', 'expired')),
    resolution TEXT,
    by TEXT,
    PRIMARY KEY (conversation, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX requests_open ON requests (conversation) WHERE state = 'open';
