//! Our modes as the agent's, and what a mode means where the agent has none like it.

use tieline_event::{Mode, ToolKind};

/// Names that mean what our mode means.
fn exact(mode: Mode) -> &'static [&'static str] {
    match mode {
        Mode::Plan => &["plan", "planning", "architect"],
        Mode::Default => &["default", "manual", "normal", "readonly", "approve", "ask"],
        Mode::AcceptEdits => &["acceptedits", "autoedit", "autoedits", "workspacewrite", "write"],
        Mode::Auto => &["smartapprove", "auto"],
        Mode::BypassPermissions => {
            &["bypasspermissions", "bypass", "autoapprove", "autopilot", "auto"]
        }
        Mode::Yolo => &[
            "yolo",
            "agentfullaccess",
            "fullaccess",
            "dangerfullaccess",
            "bypasspermissions",
            "bypass",
            "autoapprove",
            "autopilot",
            "auto",
        ],
    }
}

/// Names that mean less than our mode, the nearest first. The rest is up to us. The last ones are
/// what agents call their only mode of work.
const NEAREST: [&str; 12] = [
    "acceptedits",
    "autoedit",
    "workspacewrite",
    "default",
    "manual",
    "normal",
    "readonly",
    "approve",
    "agent",
    "build",
    "code",
    "ask",
];

/// The part of [`NEAREST`] that writes without asking.
const N_WRITING: usize = 3;

/// A mode of the agent's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fit {
    /// Its id.
    pub(super) id: String,
    /// It means what ours means; else what it lets through is ours to refuse.
    pub(super) is_exact: bool,
}

/// The agent's mode to choose for ours.
pub(super) fn fit<'a>(mode: Mode, offered: impl Iterator<Item = &'a str>) -> Option<Fit> {
    let offered: Vec<(String, &str)> = offered.map(|id| (plain(id), id)).collect();
    let find = |names: &[&str]| {
        names.iter().find_map(|name| offered.iter().find(|(plain, _)| plain == name))
    };
    if let Some((_, id)) = find(exact(mode)) {
        return Some(Fit { id: (*id).to_owned(), is_exact: true });
    }
    let nearest = match mode {
        Mode::Plan | Mode::Default => NEAREST.get(N_WRITING..).unwrap_or_default(),
        // Some judge for themselves under the name of their usual mode of work.
        Mode::Auto if find(&["agent"]).is_some() => &["agent"],
        Mode::AcceptEdits | Mode::Auto | Mode::BypassPermissions | Mode::Yolo => &NEAREST,
    };
    find(nearest).map(|(_, id)| Fit { id: (*id).to_owned(), is_exact: false })
}

/// What a mode of the agent's means in our words.
pub(super) fn meaning(id: &str) -> Option<Mode> {
    let plain = plain(id);
    Mode::ALL.into_iter().find(|mode| exact(*mode).contains(&plain.as_str()))
}

/// Whether a mode lets less through than another.
pub(super) fn is_more_careful(mode: Mode, than: Mode) -> bool {
    let rank = |mode: Mode| Mode::ALL.iter().position(|it| *it == mode);
    rank(mode) < rank(than)
}

/// `https://…#auto-edit` and `Auto_Edit` are one name.
fn plain(id: &str) -> String {
    let name = id.rsplit(['#', '/']).next().unwrap_or(id);
    name.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).flat_map(char::to_lowercase).collect()
}

/// What is done about something the agent wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is done.
    Allow,
    /// The user decides.
    Ask,
    /// It is not done.
    Refuse,
}

/// About a file that is to be written by us, inside the workspace.
pub(super) fn on_write(mode: Mode) -> Verdict {
    match mode {
        Mode::Plan => Verdict::Refuse,
        Mode::Default => Verdict::Ask,
        Mode::AcceptEdits | Mode::Auto | Mode::BypassPermissions | Mode::Yolo => Verdict::Allow,
    }
}

/// About a file that other programs run or obey when they come across it.
pub(super) fn on_protected(mode: Mode) -> Verdict {
    match mode {
        Mode::Plan | Mode::BypassPermissions => Verdict::Refuse,
        Mode::Default | Mode::AcceptEdits | Mode::Auto => Verdict::Ask,
        Mode::Yolo => Verdict::Allow,
    }
}

/// About a command that is to be run by us.
pub(super) fn on_command(mode: Mode) -> Verdict {
    match mode {
        Mode::Plan => Verdict::Refuse,
        Mode::Default | Mode::AcceptEdits | Mode::Auto => Verdict::Ask,
        Mode::BypassPermissions | Mode::Yolo => Verdict::Allow,
    }
}

/// About something the agent asks leave for. `is_exact` says that the agent is in a mode that means
/// what ours means, so that it asks with reason; `is_inside` that it is about files in the
/// workspace only.
pub(super) fn on_permission(
    mode: Mode,
    is_exact: bool,
    kind: ToolKind,
    is_inside: bool,
) -> Verdict {
    let is_edit = matches!(kind, ToolKind::Edit | ToolKind::Delete | ToolKind::Move);
    let is_deed = is_edit || kind == ToolKind::Execute;
    match mode {
        // Whether to leave a plan is never a mode's to decide.
        _ if kind == ToolKind::SwitchMode => Verdict::Ask,
        Mode::BypassPermissions | Mode::Yolo => Verdict::Allow,
        Mode::Plan if !is_exact && is_deed => Verdict::Refuse,
        Mode::AcceptEdits | Mode::Auto if !is_exact && is_edit && is_inside => Verdict::Allow,
        _ => Verdict::Ask,
    }
}

#[test]
fn the_modes_of_known_agents_are_found() {
    let of = |mode, offered: &[&str]| {
        let fit = fit(mode, offered.iter().copied());
        fit.map(|fit| format!("{}{}", fit.id, if fit.is_exact { "" } else { "?" }))
            .unwrap_or_default()
    };
    let all = |offered: &[&str]| Mode::ALL.map(|mode| of(mode, offered));
    assert_eq!(
        all(&["default", "acceptEdits", "plan", "auto", "bypassPermissions"]),
        ["plan", "default", "acceptEdits", "auto", "bypassPermissions", "bypassPermissions"]
    );
    assert_eq!(
        all(&["read-only", "workspace-write", "agent", "agent-full-access"]),
        [
            "read-only?",
            "read-only",
            "workspace-write",
            "agent?",
            "workspace-write?",
            "agent-full-access"
        ]
    );
    assert_eq!(
        all(&["default", "autoEdit", "yolo", "plan"]),
        ["plan", "default", "autoEdit", "autoEdit?", "autoEdit?", "yolo"]
    );
    assert_eq!(
        all(&["auto", "approve", "smart_approve", "chat"]),
        ["approve?", "approve", "approve?", "smart_approve", "auto", "auto"]
    );
    assert_eq!(all(&["build", "plan"]), ["plan", "build?", "build?", "build?", "build?", "build?"]);
    let address = "https://example.com/modes#";
    let offered = ["agent", "plan", "autopilot"].map(|name| format!("{address}{name}"));
    let offered: Vec<&str> = offered.iter().map(String::as_str).collect();
    assert_eq!(of(Mode::Plan, &offered), format!("{address}plan"));
    assert_eq!(of(Mode::Yolo, &offered), format!("{address}autopilot"));
    assert_eq!(all(&["chatty"]), [""; 6]);
    assert_eq!(meaning("accept_edits"), Some(Mode::AcceptEdits));
    assert_eq!(meaning("chatty"), None);
}
