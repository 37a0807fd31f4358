//! Events and deltas as a person reads them. Sans-IO: entries in, bytes out.

use std::collections::HashMap;

use tieline_event::{
    Answer, Configured, Delta, Event, Exited, FrameRange, Item, ItemBody, ItemId, ItemStatus, Kind,
    Notice, NoticeLevel, Origin, Plan, PlanStatus, RequestBody, Resolved, Stream, Text, Timestamp,
    ToolClass, TurnCompleted, TurnStarted, TurnStatus,
};

use super::ending::ending;
use super::page::{Page, Style, Voices};
use super::width::fit;
use crate::review::{Room, review};
use crate::sanitize::{Sanitizer, one_line, sanitize};
use crate::{Fetch, summary, whole};

pub use super::page::{Layout, Look};

#[cfg(test)]
mod tests;

/// Shows one conversation.
#[derive(Debug)]
pub struct Renderer {
    page: Page,
    growing: HashMap<ItemId, Growing>,
    running: Vec<Running>,
    depths: HashMap<ItemId, usize>,
    plan: Option<Plan>,
    turn_began: Option<Timestamp>,
    said_something: bool,
    is_introduced: bool,
    is_asking: bool,
    /// What was asked last is a question, not an approval.
    asks_question: bool,
    n_ticks: usize,
    workspace: Option<String>,
    shows_requests: bool,
}

/// A message of which a part was shown.
#[derive(Debug, Default)]
struct Growing {
    shown: u64,
    sanitizer: Sanitizer,
    has_begun: bool,
}

/// A tool at work.
#[derive(Debug)]
struct Running {
    item: ItemId,
    label: String,
    since: Timestamp,
    /// The frames its last event was read from.
    frames: Option<FrameRange>,
    /// What it does was shown as something else: a plan.
    is_told: bool,
}

/// Lines are not indented further: agents choose how deep their work is nested.
const DEEPEST: usize = 8;

const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// How much of a thought is shown.
const THOUGHT: usize = 160;

/// How many of the last lines of a failed command's output are shown.
const FAILED_LINES: usize = 8;

impl Renderer {
    /// Nothing shown yet.
    pub fn new(look: Look) -> Self {
        Self {
            page: Page::new(look),
            growing: HashMap::new(),
            running: Vec::new(),
            depths: HashMap::new(),
            plan: None,
            turn_began: None,
            said_something: false,
            is_introduced: false,
            is_asking: false,
            asks_question: false,
            n_ticks: 0,
            workspace: None,
            shows_requests: true,
        }
    }

    /// Somebody else shows what is asked.
    #[must_use]
    pub fn without_requests(self) -> Self {
        Self { shows_requests: false, ..self }
    }

    /// What somebody is to decide about. Everything in it is visible.
    pub(crate) fn rows(&mut self, rows: &[String]) {
        rows.iter().for_each(|row| self.page.line(0, Style::Bold, row));
    }

    /// Moves what is to be written to the ends of these: output and error output.
    pub fn take(&mut self, out: &mut Vec<u8>, err: &mut Vec<u8>) {
        self.page.take(out, err);
    }

    /// A preview. Only the main agent's message is shown while it grows.
    pub fn delta(&mut self, delta: &Delta) {
        if delta.stream != Stream::Text || delta.parent.is_some() {
            return;
        }
        let shown = self.growing.entry(delta.item.clone()).or_default().shown;
        // What came before was not seen here: the item's next event has it all.
        let Some(skip) = shown.checked_sub(delta.offset) else { return };
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        if let Some(fresh) = delta.text.get(skip..) {
            self.say(&delta.item, fresh);
        }
    }

