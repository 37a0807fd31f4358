//! Commands: asked for where that is wanted, held where that is wanted, told as they print.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use tieline_proc::TerminalSize;
use tieline_wire::raw::Raw;
use tieline_wire::sqeq::{
    self, Chunk, EventMsg, ExecApprovalRequest, ExecCommandBegin, ExecCommandEnd,
    ExecCommandOutputDelta, OutputStream, TerminalInteraction,
};
use tieline_wire::text::Str;
use tokio::sync::mpsc;

use super::{Outcome, Scene, leave, patch};
use crate::calls::Call;
use crate::command::{self, Asked, Decision, Rule, Sandbox};
use crate::exec::{Input, Ran, SessionId, Start, State, Stream, Update, Wrap};
use crate::order::Verdict;

/// Pieces of output that wait to be told.
const UPDATES: usize = 16;

/// What a model is shown of an output, if it does not say.
const SHOWN: usize = 10_000;

/// The terminal of a command that wants one.
const TERMINAL: TerminalSize = TerminalSize { rows: 24, columns: 80 };

/// What the model says of leaving the sandbox.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Wishes {
    #[serde(default)]
    sandbox_permissions: Option<String>,
    #[serde(default)]
    with_escalated_permissions: Option<bool>,
    #[serde(default)]
    justification: Option<String>,
    #[serde(default)]
    prefix_rule: Option<Vec<String>>,
}

