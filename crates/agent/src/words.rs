//! Small things about texts and choices that every driver needs.

use tieline_event::{Choice, ChoiceKind, Content, ItemStatus, Origin};

/// The first line of a text, shortened.
pub(crate) fn first_line(text: &str) -> String {
    const LONGEST: usize = 200;
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    }
}

/// Why it is asked, where a server of tools does.
pub(crate) fn by_server(server: &str) -> String {
    format!("the MCP server {server:?} asks")
}

/// One way to answer.
pub(crate) fn choice(id: &str, label: &str, kind: ChoiceKind) -> Choice {
    Choice { id: id.to_owned(), label: label.to_owned(), kind }
}

/// Yes, this time.
pub(crate) fn allow() -> Choice {
    choice("allow", "Yes", ChoiceKind::AllowOnce)
}

/// Yes, for as long as the session lasts.
pub(crate) fn allow_session() -> Choice {
    choice("session", "Yes, for this session", ChoiceKind::AllowSession)
}

/// No; the agent goes on without it.
pub(crate) fn deny() -> Choice {
    choice("deny", "No", ChoiceKind::Deny)
}

/// No, and the turn ends.
pub(crate) fn stop() -> Choice {
    choice("stop", "No, and stop", ChoiceKind::DenyAndStop)
}

/// What becomes of an item that was refused: a policy denies, a person declines.
pub(crate) fn refused_by(by: Origin) -> ItemStatus {
    match by {
        Origin::Engine => ItemStatus::Denied,
        _ => ItemStatus::Declined,
    }
}

/// A piece of a message as plain text, for wires that carry nothing else; none for a picture. A
/// skill is called with a sign that differs by agent.
pub(crate) fn plain(piece: &Content, skill: char) -> Option<String> {
    Some(match piece {
        Content::Text { text } => text.preview().to_owned(),
        Content::Resource { uri, text } => {
            format!("<document uri={uri:?}>\n{}\n</document>", text.preview())
        }
        Content::Link { uri, name: Some(name) } => format!("[{name}]({uri})"),
        Content::Link { uri, name: None } => uri.clone(),
        Content::Skill { name, .. } | Content::Mention { name, .. } => format!("{skill}{name}"),
        Content::Image { .. } => return None,
    })
}