    /// A durable event.
    pub fn event(&mut self, event: &Event, fetch: &mut Fetch<'_>) {
        let depth = event.parent.as_ref().map_or(0, |parent| self.depth_below(parent));
        match &event.kind {
            Kind::ConversationOpened(opened) => {
                self.workspace = Some(opened.workspace.clone());
                if self.page.look.voices == Voices::Both {
                    let from = opened.forked_from.as_ref();
                    let from = from.map(|from| format!(", branched off from {from}"));
                    let text = format!(
                        "— {} with {} in {}, mode {}{}",
                        event.conversation,
                        opened.agent,
                        opened.workspace,
                        opened.mode,
                        from.unwrap_or_default()
                    );
                    self.page.line(0, Style::Dim, &one_line(&text));
                }
            }
            Kind::ConversationConfigured(configured) => self.introduce(configured),
            Kind::ConversationClosed(_)
            | Kind::UsageUpdated(_)
            | Kind::TurnStep(_)
            | Kind::ProcessSpawned(_) => {}
            Kind::TurnStarted(started) => self.turn_started(started, event.ts),
            Kind::TurnCompleted(end) => self.turn_completed(end, fetch),
            Kind::ItemStarted(item) | Kind::ItemUpdated(item) => {
                self.item_grows(item, depth, event);
            }
            Kind::ItemCompleted(item) => self.item_completed(item, depth, event.ts, fetch),
            Kind::PlanUpdated(plan) => {
                // One line of the agent is both a tool call and a plan; the plan says it better.
                for running in &mut self.running {
                    running.is_told |=
                        running.frames.is_some() && running.frames == event.source.frames;
                }
                self.plan_updated(plan, depth);
            }
            Kind::RequestOpened(request) => {
                self.is_asking = true;
                self.asks_question = matches!(request.body, RequestBody::Question { .. });
                if self.shows_requests {
                    let review = review(request, self.workspace.as_deref(), fetch);
                    let width = self.page.room(depth);
                    let how = format!("tieline show {} shows all of it", event.conversation);
                    let room = match self.page.look.voices {
                        Voices::Both => Room::boundless(width),
                        Voices::Agent => Room { width, rows: 60, bytes: 64 * 1024, how: &how },
                    };
                    for row in review.rows(&room).rows {
                        self.page.line(depth, Style::Bold, &row);
                    }
                }
            }
            Kind::RequestResolved(resolved) => self.resolved(resolved, depth),
            Kind::RequestExpired(expired) => {
                self.is_asking = false;
                let text = format!("→ no answer needed any more: {}", one_line(&expired.reason));
                self.page.line(depth, Style::Dim, &text);
            }
            Kind::Notice(notice) => self.notice(notice, depth),
            Kind::ProcessExited(exited) => self.exited(exited),
            Kind::TaskMarker(marker) => {
                self.page.line(depth, Style::Dim, &format!("· {}", summary::task_marker(marker)));
            }
            Kind::Unparsed(unparsed) => {
                let reason = one_line(&unparsed.reason);
                let amount = summary::unread(unparsed);
                let text = format!("· {amount} from the agent not understood: {reason}");
                self.page.line(depth, Style::Dim, &text);
            }
        }
    }

    /// A line of our own among the others.
    pub fn note(&mut self, text: &str) {
        self.page.line(0, Style::Dim, &sanitize(text));
    }

    /// The dialogue has the screen: nothing is live until it is over.
    pub fn set_asking(&mut self, is_asking: bool) {
        self.is_asking = is_asking;
        self.page.erase_live();
    }

    /// Time went by: brings the live line up to date.
    pub fn tick(&mut self, now: Timestamp) {
        let began = match self.running.first() {
            Some(running) => Some(running.since),
            None => self.turn_began,
        };
        let Some(began) = began.filter(|_| !self.is_asking) else {
            self.page.erase_live();
            return;
        };
        let seconds = (now.as_millis() - began.as_millis()).max(0) / 1000;
        let sign = SPINNER.get(self.n_ticks % SPINNER.len()).copied().unwrap_or('·');
        self.n_ticks += 1;
        let label = self.running.first().map_or("working", |running| &running.label);
        let room = self.page.room(0).saturating_sub(24);
        let label = fit(label, room);
        let more = match self.running.len() {
            0 | 1 => String::new(),
            n => format!(" (+{} more)", n - 1),
        };
        self.page.live(&format!("{sign} {label} · {seconds} s{more}"));
    }