impl Wishes {
    fn escalate(&self) -> bool {
        self.sandbox_permissions.as_deref() == Some("require_escalated")
            || self.with_escalated_permissions == Some(true)
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct ExecArgs {
    cmd: String,
    #[serde(default)]
    workdir: Option<PathBuf>,
    #[serde(default)]
    shell: Option<String>,
    #[serde(default = "yes")]
    login: bool,
    #[serde(default)]
    tty: bool,
    #[serde(default)]
    yield_time_ms: Option<u64>,
    #[serde(default)]
    max_output_tokens: Option<usize>,
    #[serde(flatten)]
    wishes: Wishes,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Deserialize)]
pub(super) struct WriteArgs {
    session_id: u32,
    #[serde(default)]
    chars: String,
    #[serde(default)]
    yield_time_ms: Option<u64>,
    #[serde(default)]
    max_output_tokens: Option<usize>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ShellArgs {
    command: Vec<String>,
    #[serde(default)]
    workdir: Option<PathBuf>,
    #[serde(default, alias = "timeout")]
    timeout_ms: Option<u64>,
    #[serde(flatten)]
    wishes: Wishes,
}

#[derive(Debug, Deserialize)]
pub(super) struct LineArgs {
    command: String,
    #[serde(default)]
    workdir: Option<PathBuf>,
    #[serde(default = "yes")]
    login: bool,
    #[serde(default, alias = "timeout")]
    timeout_ms: Option<u64>,
    #[serde(flatten)]
    wishes: Wishes,
}

/// A command that is to run.
struct Job<'a> {
    scene: &'a Scene,
    call: &'a Call,
    argv: Vec<String>,
    cwd: PathBuf,
    wishes: Wishes,
    source: &'static str,
    how: How,
}

/// How a command runs.
#[derive(Clone, Copy)]
enum How {
    /// To its end.
    Once { timeout: Option<Duration> },
    /// For a while, and on.
    Session { tty: bool, wait: Option<Duration>, shown: usize },
}

/// What came of a run.
struct Result {
    /// For the model.
    shown: String,
    /// The command, if it ended.
    ran: Option<Ran>,
}

/// `exec_command`.
pub(super) async fn exec(scene: &Scene, call: &Call, args: ExecArgs) -> Outcome {
    let shell = args.shell.unwrap_or_else(|| scene.shared.settings.shell.clone());
    let flag = if args.login { "-lc" } else { "-c" };
    let job = Job {
        scene,
        call,
        argv: vec![shell, flag.to_owned(), args.cmd],
        cwd: directory(scene, args.workdir),
        wishes: args.wishes,
        source: "unified_exec_startup",
        how: How::Session {
            tty: args.tty,
            wait: args.yield_time_ms.map(Duration::from_millis),
            shown: args.max_output_tokens.unwrap_or(SHOWN),
        },
    };
    job.run().await
}

/// `shell`.
pub(super) async fn shell(scene: &Scene, call: &Call, args: ShellArgs) -> Outcome {
    let how = How::Once { timeout: args.timeout_ms.map(Duration::from_millis) };
    let cwd = directory(scene, args.workdir);
    Job { scene, call, argv: args.command, cwd, wishes: args.wishes, source: "agent", how }
        .run()
        .await
}

/// `shell_command`.
pub(super) async fn shell_line(scene: &Scene, call: &Call, args: LineArgs) -> Outcome {
    let flag = if args.login { "-lc" } else { "-c" };
    let argv = vec![scene.shared.settings.shell.clone(), flag.to_owned(), args.command];
    let how = How::Once { timeout: args.timeout_ms.map(Duration::from_millis) };
    let cwd = directory(scene, args.workdir);
    Job { scene, call, argv, cwd, wishes: args.wishes, source: "agent", how }.run().await
}

/// A command of the user's own: nobody is asked, nothing holds it.
pub(crate) async fn of_user(scene: &Scene, call: &Call, line: String) -> (String, Option<Ran>) {
    let job = Job {
        scene,
        call,
        argv: vec![scene.shared.settings.shell.clone(), "-lc".to_owned(), line],
        cwd: scene.context.cwd.clone(),
        wishes: Wishes::default(),
        source: "user_shell",
        how: How::Once { timeout: Some(Duration::from_secs(3600)) },
    };
    let Result { shown, ran } = job.start(Sandbox::None).await;
    (shown, ran)
}

/// `write_stdin`.
pub(super) async fn write(scene: &Scene, call: &Call, args: WriteArgs) -> Outcome {
    let id = SessionId(args.session_id);
    if !args.chars.is_empty() {
        let event = TerminalInteraction {
            call_id: Str::Borrowed(&call.id),
            process_id: Str::Owned(id.to_string()),
            stdin: Str::Borrowed(&args.chars),
        };
        scene.shared.out.send(&scene.task, EventMsg::TerminalInteraction(event)).await;
    }
    let wait = args.yield_time_ms.map(Duration::from_millis);
    match scene.shared.commands.write(id, args.chars.as_bytes(), wait).await {
        Ok(yielded) => {
            if let State::Ended(ran) = &yielded.state {
                scene.shared.tell_end(&scene.task, id, ran).await;
            }
            Outcome::said(yielded.to_model(args.max_output_tokens.unwrap_or(SHOWN)))
        }
        Err(error) => Outcome::failed(error.to_string()),
    }
}

fn directory(scene: &Scene, workdir: Option<PathBuf>) -> PathBuf {
    match workdir.filter(|dir| !dir.as_os_str().is_empty()) {
        Some(dir) => scene.context.path(dir),
        None => scene.context.cwd.clone(),
    }
}

impl Job<'_> {
    async fn run(self) -> Outcome {
        if let Some((text, workdir)) = patch::in_command(&self.argv) {
            let workdir = workdir.map_or_else(|| self.cwd.clone(), |dir| self.cwd.join(dir));
            return patch::apply(self.scene, self.call, &text, Some(&workdir)).await;
        }
        let shared = &self.scene.shared;
        let terms = self.scene.context.terms();
        let escalate = self.wishes.escalate();
        let decision = {
            let asked = Asked {
                command: &self.argv,
                escalate,
                justification: self.wishes.justification.as_deref(),
                suggested: self.wishes.prefix_rule.as_deref(),
                granted: shared.granted().has_command(&self.argv, &self.cwd, escalate),
            };
            command::decide(&terms, &asked, &shared.rules())
        };
        let sandbox = match decision {
            Decision::Forbid { reason } => return Outcome::forbidden(reason),
            Decision::Run { within } => within,
            Decision::Ask { why, said, proposed_rule, within } => {
                let leave = leave::Terms { why, said, ..leave::Terms::default() };
                match self.ask(leave.within(self.scene, within), proposed_rule).await {
                    Leave::Given => within,
                    Leave::Refused(outcome) => return outcome,
                }
            }
        };
        let first = self.start(sandbox).await;
        let kept_out = first.ran.as_ref().is_some_and(|ran| {
            sandbox.is_ours() && command::looks_denied(ran.ended.code(), &ran.output.text)
        });
        let Some(reason) = command::retry_outside(&terms).filter(|_| kept_out) else {
            return Outcome::said(first.shown);
        };
        let again = leave::Terms {
            why: reason.to_owned(),
            said: self.wishes.justification.clone(),
            is_retry: true,
            ..leave::Terms::default()
        };
        match self.ask(again.within(self.scene, Sandbox::None), None).await {
            Leave::Given => Outcome::said(self.start(Sandbox::None).await.shown),
            // What it printed is more use to the model than the no.
            Leave::Refused(outcome) if outcome.aborts => outcome,
            Leave::Refused(_) => Outcome::said(first.shown),
        }
    }

