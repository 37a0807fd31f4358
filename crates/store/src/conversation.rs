//! The row of a conversation.

use rusqlite::{Connection, OptionalExtension, Row};
use tieline_event::{ConversationKey, Epoch, FrameNo, Mode, Policy, Seq, Timestamp};

use crate::error::Error;
use crate::number::{from_sql, to_sql};

/// A conversation as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// Its name.
    pub key: ConversationKey,
    /// The agent.
    pub agent: String,
    /// Where the agent works.
    pub workspace: String,
    /// How much it may do.
    pub mode: Mode,
    /// What goes before the mode.
    pub policy: Option<Policy>,
    /// The model asked for.
    pub model: Option<String>,
    /// The effort asked for.
    pub effort: Option<String>,
    /// The agent's own session.
    pub native_session: Option<String>,
    /// The next process branches off from that session instead of going on with it.
    pub forks: bool,
    /// The agent's name for the end of the last turn in its session; where it forks, the place to
    /// branch off from.
    pub position: Option<String>,
    /// The conversation it branched off from.
    pub forked_from: Option<ConversationKey>,
    /// How far that one had come.
    pub forked_at: Option<ForkedAt>,
    /// A line for a list of conversations.
    pub title: Option<String>,
    /// JSON about the task it is for.
    pub task: Option<String>,
    /// When it began.
    pub created: Timestamp,
    /// Last activity.
    pub updated: Timestamp,
    /// The number the next turn gets; turns so far are one less.
    pub next_turn: u64,
    /// The number the next event gets; events so far are one less.
    pub next_seq: Seq,
    /// The number the next frame gets; frames so far, pruned ones included, are one less.
    pub next_frame: FrameNo,
    /// Generation of the last owner.
    pub epoch: Epoch,
    /// Whether an owner is on record. It may be dead; see [`Store::holder`](crate::Store::holder).
    pub is_leased: bool,
}

impl Conversation {
    /// How many events it has.
    pub fn n_events(&self) -> u64 {
        self.next_seq.0.saturating_sub(1)
    }

    /// How many turns it has had.
    pub fn n_turns(&self) -> u64 {
        self.next_turn.saturating_sub(1)
    }
}

/// How a conversation begins.
#[derive(Debug, Clone, Default)]
pub struct NewConversation {
    /// The agent.
    pub agent: String,
    /// Where the agent works.
    pub workspace: String,
    /// How much it may do.
    pub mode: Mode,
    /// What goes before the mode.
    pub policy: Option<Policy>,
    /// The model asked for.
    pub model: Option<String>,
    /// The effort asked for.
    pub effort: Option<String>,
    /// The session it branches off from.
    pub fork: Option<Fork>,
}

/// Where a conversation branches off: from the end of what the other one has at this moment.
#[derive(Debug, Clone)]
pub struct Fork {
    /// The agent's session.
    pub session: String,
    /// Whose it is.
    pub from: ConversationKey,
    /// The agent's memory is in our journal: the new conversation gets a copy of it.
    pub copies_journal: bool,
}

/// How far a conversation had come when another one branched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForkedAt {
    /// Turns it had had, the one that ran included.
    pub turn: u64,
    /// Its last event.
    pub seq: Seq,
}

/// Which conversations to list, the most recently active first.
#[derive(Debug, Clone)]
pub struct Filter {
    /// Only those with this agent.
    pub agent: Option<String>,
    /// Only those in this workspace.
    pub workspace: Option<String>,
    /// Only those that have had a turn.
    pub begun: bool,
    /// Only those that are for a task.
    pub tasks: bool,
    /// Those that come after so many of them.
    pub offset: usize,
    /// At most so many.
    pub limit: usize,
}

impl Default for Filter {
    fn default() -> Self {
        Self { agent: None, workspace: None, begun: false, tasks: false, offset: 0, limit: 1000 }
    }
}