    /// Leaves the screen in order: no live line, no half line.
    pub fn finish(&mut self) {
        self.page.erase_live();
        self.page.close_text();
    }

    fn depth_below(&self, parent: &ItemId) -> usize {
        (self.depths.get(parent).copied().unwrap_or(0) + 1).min(DEEPEST)
    }

    fn say(&mut self, item: &ItemId, fresh: &str) {
        let growing = self.growing.entry(item.clone()).or_default();
        growing.shown += fresh.len() as u64;
        let mut clean = String::new();
        growing.sanitizer.push(fresh, &mut clean);
        let mut text = clean.as_str();
        if !growing.has_begun {
            text = text.trim_start_matches('\n');
            growing.has_begun = !text.is_empty();
        }
        self.said_something |= !text.is_empty();
        self.page.text(item, text);
    }

    /// The rest of a message of which the first part was shown.
    fn say_rest(&mut self, item: &ItemId, text: &Text, fetch: &mut Fetch<'_>) {
        let shown = self.growing.get(item).map_or(0, |growing| growing.shown);
        if text.len() <= shown {
            return;
        }
        let whole = whole(text, fetch);
        let shown = usize::try_from(shown).unwrap_or(usize::MAX);
        if let Some(rest) = whole.get(shown..) {
            self.say(item, rest);
        }
    }

    fn introduce(&mut self, configured: &Configured) {
        if self.is_introduced || configured.agent_version.is_none() && configured.model.is_none() {
            return;
        }
        self.is_introduced = true;
        let mut facts = Vec::new();
        if let Some(version) = &configured.agent_version {
            facts.push(format!("version {version}"));
        }
        if let Some(model) = &configured.model {
            facts.push(format!("model {model}"));
        }
        if let Some(mode) = configured.mode {
            facts.push(match configured.policy {
                Some(policy) => format!("policy {policy}"),
                None => format!("mode {mode}"),
            });
        }
        self.page.line(0, Style::Dim, &one_line(&format!("· {}", facts.join(", "))));
    }

    fn turn_started(&mut self, started: &TurnStarted, ts: Timestamp) {
        self.turn_began = Some(ts);
        self.said_something = false;
        if started.origin == Origin::Agent {
            self.page.line(0, Style::Dim, "· the agent goes on by itself");
        }
    }

    fn turn_completed(&mut self, end: &TurnCompleted, fetch: &mut Fetch<'_>) {
        if !self.said_something && end.status == TurnStatus::Completed && !end.text.is_empty() {
            self.say_rest(&ItemId::from("the turn's own text"), &end.text, fetch);
        }
        self.page.close_text();
        self.page.erase_live();
        self.growing.clear();
        self.running.clear();
        self.turn_began = None;
        self.is_asking = false;
        if self.page.look.voices == Voices::Both {
            let style = if end.status == TurnStatus::Failed { Style::Bad } else { Style::Dim };
            for line in ending(end) {
                self.page.line(0, style, &line);
            }
        }
    }

    fn item_grows(&mut self, item: &Item, depth: usize, event: &Event) {
        match &item.body {
            ItemBody::AgentMessage { text: Text::Inline(_) } if depth > 0 => {}
            ItemBody::AgentMessage { text: text @ Text::Inline(_) } => {
                self.say_rest(&item.id, text, &mut |_| None);
            }
            ItemBody::AgentMessage { .. }
            | ItemBody::UserMessage { .. }
            | ItemBody::Reasoning { .. }
            | ItemBody::Plan { .. }
            | ItemBody::Review { .. }
            | ItemBody::Image { .. }
            | ItemBody::Compaction { .. } => {}
            ItemBody::Command { .. }
            | ItemBody::FileChange { .. }
            | ItemBody::ToolCall { .. }
            | ItemBody::WebSearch { .. } => {
                let label = match is_bare(&item.body) {
                    true => item.body.name().replace('_', " "),
                    false => summary::label(&item.body),
                };
                if let ItemBody::ToolCall { class: ToolClass::SubAgent, .. } = &item.body
                    && !is_bare(&item.body)
                    && !self.depths.contains_key(&item.id)
                {
                    self.depths.insert(item.id.clone(), depth);
                    let line = fit(&format!("▸ {label}"), self.page.room(depth));
                    self.page.line(depth, Style::Plain, &line);
                }
                if let Some(running) = self.running.iter_mut().find(|r| r.item == item.id) {
                    running.label = label;
                    running.frames = event.source.frames;
                    return;
                }
                self.running.push(Running {
                    item: item.id.clone(),
                    label,
                    since: event.ts,
                    frames: event.source.frames,
                    is_told: false,
                });
            }
        }
    }