    /// Asks for leave.
    async fn ask(&self, terms: leave::Terms, rule: Option<Vec<String>>) -> Leave {
        let Self { scene, call, argv, cwd, .. } = self;
        let event = ExecApprovalRequest {
            call_id: Str::Borrowed(&call.id),
            command: argv.iter().map(|word| Str::Borrowed(word.as_str())).collect(),
            cwd: Str::Owned(cwd.display().to_string()),
            reason: Some(terms.sentence()),
            tieline: Some(terms.besides()),
            turn_id: Some(Str::Borrowed(&scene.task)),
            parsed_cmd: Some(parsed(argv)),
            proposed_execpolicy_amendment: rule.as_ref().and_then(|rule| Raw::of(rule).ok()),
            ..ExecApprovalRequest::default()
        };
        let answer = scene.shared.asked.leave(&scene.task, &call.id);
        let event = EventMsg::ExecApprovalRequest(Box::new(event));
        scene.shared.out.send(&scene.task, event).await;
        match answer.get().await.unwrap_or(Verdict::Abort) {
            Verdict::Yes => Leave::Given,
            Verdict::ForSession => {
                scene.shared.granted().command(argv, cwd, self.wishes.escalate());
                Leave::Given
            }
            Verdict::Always(prefix) => {
                if let Err(error) = scene.shared.add_rule(Rule::allow(prefix)).await {
                    scene.shared.out.warn(&scene.task, error).await;
                }
                Leave::Given
            }
            Verdict::No(why) => Leave::Refused(Outcome::rejected(why)),
            Verdict::Abort => Leave::Refused(Outcome::aborted()),
        }
    }

    /// Runs it.
    async fn start(&self, sandbox: Sandbox) -> Result {
        let Self { scene, call, argv, cwd, source, how, .. } = self;
        let shared = &scene.shared;
        let begin = ExecCommandBegin {
            call_id: Str::Borrowed(&call.id),
            command: argv.iter().map(|word| Str::Borrowed(word.as_str())).collect(),
            cwd: Str::Owned(cwd.display().to_string()),
            parsed_cmd: parsed(argv),
            turn_id: Some(Str::Borrowed(&scene.task)),
            source: Some(Str::Borrowed(source)),
            ..ExecCommandBegin::default()
        };
        shared.out.send(&scene.task, EventMsg::ExecCommandBegin(Box::new(begin))).await;
        let input = match how {
            How::Session { tty: true, .. } => Input::Terminal(TERMINAL),
            How::Session { tty: false, .. } => Input::Pipe,
            How::Once { .. } => Input::None,
        };
        let (listener, updates) = mpsc::channel(UPDATES);
        let mut start = Start::new(
            argv.iter().map(OsString::from),
            cwd.clone(),
            shared.environment(&scene.context, input, sandbox),
        );
        start.input = input;
        start.wrap = self.wrap(sandbox);
        start.listener = Some(listener);
        if let How::Once { timeout } = how {
            start.timeout = *timeout;
        }
        let telling = tell(scene, &call.id, updates);
        let running = async {
            match how {
                How::Once { .. } => shared.commands.run(start).await.map(|ran| {
                    let shown = ran.to_model(SHOWN);
                    (shown, State::Ended(Box::new(ran)))
                }),
                How::Session { wait, shown, .. } => {
                    let yielded = shared.commands.exec(start, *wait).await;
                    yielded.map(|it| (it.to_model(*shown), it.state))
                }
            }
        };
        // A session goes on after the call, and so does the telling of its output.
        let telling = tokio::spawn(telling);
        let ran = running.await;
        match ran {
            Ok((shown, State::Ended(ran))) => {
                // Everything it printed is told before its end.
                drop(telling.await);
                self.tell_end(&ran, &shown).await;
                Result { shown, ran: Some(*ran) }
            }
            Ok((shown, State::Running(id) | State::Interrupted(id))) => {
                shared.began(id, call, argv);
                Result { shown, ran: None }
            }
            Err(error) => {
                telling.abort();
                let shown = error.to_string();
                self.tell_failed(&shown).await;
                Result { shown, ran: None }
            }
        }
    }

