-- What an agent within this process wrote down to go on from, in order. session: its native session.
CREATE TABLE journal (
    id INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversations (id),
    session TEXT NOT NULL,
    body BLOB NOT NULL
) STRICT;

CREATE INDEX journal_by_session ON journal (session);
CREATE INDEX journal_by_conversation ON journal (conversation);

-- Lines that a user typed, over all conversations, for clients that offer them again.
CREATE TABLE history (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation TEXT NOT NULL,
    ts INTEGER NOT NULL,
    text TEXT NOT NULL
) STRICT;
