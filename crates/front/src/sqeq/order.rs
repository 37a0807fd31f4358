//! What a client asks, in our words.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use tieline_event::{AskWhen, Content, Errand, ImageSource, Inquiry, Json, Reach, ReviewTarget};
use tieline_wire::raw::Raw;
use tieline_wire::sqeq::{
    ApprovalPolicy, CollaborationMode, ConfigureSession, Decision, InputItem, Op,
    OverrideTurnContext, SandboxKind, SandboxPolicy, Submission, UserTurn,
};

#[cfg(test)]
mod tests;

/// The largest picture that is taken from a file.
const LARGEST_IMAGE: usize = 32 * 1024 * 1024;

/// A submission that was understood.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) id: String,
    pub(super) order: Order,
}

/// What to do.
#[derive(Debug)]
pub(super) enum Order {
    /// Configure the session, or do it again.
    Configure(Box<Configure>),
    /// Say something.
    Say(Box<Say>),
    /// Do something that is not an answer.
    Work(Work),
    /// Stop what runs.
    Interrupt,
    /// A yes or a no.
    Decide { id: String, what: Subject, verdict: Verdict },
    /// Answers to questions.
    Answer { id: String, answers: BTreeMap<String, Vec<String>> },
    /// Change the context from the next turn on.
    Override(Box<Context>),
    /// Remember a line of input.
    Remember(String),
    /// Give one back.
    Recall { offset: u64, log_id: u64 },
    /// The agent is asked about itself.
    Inquire(Inquiry),
    /// The conversation has another name.
    Rename(String),
    /// Say where the conversation is kept.
    Path,
    /// End.
    Shutdown,
    /// A token.
    Authenticate(String),
    /// Nothing, and why.
    Nothing(String),
    /// Nothing, because its fields are of another form, and how.
    Refused(String),
}

/// Work that is not a message.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Work {
    Compact,
    Undo,
    Rollback(u32),
    Shell(String),
    Review {
        target: ReviewTarget,
        /// As the client wrote it.
        told: Option<String>,
        hint: Option<String>,
    },
}

impl Work {
    pub(super) fn errand(&self) -> Errand {
        match self {
            Self::Compact => Errand::Compact,
            Self::Undo => Errand::Undo,
            Self::Rollback(turns) => Errand::Rollback { turns: *turns },
            Self::Shell(command) => Errand::Shell { command: command.clone() },
            Self::Review { target, .. } => Errand::Review { target: target.clone() },
        }
    }
}

/// What a yes or a no is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    Command,
    Patch,
    Server,
}

/// A yes or a no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Yes,
    YesForSession,
    /// And a rule for later.
    YesAlways,
    No(Option<String>),
    /// And the task ends.
    Stop,
}

/// What a session is configured with.
#[derive(Debug, Default)]
pub(super) struct Configure {
    pub(super) context: Context,
    /// The conversation to go on with.
    pub(super) resume: Option<String>,
    /// Fields that have no effect here.
    pub(super) left_out: Vec<&'static str>,
}

/// What the user says.
#[derive(Debug, Default)]
pub(super) struct Say {
    pub(super) content: Vec<Content>,
    pub(super) context: Context,
    pub(super) schema: Option<Json>,
    /// The bookmark to go on from.
    pub(super) after: Option<String>,
}

/// What changes about the context; none is as it was.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Context {
    pub(super) cwd: Option<PathBuf>,
    pub(super) ask: Option<AskWhen>,
    pub(super) sandbox: Option<Sandbox>,
    pub(super) model: Option<String>,
    pub(super) effort: Option<String>,
    pub(super) summary: Option<String>,
    pub(super) personality: Option<String>,
    pub(super) plan: Option<bool>,
}

/// What commands can reach.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sandbox {
    pub(super) reach: Reach,
    pub(super) network: bool,
    pub(super) roots: Vec<PathBuf>,
}

/// Which fields of a turn were there: those that were not leave the context as it is.
#[derive(Debug, Clone, Copy)]
struct Given {
    ask: bool,
    sandbox: bool,
    summary: bool,
}

impl Given {
    const ALL: Self = Self { ask: true, sandbox: true, summary: true };

    fn in_line(line: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Envelope<'a> {
            #[serde(borrow)]
            op: Fields<'a>,
        }
        #[derive(Deserialize)]
        struct Fields<'a> {
            #[serde(borrow)]
            approval_policy: Option<Raw<'a>>,
            #[serde(borrow)]
            sandbox_policy: Option<Raw<'a>>,
            #[serde(borrow)]
            summary: Option<Raw<'a>>,
        }
        match serde_json::from_slice::<Envelope<'_>>(line) {
            Ok(Envelope { op }) => Self {
                ask: op.approval_policy.is_some(),
                sandbox: op.sandbox_policy.is_some(),
                summary: op.summary.is_some(),
            },
            Err(_) => Self::ALL,
        }
    }
}

