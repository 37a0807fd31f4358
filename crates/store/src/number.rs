//! SQLite's integers are signed. None of our numbers reaches 2^63.

/// How much of an event's place is its number within the conversation: 68 thousand millions of them,
/// in 134 millions of conversations.
pub(crate) const SEQ_BITS: u32 = 36;

const SEQ_MAX: u64 = (1 << SEQ_BITS) - 1;

pub(crate) fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn from_sql(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Where an event lies: those of a conversation follow each other, and then come the next one's.
pub(crate) fn place(conversation: i64, seq: u64) -> i64 {
    conversation << SEQ_BITS | to_sql(seq.min(SEQ_MAX))
}

/// The number of the event that lies there.
pub(crate) fn seq_at(place: i64) -> u64 {
    from_sql(place) & SEQ_MAX
}
