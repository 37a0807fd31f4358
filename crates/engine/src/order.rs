//! What the engine is asked, owned and read: the line it came in is gone by then.

use std::collections::BTreeMap;

use serde::Deserialize;
use tieline_event::ReviewTarget;
use tieline_wire::raw::Raw;
use tieline_wire::sqeq::{
    ApprovalPolicy, Decision, Effort, InputItem, Op, Personality, SandboxKind, SandboxPolicy,
    Submission, Summary,
};
use tieline_wire::text::Str;

use crate::context::{Asking, Change, Reaching};

/// A submission.
#[derive(Debug)]
pub(crate) struct Order {
    /// The client's id.
    pub(crate) id: String,
    /// What.
    pub(crate) what: What,
}

/// What is asked.
#[derive(Debug)]
pub(crate) enum What {
    /// Configure the session anew.
    Configure(Change),
    /// Say something, with a context of its own.
    Turn {
        pieces: Vec<Piece>,
        change: Change,
        schema: Option<String>,
        after: Option<String>,
    },
    /// Say something, with the context as it is.
    Input {
        pieces: Vec<Piece>,
        schema: Option<String>,
    },
    Override(Change),
    Interrupt,
    Decide {
        id: String,
        verdict: Verdict,
    },
    Answers {
        id: String,
        answers: BTreeMap<String, Vec<String>>,
    },
    Elicited {
        server: String,
        request: String,
        accepted: Option<Option<String>>,
    },
    Compact,
    Review {
        target: ReviewTarget,
        hint: Option<String>,
    },
    Undo,
    Rollback(u32),
    Shell(String),
    Skills {
        dirs: Vec<String>,
        reload: bool,
    },
    Prompts,
    Tools,
    Models,
    Clean,
    Shutdown,
    /// An op that means nothing here.
    Other(String),
}

/// A piece of what the user says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    Text(String),
    Image(String),
    LocalImage(String),
    Skill { name: String, path: String },
    Mention { name: String, path: String },
}

/// An answer to a request for leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Yes,
    ForSession,
    /// Yes, and whatever begins so from now on.
    Always(Vec<String>),
    No(Option<String>),
    Abort,
}

impl Order {
    /// Reads a submission.
    pub(crate) fn of(submission: Submission<'_>) -> Self {
        let Submission { id, op } = submission;
        Self { id: id.into(), what: What::of(op) }
    }
}

impl What {
    fn of(op: Op<'_>) -> Self {
        match op {
            Op::ConfigureSession(it) => {
                let instructions = it.user_instructions.as_deref().or(it.instructions.as_deref());
                Self::Configure(Change {
                    cwd: owned(it.cwd),
                    asking: it.approval_policy.as_ref().map(asking),
                    reaching: it.sandbox_policy.as_ref().map(reaching),
                    model: owned(it.model),
                    effort: it.model_reasoning_effort.as_ref().map(|it| Some(effort(it))),
                    summary: it.model_reasoning_summary.as_ref().map(summary),
                    instructions: instructions.map(str::to_owned),
                    base: owned(it.base_instructions),
                    ..Change::default()
                })
            }
            Op::UserTurn(it) => Self::Turn {
                pieces: pieces(&it.items),
                schema: text_of(&it.final_output_json_schema),
                after: owned(it.response_id),
                change: Change {
                    cwd: Some(it.cwd.to_string()).filter(|cwd| !cwd.is_empty()),
                    asking: Some(asking(&it.approval_policy)),
                    reaching: Some(reaching(&it.sandbox_policy)),
                    model: Some(it.model.to_string()).filter(|model| !model.is_empty()),
                    effort: it.effort.as_ref().map(|it| Some(effort(it))),
                    summary: Some(summary(&it.summary)),
                    plan: it.collaboration_mode.as_ref().map(|mode| &*mode.mode == "plan"),
                    personality: it.personality.as_ref().map(personality),
                    ..Change::default()
                },
            },
            Op::UserInput(it) => Self::Input {
                pieces: pieces(&it.items),
                schema: it.final_output_json_schema.as_ref().and_then(text_of),
            },
            Op::OverrideTurnContext(it) => Self::Override(Change {
                cwd: owned(it.cwd),
                asking: it.approval_policy.as_ref().map(asking),
                reaching: it.sandbox_policy.as_ref().map(reaching),
                model: owned(it.model),
                effort: it.effort.as_ref().map(|it| it.as_ref().map(effort)),
                summary: it.summary.as_ref().map(summary),
                plan: it.collaboration_mode.as_ref().map(|mode| &*mode.mode == "plan"),
                personality: it.personality.as_ref().map(personality),
                ..Change::default()
            }),
            Op::Interrupt => Self::Interrupt,
            Op::ExecApproval(it) => {
                Self::Decide { id: it.id.into(), verdict: verdict(&it.decision) }
            }
            Op::PatchApproval(it) => {
                Self::Decide { id: it.id.into(), verdict: verdict(&it.decision) }
            }
            Op::UserInputAnswer(it) => {
                let response = it.response.unwrap_or_default();
                let answers = response.answers.into_iter();
                let answers = answers.map(|(id, given)| (id, given.answers)).collect();
                Self::Answers { id: it.id.into(), answers }
            }
            Op::ResolveElicitation(it) => Self::Elicited {
                server: it.server_name.into(),
                request: it.request_id.get().to_owned(),
                accepted: (&*it.decision == "accept")
                    .then(|| it.content.as_ref().and_then(text_of)),
            },
            Op::Compact => Self::Compact,
            Op::Review(it) => review(&it.review_request),
            Op::Undo => Self::Undo,
            Op::ThreadRollback(it) => Self::Rollback(it.num_turns),
            Op::RunUserShellCommand(it) => Self::Shell(it.command.into()),
            Op::ListSkills(it) => Self::Skills {
                dirs: it.cwds.into_iter().map(String::from).collect(),
                reload: it.force_reload,
            },
            Op::ListCustomPrompts => Self::Prompts,
            Op::ListMcpTools => Self::Tools,
            Op::ListModels => Self::Models,
            Op::CleanBackgroundTerminals => Self::Clean,
            Op::Shutdown => Self::Shutdown,
            Op::Unknown(it) => Self::Other(it.kind.to_string()),
            other => Self::Other(
                format!("{other:?}").chars().take_while(|c| c.is_alphabetic()).collect(),
            ),
        }
    }
}

