//! `tieline list`.

use serde::Serialize;
use tieline_event::{Mode, Policy, Timestamp};
use tieline_front::json::escaped;
use tieline_front::sanitize::one_line;
use tieline_store::{Conversation, Filter};

use crate::agents::check_name;
use crate::args::{Global, ListArgs};
use crate::error::Error;
use crate::exit::Exit;
use crate::print::print;
use crate::run::open_store_to_read;

/// A conversation as programs read it.
#[derive(Serialize)]
struct Row<'a> {
    key: &'a str,
    agent: &'a str,
    workspace: &'a str,
    mode: Mode,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<Policy>,
    model: Option<&'a str>,
    native_session: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forked_from: Option<&'a str>,
    title: Option<&'a str>,
    created: Timestamp,
    updated: Timestamp,
    turns: u64,
    events: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    held_by: Option<String>,
}

/// Lists conversations, the most recently active first.
pub(crate) fn list(global: &Global, args: &ListArgs) -> Result<Exit, Error> {
    if let Some(agent) = &args.agent {
        check_name(agent, &[])?;
    }
    let store = open_store_to_read(global)?;
    let filter = Filter { agent: args.agent.clone(), ..Filter::default() };
    let conversations = store.conversations(&filter)?;
    if args.json {
        let rows: Vec<Row<'_>> = conversations
            .iter()
            .map(|row| {
                let holder = row.is_leased.then(|| store.holder(&row.key)).transpose()?.flatten();
                Ok(Row {
                    key: row.key.as_str(),
                    agent: &row.agent,
                    workspace: &row.workspace,
                    mode: row.mode,
                    policy: row.policy,
                    model: row.model.as_deref(),
                    native_session: row.native_session.as_deref(),
                    forked_from: row.forked_from.as_ref().map(|key| key.as_str()),
                    title: row.title.as_deref(),
                    created: row.created,
                    updated: row.updated,
                    turns: row.n_turns(),
                    events: row.n_events(),
                    held_by: holder.map(|owner| owner.to_string()),
                })
            })
            .collect::<Result<_, Error>>()?;
        let json = serde_json::to_string_pretty(&rows)
            .map_err(|err| Error::new(Exit::Failed, err.to_string()))?;
        print(&format!("{}\n", escaped(&json)))?;
    } else if let (true, Some(agent)) = (conversations.is_empty(), &args.agent) {
        print(&format!("There are no conversations with {}.\n", one_line(agent)))?;
    } else if conversations.is_empty() {
        print("There are no conversations yet. Begin one: tieline run \"…\"\n")?;
    } else {
        print(&table(&conversations, Timestamp::now()))?;
    }
    Ok(Exit::Completed)
}

fn table(conversations: &[Conversation], now: Timestamp) -> String {
    let header = ["KEY", "AGENT", "TURNS", "LAST", "TITLE"].map(str::to_owned);
    let rows = conversations.iter().map(|row| {
        [
            one_line(row.key.as_str()),
            one_line(&row.agent),
            row.n_turns().to_string(),
            ago(row.updated, now),
            one_line(row.title.as_deref().unwrap_or_default()),
        ]
    });
    let rows: Vec<[String; 5]> = std::iter::once(header).chain(rows).collect();
    let mut widths = [0; 5];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            line.push_str(&format!("{cell:width$}  "));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn ago(then: Timestamp, now: Timestamp) -> String {
    let seconds = (now.as_millis() - then.as_millis()).max(0) / 1000;
    match seconds {
        0..60 => "just now".to_owned(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_as_a_person_would() {
        let now = Timestamp::from_millis(10_000_000_000);
        let then = |seconds: i64| Timestamp::from_millis(now.as_millis() - seconds * 1000);
        assert_eq!(ago(then(5), now), "just now");
        assert_eq!(ago(then(-5), now), "just now");
        assert_eq!(ago(then(600), now), "10 min ago");
        assert_eq!(ago(then(7200), now), "2 h ago");
        assert_eq!(ago(then(200_000), now), "2 days ago");
    }
}