impl Incoming {
    /// Reads a line.
    pub(super) fn of_line(line: &[u8]) -> Result<Self, serde_json::Error> {
        let submission = Submission::parse(line)?;
        let given = match submission.op {
            Op::UserTurn(_) => Given::in_line(line),
            _ => Given::ALL,
        };
        Ok(Self::read(&submission, given))
    }

    /// Takes a submission that was made in this process.
    pub(super) fn of(submission: &Submission<'_>) -> Self {
        Self::read(submission, Given::ALL)
    }

    fn read(submission: &Submission<'_>, given: Given) -> Self {
        let order = order(&submission.op, given).unwrap_or_else(Order::Nothing);
        Self { id: submission.id.to_string(), order }
    }
}

fn order(op: &Op<'_>, given: Given) -> Result<Order, String> {
    Ok(match op {
        Op::ConfigureSession(it) => Order::Configure(Box::new(configure(it))),
        Op::Authenticate(it) => Order::Authenticate(it.token.to_string()),
        Op::Interrupt => Order::Interrupt,
        Op::UserInput(it) => Order::Say(Box::new(Say {
            content: content(&it.items)?,
            context: Context::default(),
            schema: schema(it.final_output_json_schema.as_ref()),
            after: text(it.response_id.as_deref()),
        })),
        Op::UserTurn(it) => Order::Say(Box::new(Say {
            content: content(&it.items)?,
            context: of_turn(it, given),
            schema: schema(Some(&it.final_output_json_schema)),
            after: text(it.response_id.as_deref()),
        })),
        Op::OverrideTurnContext(it) => Order::Override(Box::new(overridden(it))),
        Op::ExecApproval(it) => Order::Decide {
            id: it.id.to_string(),
            what: Subject::Command,
            verdict: verdict(&it.decision)?,
        },
        Op::PatchApproval(it) => Order::Decide {
            id: it.id.to_string(),
            what: Subject::Patch,
            verdict: verdict(&it.decision)?,
        },
        Op::UserInputAnswer(it) => {
            let Some(response) = &it.response else {
                let why = "an answer without a response: {\"response\":{\"answers\":{\"QUESTION\":\
                           {\"answers\":[\u{2026}]}}}} is understood; the question waits";
                return Ok(Order::Refused(why.to_owned()));
            };
            let answers = response.answers.iter();
            let answers = answers.map(|(id, given)| (id.clone(), given.answers.clone())).collect();
            Order::Answer { id: it.id.to_string(), answers }
        }
        Op::ResolveElicitation(it) => {
            let id = it.request_id.read::<String>();
            let id = id.unwrap_or_else(|| it.request_id.get().to_owned());
            let verdict = match &*it.decision {
                "accept" => Verdict::Yes,
                "decline" => Verdict::No(None),
                "cancel" => Verdict::Stop,
                other => return Err(format!("the decision {other:?} is not known")),
            };
            Order::Decide { id, what: Subject::Server, verdict }
        }
        Op::AddToHistory(it) => Order::Remember(it.text.to_string()),
        Op::GetHistoryEntryRequest(it) => Order::Recall { offset: it.offset, log_id: it.log_id },
        Op::GetPath => Order::Path,
        Op::Compact => Order::Work(Work::Compact),
        Op::Undo => Order::Work(Work::Undo),
        Op::ThreadRollback(it) if it.num_turns == 0 => {
            return Err("thread_rollback: num_turns must be 1 or more".to_owned());
        }
        Op::ThreadRollback(it) => Order::Work(Work::Rollback(it.num_turns)),
        Op::Review(it) => Order::Work(review(&it.review_request)?),
        Op::RunUserShellCommand(it) if it.command.trim().is_empty() => {
            return Err("run_user_shell_command: there is no command".to_owned());
        }
        Op::RunUserShellCommand(it) => Order::Work(Work::Shell(it.command.to_string())),
        Op::ListMcpTools => Order::Inquire(Inquiry::Tools),
        Op::ListCustomPrompts => Order::Inquire(Inquiry::Prompts),
        Op::ListSkills(it) => Order::Inquire(Inquiry::Skills {
            dirs: it.cwds.iter().map(ToString::to_string).collect(),
            reload: it.force_reload,
        }),
        Op::ListModels => Order::Inquire(Inquiry::Models),
        Op::SetThreadName(it) if it.name.trim().is_empty() => {
            return Err("set_thread_name: the name is empty".to_owned());
        }
        Op::SetThreadName(it) => Order::Rename(it.name.trim().to_owned()),
        Op::Shutdown => Order::Shutdown,
        // They are known, and what they are about is not there.
        Op::GetHistory
        | Op::DynamicToolResponse(_)
        | Op::RequestPermissionsResponse(_)
        | Op::RefreshMcpServers(_)
        | Op::CleanBackgroundTerminals
        | Op::ReloadUserConfig => {
            return Err(format!("{} has no effect here", op.kind()));
        }
        Op::Unknown(it) => return Err(format!("unknown op {:?}", &*it.kind)),
    })
}

