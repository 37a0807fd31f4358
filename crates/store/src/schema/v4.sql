-- task: JSON about the task this conversation is for; the store does not read it.
ALTER TABLE conversations ADD COLUMN task TEXT;

-- What other processes have to say to the owner of a conversation, in order.
CREATE TABLE mail (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation INTEGER NOT NULL REFERENCES conversations (id),
    body TEXT NOT NULL
) STRICT;

CREATE INDEX mail_by_conversation ON mail (conversation);