/// A row with what only the store needs to know.
pub(crate) struct Stored {
    pub(crate) id: i64,
    pub(crate) owner: Option<String>,
    pub(crate) conversation: Conversation,
}

const COLUMNS: &str = "id, key, agent, workspace, mode, model, native_session, title, created, \
    updated, next_turn, next_seq, next_frame, epoch, lease_owner, policy, fork, forked_from, effort, \
    task, position, forked_at_turn, forked_at_seq";

pub(crate) fn find(
    connection: &Connection,
    key: &ConversationKey,
) -> Result<Option<Stored>, Error> {
    let sql = format!("SELECT {COLUMNS} FROM conversations WHERE key = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_row([key.as_str()], |row| Ok(read(row))).optional()?.transpose()
}

/// The id behind a key.
pub(crate) fn id_of(connection: &Connection, key: &ConversationKey) -> Result<i64, Error> {
    let mut statement = connection.prepare_cached("SELECT id FROM conversations WHERE key = ?1")?;
    statement
        .query_row([key.as_str()], |row| row.get(0))
        .optional()?
        .ok_or_else(|| Error::NoConversation(key.clone()))
}

pub(crate) fn list(connection: &Connection, filter: &Filter) -> Result<Vec<Conversation>, Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM conversations
         WHERE key IS NOT NULL AND (?1 IS NULL OR agent = ?1) AND (?2 IS NULL OR workspace = ?2)
         AND (NOT ?4 OR next_turn > 1) AND (NOT ?6 OR task IS NOT NULL)
         ORDER BY updated DESC, id DESC LIMIT ?3 OFFSET ?5"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let limit = to_sql(filter.limit as u64);
    let offset = to_sql(filter.offset as u64);
    let wanted = (&filter.agent, &filter.workspace, limit, filter.begun, offset, filter.tasks);
    let rows = statement.query_map(wanted, |row| Ok(read(row)))?;
    rows.map(|row| Ok(row??.conversation)).collect()
}

fn read(row: &Row<'_>) -> Result<Stored, Error> {
    let key: String = row.get(1)?;
    let mode: String = row.get(4)?;
    let owner: Option<String> = row.get(14)?;
    let policy: Option<String> = row.get(15)?;
    let policy = policy.map(|json| {
        serde_json::from_str(&json).map_err(|_| Error::Unknown { what: "policy", found: json })
    });
    let forked_from: Option<String> = row.get(17)?;
    let (turn, seq): (Option<i64>, Option<i64>) = (row.get(21)?, row.get(22)?);
    let forked_at = turn.zip(seq);
    let conversation = Conversation {
        key: ConversationKey::new(&key)
            .map_err(|_| Error::Unknown { what: "conversation key", found: key })?,
        agent: row.get(2)?,
        workspace: row.get(3)?,
        mode: mode.parse().map_err(|_| Error::Unknown { what: "mode", found: mode })?,
        policy: policy.transpose()?,
        model: row.get(5)?,
        effort: row.get(18)?,
        native_session: row.get(6)?,
        forks: row.get(16)?,
        forked_from: forked_from.and_then(|key| ConversationKey::new(&key).ok()),
        position: row.get::<_, Option<String>>(20)?.filter(|it| !it.is_empty()),
        forked_at: forked_at
            .map(|(turn, seq)| ForkedAt { turn: from_sql(turn), seq: Seq(from_sql(seq)) }),
        title: row.get(7)?,
        task: row.get(19)?,
        created: Timestamp::from_millis(row.get(8)?),
        updated: Timestamp::from_millis(row.get(9)?),
        next_turn: from_sql(row.get(10)?),
        next_seq: Seq(from_sql(row.get(11)?)),
        next_frame: FrameNo(from_sql(row.get(12)?)),
        epoch: Epoch(from_sql(row.get(13)?)),
        is_leased: owner.is_some(),
    };
    Ok(Stored { id: row.get(0)?, owner, conversation })
}
