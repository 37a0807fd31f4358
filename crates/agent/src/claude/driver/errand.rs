//! Work that is not a message: Claude Code has commands for some of it. And what it tells of itself.

use tieline_event::{Errand, Inquiry, Report, ReviewTarget, SkillInfo, SkillsAt};

use super::{Call, ClaudeDriver};
use crate::driver::Refused;
use crate::ledger::Ledger;

/// Its command that reviews changes.
const REVIEW: &str = "code-review";

impl ClaudeDriver {
    /// The command that does some work.
    pub(super) fn words_for(&self, errand: &Errand) -> Result<String, Refused> {
        let refused = |why: &str| Err(Refused(format!("Claude Code {why}")));
        match errand {
            Errand::Compact => Ok("/compact".to_owned()),
            Errand::Review { target } => {
                let known = &self.abilities.commands;
                if !known.is_empty() && known.iter().all(|command| command.name != REVIEW) {
                    return refused("of this version has no /code-review; update it");
                }
                Ok(match target {
                    ReviewTarget::Uncommitted => format!("/{REVIEW}"),
                    ReviewTarget::Branch { branch: about }
                    | ReviewTarget::Commit { sha: about, .. }
                    | ReviewTarget::Custom { instructions: about } => format!("/{REVIEW} {about}"),
                })
            }
            Errand::Undo => refused("has no undo here; ask it to take its changes back"),
            Errand::Rollback { .. } => refused("forgets no turns here"),
            Errand::Shell { .. } => {
                refused("runs no command of yours here; run it in a terminal and tell what it said")
            }
        }
    }

    /// Whether it has still to tell what it has.
    pub(super) fn is_being_initialized(&self) -> bool {
        self.calls.values().any(|call| matches!(call, Call::Initialize))
    }

    /// Tells what it told of itself.
    pub(super) fn tell(&self, number: u64, inquiry: &Inquiry, ledger: &mut Ledger) {
        let report = match inquiry {
            Inquiry::Models => Report::Models(self.abilities.models.clone()),
            _ => {
                let known = &self.abilities.commands;
                let info = |name: &String| SkillInfo {
                    name: name.clone(),
                    description: known
                        .iter()
                        .find(|command| command.name == *name)
                        .and_then(|command| command.description.clone())
                        .unwrap_or_default(),
                    short_description: None,
                    path: String::new(),
                    scope: String::new(),
                    enabled: true,
                };
                let skills: Vec<SkillInfo> = self.abilities.skills.iter().map(info).collect();
                if skills.is_empty() {
                    let why = "Claude Code names its skills when its first turn begins";
                    return ledger.report(number, Err(why.to_owned()));
                }
                Report::Skills(vec![SkillsAt { skills, ..SkillsAt::default() }])
            }
        };
        ledger.report(number, Ok(report));
    }
}