fn owned(text: Option<Str<'_>>) -> Option<String> {
    text.map(String::from)
}

fn text_of(raw: &Raw<'_>) -> Option<String> {
    (!raw.is_null()).then(|| raw.get().to_owned())
}

fn effort(effort: &Effort) -> String {
    effort.as_str().to_owned()
}

fn summary(summary: &Summary) -> String {
    summary.as_str().to_owned()
}

fn personality(personality: &Personality) -> String {
    personality.as_str().to_owned()
}

fn pieces(items: &[InputItem<'_>]) -> Vec<Piece> {
    items
        .iter()
        .map(|item| match item {
            InputItem::Text(it) => Piece::Text(it.text.to_string()),
            InputItem::Image(it) => Piece::Image(it.image_url.to_string()),
            InputItem::LocalImage(it) => Piece::LocalImage(it.path.to_string()),
            InputItem::Skill(it) => {
                Piece::Skill { name: it.name.to_string(), path: it.path.to_string() }
            }
            InputItem::Mention(it) => {
                Piece::Mention { name: it.name.to_string(), path: it.path.to_string() }
            }
            InputItem::Unknown(it) => Piece::Text(format!("[{} is not understood]", &*it.kind)),
        })
        .collect()
}

fn verdict(decision: &Decision<'_>) -> Verdict {
    match decision {
        Decision::Approved => Verdict::Yes,
        Decision::ApprovedForSession => Verdict::ForSession,
        Decision::ApprovedExecpolicyAmendment { proposed_execpolicy_amendment } => {
            let words = proposed_execpolicy_amendment.iter().map(|word| word.to_string());
            Verdict::Always(words.collect())
        }
        Decision::DeniedBecause { rejection } => Verdict::No(Some(rejection.to_string())),
        Decision::Abort => Verdict::Abort,
        Decision::Denied | Decision::TimedOut | Decision::Other(_) => Verdict::No(None),
    }
}

fn asking(policy: &ApprovalPolicy<'_>) -> Asking {
    /// The finer policy. What it does not allow to be asked is refused.
    #[derive(Deserialize)]
    struct Other {
        granular: Granular,
    }
    #[derive(Deserialize)]
    #[serde(default)]
    struct Granular {
        sandbox_approval: bool,
        rules: bool,
    }
    impl Default for Granular {
        fn default() -> Self {
            Self { sandbox_approval: true, rules: true }
        }
    }
    match policy {
        ApprovalPolicy::Untrusted => Asking::Untrusted,
        ApprovalPolicy::OnFailure => Asking::OnFailure,
        ApprovalPolicy::OnRequest => Asking::OnRequest,
        ApprovalPolicy::Never => Asking::Never,
        ApprovalPolicy::Other(raw) => match raw.read::<Other>() {
            Some(Other { granular: Granular { sandbox_approval, rules } }) => {
                Asking::Granular { sandbox: sandbox_approval, rules }
            }
            // A word that is not known must not open anything.
            None => Asking::Untrusted,
        },
    }
}

fn reaching(policy: &SandboxPolicy<'_>) -> Reaching {
    match &policy.kind {
        SandboxKind::ReadOnly | SandboxKind::Other(_) => Reaching::ReadOnly,
        SandboxKind::WorkspaceWrite(it) => Reaching::Workspace {
            roots: it.writable_roots.iter().map(|root| root.to_string().into()).collect(),
            network: it.network_access,
            tmpdir: !it.exclude_tmpdir_env_var,
            slash_tmp: !it.exclude_slash_tmp,
        },
        SandboxKind::DangerFullAccess | SandboxKind::ExternalSandbox { .. } => Reaching::Everything,
    }
}

fn review(request: &Raw<'_>) -> What {
    #[derive(Deserialize)]
    struct Request<'a> {
        #[serde(borrow, default)]
        target: Raw<'a>,
        #[serde(default)]
        prompt: Option<String>,
        #[serde(default)]
        user_facing_hint: Option<String>,
    }
    let Some(request) = request.read::<Request<'_>>() else {
        return What::Other("a review of nothing".to_owned());
    };
    let target = match (request.target.is_null(), request.prompt) {
        (true, Some(instructions)) => ReviewTarget::Custom { instructions },
        (true, None) => ReviewTarget::Uncommitted,
        (false, _) => match crate::review::read_target(request.target.get()) {
            Ok(target) => target,
            Err(why) => return What::Other(format!("this review ({why})")),
        },
    };
    What::Review { target, hint: request.user_facing_hint }
}