fn text(text: Option<&str>) -> Option<String> {
    text.filter(|text| !text.is_empty()).map(str::to_owned)
}

fn schema(raw: Option<&Raw<'_>>) -> Option<Json> {
    raw.filter(|raw| !raw.is_null()).map(|raw| Json::from_raw(raw))
}

fn verdict(decision: &Decision<'_>) -> Result<Verdict, String> {
    Ok(match decision {
        Decision::Approved => Verdict::Yes,
        Decision::ApprovedForSession => Verdict::YesForSession,
        Decision::ApprovedExecpolicyAmendment { .. } => Verdict::YesAlways,
        Decision::Denied | Decision::TimedOut => Verdict::No(None),
        Decision::DeniedBecause { rejection } => Verdict::No(Some(rejection.to_string())),
        Decision::Abort => Verdict::Stop,
        Decision::Other(raw) => {
            return Err(format!(
                "the decision {} is not known; approved, approved_for_session, denied and abort are",
                raw.get()
            ));
        }
    })
}

fn configure(it: &ConfigureSession<'_>) -> Configure {
    let mut left_out = Vec::new();
    let mut note = |is_there: bool, name: &'static str| left_out.extend(is_there.then_some(name));
    note(it.instructions.is_some(), "instructions");
    note(it.user_instructions.is_some(), "user_instructions");
    note(it.base_instructions.is_some(), "base_instructions");
    note(it.provider.as_ref().is_some_and(|it| !it.is_null()), "provider");
    note(it.notify.is_some(), "notify");
    note(it.resume_path.is_some(), "resume_path");
    Configure {
        context: Context {
            cwd: text(it.cwd.as_deref()).map(PathBuf::from),
            ask: it.approval_policy.as_ref().map(ask),
            sandbox: it.sandbox_policy.as_ref().map(sandbox),
            model: text(it.model.as_deref()),
            effort: it.model_reasoning_effort.as_ref().map(|it| it.as_str().to_owned()),
            summary: it.model_reasoning_summary.as_ref().map(|it| it.as_str().to_owned()),
            ..Context::default()
        },
        resume: text(it.resume.as_deref()),
        left_out,
    }
}

fn of_turn(it: &UserTurn<'_>, given: Given) -> Context {
    Context {
        cwd: text(Some(&it.cwd)).map(PathBuf::from),
        ask: given.ask.then(|| ask(&it.approval_policy)),
        sandbox: given.sandbox.then(|| sandbox(&it.sandbox_policy)),
        model: text(Some(&it.model)),
        effort: it.effort.as_ref().map(|it| it.as_str().to_owned()),
        summary: given.summary.then(|| it.summary.as_str().to_owned()),
        personality: it.personality.as_ref().map(|it| it.as_str().to_owned()),
        plan: it.collaboration_mode.as_ref().map(plans),
    }
}

fn overridden(it: &OverrideTurnContext<'_>) -> Context {
    Context {
        cwd: text(it.cwd.as_deref()).map(PathBuf::from),
        ask: it.approval_policy.as_ref().map(ask),
        sandbox: it.sandbox_policy.as_ref().map(sandbox),
        model: text(it.model.as_deref()),
        effort: it.effort.iter().flatten().map(|it| it.as_str().to_owned()).next(),
        summary: it.summary.as_ref().map(|it| it.as_str().to_owned()),
        personality: it.personality.as_ref().map(|it| it.as_str().to_owned()),
        plan: it.collaboration_mode.as_ref().map(plans),
    }
}

fn plans(mode: &CollaborationMode<'_>) -> bool {
    &*mode.mode == "plan"
}

fn ask(policy: &ApprovalPolicy<'_>) -> AskWhen {
    match policy {
        ApprovalPolicy::Untrusted => AskWhen::Untrusted,
        ApprovalPolicy::OnFailure => AskWhen::OnFailure,
        ApprovalPolicy::Never => AskWhen::Never,
        // A finer one asks in some cases; the client can answer those that it does not want.
        ApprovalPolicy::OnRequest | ApprovalPolicy::Other(_) => AskWhen::OnRequest,
    }
}