    fn wrap(&self, sandbox: Sandbox) -> Option<Wrap> {
        let policy = self.scene.shared.policy(&self.scene.context, sandbox)?;
        Some(Box::new(move |program, args| {
            let wrapped = tieline_sandbox::wrap(&policy, program, args);
            wrapped.map(|it| (it.program, it.args)).map_err(|error| error.to_string())
        }))
    }

    async fn tell_end(&self, ran: &Ran, shown: &str) {
        let event = end_event(&self.call.id, &self.scene.task, &self.argv, ran, shown);
        let event = EventMsg::ExecCommandEnd(Box::new(event));
        self.scene.shared.out.send(&self.scene.task, event).await;
    }

    async fn tell_failed(&self, why: &str) {
        let event = ExecCommandEnd {
            call_id: Str::Borrowed(&self.call.id),
            stderr: Str::Borrowed(why),
            aggregated_output: Str::Borrowed(why),
            formatted_output: Str::Borrowed(why),
            exit_code: -1,
            status: Some("failed".into()),
            turn_id: Some(Str::Borrowed(&self.scene.task)),
            ..ExecCommandEnd::default()
        };
        let event = EventMsg::ExecCommandEnd(Box::new(event));
        self.scene.shared.out.send(&self.scene.task, event).await;
    }
}

/// Whether a command may run.
enum Leave {
    Given,
    Refused(Outcome),
}

/// The end of a command as the protocol tells it.
pub(crate) fn end_event<'a>(
    call: &'a str,
    task: &'a str,
    argv: &'a [String],
    ran: &'a Ran,
    shown: &'a str,
) -> ExecCommandEnd<'a> {
    let code = ran.ended.code();
    ExecCommandEnd {
        call_id: Str::Borrowed(call),
        stdout: Str::Borrowed(&ran.stdout.text),
        stderr: Str::Borrowed(&ran.stderr.text),
        aggregated_output: Str::Borrowed(&ran.output.text),
        exit_code: code,
        duration: sqeq::Duration {
            secs: ran.ended.elapsed.as_secs(),
            nanos: ran.ended.elapsed.subsec_nanos(),
        },
        formatted_output: Str::Borrowed(shown),
        status: Some(if code == 0 { "completed" } else { "failed" }.into()),
        turn_id: Some(Str::Borrowed(task)),
        command: Some(argv.iter().map(|word| Str::Borrowed(word.as_str())).collect()),
        ..ExecCommandEnd::default()
    }
}

/// Tells output as it comes, until the command has ended.
fn tell(
    scene: &Scene,
    call: &str,
    mut updates: mpsc::Receiver<Update>,
) -> impl Future<Output = ()> + Send + 'static {
    let (out, task, call) = (scene.shared.out.clone(), scene.task.clone(), call.to_owned());
    async move {
        while let Some(update) = updates.recv().await {
            let Update::Output { stream, bytes } = update else { return };
            let event = ExecCommandOutputDelta {
                call_id: Str::Borrowed(&call),
                stream: match stream {
                    Stream::Stdout => OutputStream::Stdout,
                    Stream::Stderr => OutputStream::Stderr,
                },
                chunk: Chunk::Bytes(bytes.into()),
            };
            out.send(&task, EventMsg::ExecCommandOutputDelta(event)).await;
        }
    }
}

/// What a command does, as far as that is plain.
fn parsed(argv: &[String]) -> Raw<'static> {
    Raw::of(&command::parsed_cmd(argv)).unwrap_or_default()
}
