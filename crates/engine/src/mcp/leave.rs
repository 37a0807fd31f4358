//! Whether a tool of a server may run.

use tieline_event::AskWhen;

use crate::command::{Ask, Granular, Sandbox, Terms};

#[cfg(test)]
mod tests;

/// Whether a tool of a server may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// It runs.
    Run,
    /// Somebody is asked, for this reason.
    Ask(&'static str),
    /// It does not, for this reason.
    Forbid(&'static str),
}

/// A tool that its server says only looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// It only looks.
    ReadOnly,
    /// Nothing is said of that.
    None,
}

/// Whether a tool of a server may run. No sandbox of ours holds it, so where commands may not write
/// it is asked for, unless its server says that it only looks.
///
/// `granted` says that somebody allowed this tool for the session.
pub fn leave(terms: &Terms, hint: Hint, granted: bool) -> Leave {
    if hint == Hint::ReadOnly {
        return Leave::Run;
    }
    if terms.plan {
        return Leave::Forbid("nothing is changed while planning; put it into the plan");
    }
    if granted {
        return Leave::Run;
    }
    let is_held = terms.sandbox == Sandbox::ReadOnly;
    match terms.ask {
        Ask::When(AskWhen::Never) => Leave::Run,
        Ask::When(AskWhen::Untrusted) => Leave::Ask("it is not known to be harmless"),
        Ask::When(AskWhen::OnRequest | AskWhen::OnFailure) | Ask::Granular(_) if !is_held => {
            Leave::Run
        }
        Ask::Granular(Granular { sandbox_approval: false, .. }) => Leave::Forbid(
            "it may change things where nothing may be written, and nobody is asked here; find \
             another way",
        ),
        Ask::When(AskWhen::OnRequest | AskWhen::OnFailure) | Ask::Granular(_) => {
            Leave::Ask("it may change things where nothing may be written")
        }
    }
}