    fn item_completed(&mut self, item: &Item, depth: usize, ts: Timestamp, fetch: &mut Fetch<'_>) {
        match &item.body {
            ItemBody::UserMessage { content } => {
                let text = summary::content(content, |text| whole(text, fetch));
                if depth > 0 {
                    let text = summary::cut(&one_line(&text), THOUGHT);
                    self.page.line(depth, Style::Dim, &format!("> {text}"));
                } else if self.page.look.voices == Voices::Both {
                    self.page.line(0, Style::Bold, &quote(&sanitize(text.trim_end())));
                }
            }
            ItemBody::AgentMessage { text } if depth > 0 => {
                let text = sanitize(&whole(text, fetch));
                self.page.line(depth, Style::Plain, text.trim_matches('\n'));
            }
            ItemBody::AgentMessage { text } => {
                self.say_rest(&item.id, text, fetch);
                self.page.close_text();
            }
            ItemBody::Reasoning { text, .. } => {
                let thought = one_line(text.preview());
                if !thought.is_empty() {
                    let line = format!("· {}", summary::cut(&thought, THOUGHT));
                    self.page.line(depth, Style::Dim, &line);
                }
            }
            ItemBody::Plan { text } | ItemBody::Review { text, .. } => {
                let title =
                    if matches!(item.body, ItemBody::Plan { .. }) { "Plan" } else { "Review" };
                self.page.line(depth, Style::Bold, title);
                let text = sanitize(&whole(text, fetch));
                self.page.line(depth + 1, Style::Plain, text.trim_matches('\n'));
            }
            _ => self.tool_completed(item, depth, ts),
        }
    }

    fn tool_completed(&mut self, item: &Item, depth: usize, ts: Timestamp) {
        let at = self.running.iter().position(|running| running.item == item.id);
        let running = at.map(|at| self.running.remove(at));
        if running.as_ref().is_some_and(|it| it.is_told) && item.status == ItemStatus::Ok {
            return;
        }
        if item.status == ItemStatus::Cancelled && is_bare(&item.body) {
            return; // nobody knows what it would have been
        }
        let since = running.map(|running| running.since);
        let (sign, word) = summary::outcome(item.status);
        let mut facts = Vec::new();
        if !word.is_empty() {
            facts.push(word.to_owned());
        }
        if let ItemBody::Command { exit_code: Some(code), .. } = &item.body
            && *code != 0
        {
            facts.push(format!("exit {code}"));
        }
        let millis = since.map_or(0, |since| ts.as_millis().saturating_sub(since.as_millis()));
        if millis >= 1000 {
            facts.push(summary::duration(u64::try_from(millis).unwrap_or(0)));
        }
        let facts = match facts.is_empty() {
            true => String::new(),
            false => format!(" ({})", facts.join(", ")),
        };
        let room = self.page.room(depth).saturating_sub(facts.chars().count() + 2);
        let label = fit(&summary::label(&item.body), room.max(20));
        let style = match item.status {
            ItemStatus::Ok => Style::Good,
            ItemStatus::InProgress => Style::Plain,
            ItemStatus::Failed | ItemStatus::TimedOut => Style::Bad,
            ItemStatus::Denied | ItemStatus::Declined | ItemStatus::Cancelled => Style::Warn,
        };
        self.page.line(depth, style, &format!("{sign} {label}{facts}"));
        if item.status == ItemStatus::Failed
            && let Some(tail) = failed_output(&item.body)
        {
            self.page.line(depth + 1, Style::Dim, &tail);
        }
    }