fn sandbox(policy: &SandboxPolicy<'_>) -> Sandbox {
    let plain = |reach| Sandbox { reach, network: false, roots: Vec::new() };
    match &policy.kind {
        SandboxKind::WorkspaceWrite(it) => Sandbox {
            reach: Reach::WorkspaceWrite,
            network: it.network_access,
            roots: it.writable_roots.iter().map(|root| PathBuf::from(&**root)).collect(),
        },
        // What bounds the agent there is not ours.
        SandboxKind::DangerFullAccess | SandboxKind::ExternalSandbox { .. } => {
            plain(Reach::DangerFullAccess)
        }
        // The narrowest one for what is not understood.
        SandboxKind::ReadOnly | SandboxKind::Other(_) => plain(Reach::ReadOnly),
    }
}

fn review(raw: &Raw<'_>) -> Result<Work, String> {
    #[derive(Deserialize)]
    struct Request {
        target: Option<Box<serde_json::value::RawValue>>,
        prompt: Option<String>,
        user_facing_hint: Option<String>,
    }
    #[derive(Deserialize)]
    #[serde(tag = "type", rename_all = "camelCase")]
    enum Target {
        UncommittedChanges,
        BaseBranch { branch: String },
        Commit { sha: String, title: Option<String> },
        Custom { instructions: String },
    }
    let what = || "review: review_request needs a target, or a prompt".to_owned();
    let Request { target, prompt, user_facing_hint: hint } = raw.read().ok_or_else(what)?;
    let (target, told) = match (target, prompt) {
        (Some(told), _) => {
            let target = match serde_json::from_str(told.get()).map_err(|_| what())? {
                Target::UncommittedChanges => ReviewTarget::Uncommitted,
                Target::BaseBranch { branch } => ReviewTarget::Branch { branch },
                Target::Commit { sha, title } => ReviewTarget::Commit { sha, title },
                Target::Custom { instructions } => ReviewTarget::Custom { instructions },
            };
            (target, Some(told.get().to_owned()))
        }
        // The form up to 0.42.
        (None, Some(instructions)) => (ReviewTarget::Custom { instructions }, None),
        (None, None) => return Err(what()),
    };
    Ok(Work::Review { target, told, hint })
}

fn content(items: &[InputItem<'_>]) -> Result<Vec<Content>, String> {
    if items.is_empty() {
        return Err("there is nothing in items".to_owned());
    }
    items.iter().map(piece).collect()
}

fn piece(item: &InputItem<'_>) -> Result<Content, String> {
    Ok(match item {
        InputItem::Text(it) => Content::text(&*it.text),
        InputItem::Image(it) => match it.image_url.strip_prefix("data:") {
            Some(data) => {
                let (mime, data) = data
                    .split_once(";base64,")
                    .ok_or_else(|| "an image's data: URL must be base64".to_owned())?;
                Content::Image { mime: mime.to_owned(), source: ImageSource::Base64(data.into()) }
            }
            None => Content::Image {
                mime: mime(Path::new(&*it.image_url)).to_owned(),
                source: ImageSource::Url(it.image_url.to_string()),
            },
        },
        InputItem::LocalImage(it) => local_image(Path::new(&*it.path))?,
        InputItem::Skill(it) => {
            Content::Skill { name: it.name.to_string(), path: text(Some(&it.path)) }
        }
        InputItem::Mention(it) => {
            Content::Mention { name: it.name.to_string(), path: it.path.to_string() }
        }
        InputItem::Unknown(it) => return Err(format!("unknown input item {:?}", &*it.kind)),
    })
}

/// A picture goes to the agent as its bytes: not every agent can open files.
fn local_image(path: &Path) -> Result<Content, String> {
    let refused = |why: String| format!("local_image {}: {why}", path.display());
    let read = tieline_workspace::named(path)
        .and_then(|file| tieline_workspace::Content::of(&file, LARGEST_IMAGE));
    let read = read.map_err(|err| refused(err.to_string()))?;
    if read.is_cut {
        return Err(refused(format!("it has more than {LARGEST_IMAGE} bytes")));
    }
    let source = ImageSource::Base64(STANDARD.encode(read.bytes).into());
    Ok(Content::Image { mime: mime(path).to_owned(), source })
}

fn mime(path: &Path) -> &'static str {
    let ending = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
    match ending.to_ascii_lowercase().as_str() {
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        _ => "image/png",
    }
}