    fn plan_updated(&mut self, plan: &Plan, depth: usize) {
        let before = self.plan.replace(plan.clone());
        let same_steps = before.as_ref().is_some_and(|before| {
            before.entries.len() == plan.entries.len()
                && before.entries.iter().zip(&plan.entries).all(|(a, b)| a.text == b.text)
        });
        if let Some(explanation) = &plan.explanation {
            self.page.line(depth, Style::Plain, &one_line(explanation));
        }
        for (at, entry) in plan.entries.iter().enumerate() {
            let old = before.as_ref().and_then(|before| before.entries.get(at));
            if same_steps && old.is_some_and(|old| old.status == entry.status) {
                continue;
            }
            let (sign, style) = match entry.status {
                PlanStatus::Pending => ('☐', Style::Plain),
                PlanStatus::InProgress => ('▸', Style::Bold),
                PlanStatus::Completed => ('☑', Style::Dim),
            };
            self.page.line(depth + 1, style, &format!("{sign} {}", one_line(&entry.text)));
        }
    }

    fn resolved(&mut self, resolved: &Resolved, depth: usize) {
        self.is_asking = false;
        let by = match &resolved.policy {
            Some(policy) => format!(" by policy ({})", one_line(policy)),
            None => String::new(),
        };
        let text = match (self.asks_question, &resolved.answer) {
            (true, Answer::Deny { stop: false, .. }) => {
                format!("→ not answered{by}; the agent goes on without it")
            }
            _ => format!("→ {}{by}", resolved.answer.summary()),
        };
        self.page.line(depth, Style::Dim, &text);
    }

    fn notice(&mut self, notice: &Notice, depth: usize) {
        let (sign, style) = match notice.level {
            NoticeLevel::Info => ('·', Style::Dim),
            NoticeLevel::Warning => ('!', Style::Warn),
            NoticeLevel::Error => ('✗', Style::Bad),
        };
        self.page.line(depth, style, &format!("{sign} {}", one_line(&notice.text)));
    }

    fn exited(&mut self, exited: &Exited) {
        if exited.killed > 0 {
            let text = format!("· {} processes the agent left behind were ended", exited.killed);
            self.page.line(0, Style::Dim, &text);
        }
        if exited.cut {
            let text = "! the agent's output was cut: something it started held the pipe open";
            self.page.line(0, Style::Warn, text);
        }
    }
}

/// The last lines of what a failed tool printed.
fn failed_output(body: &ItemBody) -> Option<String> {
    let text = match body {
        ItemBody::Command { output: Text::Inline(text), .. }
        | ItemBody::Command { output: Text::Blob { tail: text, .. }, .. } => text.clone(),
        ItemBody::ToolCall { output, .. } => {
            summary::content(output, |text| text.preview().to_owned())
        }
        _ => return None,
    };
    let clean = sanitize(text.trim_end());
    let mut lines: Vec<&str> = clean.lines().rev().take(FAILED_LINES).collect();
    lines.reverse();
    (!clean.is_empty()).then(|| lines.join("\n"))
}

/// Whether of a call nothing but its name is known: what it is given comes after that.
fn is_bare(body: &ItemBody) -> bool {
    match body {
        ItemBody::Command { command, .. } => command.is_empty(),
        ItemBody::FileChange { changes } => changes.is_empty(),
        ItemBody::ToolCall { title, input, .. } => title.is_none() && input.is_none(),
        ItemBody::WebSearch { query, .. } => query.is_empty(),
        _ => false,
    }
}

fn quote(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| format!("> {line}")).collect();
    lines.join("\n")
}
