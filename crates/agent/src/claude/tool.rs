//! Claude Code's tools as items.

use std::fmt::Write;

use serde::Deserialize;
use serde_json::value::RawValue;
use tieline_event::{
    ChangeKind, Content, FileChange, ImageSource, Item, ItemBody, ItemStatus, Json, Plan,
    PlanEntry, PlanStatus, Text, ToolClass,
};
use tieline_wire::claude::{Block, Blocks};
use tieline_wire::text::Str;

use super::gist;
use crate::words::first_line;

/// The inputs of the tools that have items of their own: the fields of all of them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Input<'a> {
    #[serde(borrow)]
    command: Option<Str<'a>>,
    #[serde(borrow)]
    description: Option<Str<'a>>,
    run_in_background: Option<bool>,
    #[serde(borrow)]
    file_path: Option<Str<'a>>,
    #[serde(borrow)]
    notebook_path: Option<Str<'a>>,
    #[serde(borrow)]
    content: Option<Str<'a>>,
    #[serde(borrow)]
    old_string: Option<Str<'a>>,
    #[serde(borrow)]
    new_string: Option<Str<'a>>,
    #[serde(borrow)]
    edits: Vec<Edit<'a>>,
    #[serde(borrow)]
    query: Option<Str<'a>>,
    #[serde(borrow)]
    plan: Option<Str<'a>>,
    #[serde(borrow)]
    pattern: Option<Str<'a>>,
    #[serde(borrow)]
    url: Option<Str<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Edit<'a> {
    #[serde(borrow)]
    old_string: Str<'a>,
    #[serde(borrow)]
    new_string: Str<'a>,
}

/// The item of a tool call that begins.
pub(super) fn begun(name: &str, raw: Option<&RawValue>) -> ItemBody {
    let input: Input<'_> =
        raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let path = input.file_path.as_deref().or(input.notebook_path.as_deref());
    match (name, path) {
        ("Bash", _) => {
            return ItemBody::Command {
                command: input.command.as_deref().unwrap_or_default().to_owned(),
                cwd: None,
                description: input.description.as_deref().map(str::to_owned),
                output: Text::default(),
                exit_code: None,
                background: input.run_in_background.unwrap_or(false),
                gist: None,
            };
        }
        ("Write", Some(path)) => {
            return ItemBody::FileChange {
                changes: vec![FileChange {
                    path: path.to_owned(),
                    kind: ChangeKind::Add,
                    moved_to: None,
                    old_text: None,
                    new_text: input.content.as_deref().map(Text::from),
                    diff: None,
                }],
            };
        }
        ("Edit" | "MultiEdit" | "NotebookEdit", Some(path)) => {
            return ItemBody::FileChange {
                changes: vec![FileChange {
                    path: path.to_owned(),
                    kind: ChangeKind::Update,
                    moved_to: None,
                    old_text: None,
                    new_text: None,
                    diff: edits_as_diff(&input),
                }],
            };
        }
        ("WebSearch", _) => {
            return ItemBody::WebSearch {
                query: input.query.as_deref().unwrap_or_default().to_owned(),
                output: Vec::new(),
            };
        }
        _ => {}
    }
    let (class, server, tool) = match name.strip_prefix("mcp__").and_then(|s| s.split_once("__")) {
        Some((server, tool)) => (ToolClass::Mcp, Some(server.to_owned()), tool),
        None if matches!(name, "Task" | "Agent") => (ToolClass::SubAgent, None, name),
        None => (ToolClass::Generic, None, name),
    };
    let title = [path, input.pattern.as_deref(), input.url.as_deref()]
        .into_iter()
        .flatten()
        .next()
        .map(|subject| format!("{tool} {}", first_line(subject)))
        .or_else(|| input.description.as_deref().map(first_line));
    ItemBody::ToolCall {
        class,
        tool: tool.to_owned(),
        server,
        title,
        input: raw.map(Json::from_raw),
        output: Vec::new(),
        gist: gist::of(name, raw),
    }
}

/// The item of a tool call whose input is still being written.
pub(super) fn announced(name: &str) -> ItemBody {
    match name {
        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => {
            ItemBody::FileChange { changes: Vec::new() }
        }
        _ => begun(name, None),
    }
}

fn edits_as_diff(input: &Input<'_>) -> Option<Text> {
    let mut diff = String::new();
    let single = input.old_string.as_deref().zip(input.new_string.as_deref());
    let several = input.edits.iter().map(|edit| (&*edit.old_string, &*edit.new_string));
    for (old, new) in single.into_iter().chain(several) {
        for (sign, text) in [('-', old), ('+', new)] {
            for line in text.lines() {
                writeln!(diff, "{sign}{line}").expect("writing to a String cannot fail");
            }
        }
    }
    (!diff.is_empty()).then(|| Text::from(diff))
}

/// What a tool itself says of its result, beside what the model is told.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Sidecar<'a> {
    #[serde(borrow)]
    stdout: Option<Str<'a>>,
    #[serde(borrow)]
    stderr: Option<Str<'a>>,
    #[serde(borrow)]
    background_task_id: Option<Str<'a>>,
    /// Where the whole output is, if it is too long to be told.
    #[serde(borrow)]
    persisted_output_path: Option<Str<'a>>,
    /// How many bytes that is.
    persisted_output_size: Option<u64>,
    #[serde(borrow)]
    file_path: Option<Str<'a>>,
    #[serde(borrow, rename = "type")]
    kind: Option<Str<'a>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    old_string: Option<Str<'a>>,
    #[serde(borrow)]
    new_string: Option<Str<'a>>,
    #[serde(borrow)]
    original_file: Option<Str<'a>>,
    #[serde(borrow)]
    structured_patch: Vec<Hunk<'a>>,
    replace_all: Option<bool>,
    is_async: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Hunk<'a> {
    old_start: u64,
    old_lines: u64,
    new_start: u64,
    new_lines: u64,
    #[serde(borrow)]
    lines: Vec<Str<'a>>,
}

/// Puts a result into its item. Says whether the work goes on in the background.
pub(super) fn finish(item: &mut Item, block: &Block<'_>, sidecar: Option<&RawValue>) -> bool {
    let sidecar: Sidecar<'_> =
        sidecar.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let ok = item.status == ItemStatus::Ok;
    match &mut item.body {
        ItemBody::Command { output, exit_code, background, .. } => {
            let text = result_text(block);
            let told = match (&sidecar.stdout, ok) {
                (Some(stdout), true) => {
                    let marked = with_cut_marked(stdout, &sidecar);
                    lines(&marked, sidecar.stderr.as_deref().unwrap_or_default())
                }
                _ => after_exit_code(&text).to_owned(),
            };
            if sidecar.background_task_id.is_some() {
                // The agent's word names the file that the output goes to.
                *output = lines(&told, &text).into();
                (*exit_code, *background) = (None, true);
                return true;
            }
            *output = told.into();
            *exit_code = if ok { Some(0) } else { exit_code_of(&text) };
        }
        ItemBody::FileChange { changes } => {
            if let (true, Some(change)) = (ok, changes.first_mut()) {
                changed(change, &sidecar);
            }
        }
        ItemBody::ToolCall { output, .. } | ItemBody::WebSearch { output, .. } => {
            *output = result_content(block);
            return sidecar.is_async == Some(true);
        }
        _ => {}
    }
    false
}

/// A background task is over. What a command printed is in a file.
pub(super) fn conclude(item: &mut Item, summary: &str, file: Option<&str>) {
    match &mut item.body {
        ItemBody::Command { output, exit_code, .. } => {
            let code = summary
                .rsplit_once("(exit code ")
                .and_then(|(_, rest)| rest.strip_suffix(')'))
                .and_then(|code| code.parse().ok());
            *exit_code = code;
            let mut told = lines(output.preview(), summary);
            if let Some(file) = file.filter(|file| !told.contains(file)) {
                told = lines(&told, &format!("[the whole output is in {file}]"));
            }
            *output = told.into();
        }
        ItemBody::ToolCall { output, .. } if !summary.is_empty() => {
            *output = vec![Content::text(summary)];
        }
        _ => {}
    }
}

fn changed(change: &mut FileChange, sidecar: &Sidecar<'_>) {
    if let Some(path) = sidecar.file_path.as_deref() {
        path.clone_into(&mut change.path);
    }
    let created = sidecar.kind.as_deref() == Some("create");
    let before = sidecar.original_file.as_deref().filter(|_| !created);
    change.kind = if created || (change.new_text.is_some() && before.is_none()) {
        ChangeKind::Add
    } else {
        ChangeKind::Update
    };
    change.old_text = before.map(Text::from);
    if let Some(content) = sidecar.content.and_then(|raw| serde_json::from_str(raw.get()).ok()) {
        change.new_text = Some(Text::Inline(content));
    } else if let (Some(before), Some(old), Some(new)) =
        (before, sidecar.old_string.as_deref(), sidecar.new_string.as_deref())
    {
        change.new_text = Some(match sidecar.replace_all {
            Some(true) => before.replace(old, new).into(),
            _ => before.replacen(old, new, 1).into(),
        });
    }
    if !sidecar.structured_patch.is_empty() {
        change.diff = Some(hunks_as_diff(&sidecar.structured_patch).into());
    }
}

fn hunks_as_diff(hunks: &[Hunk<'_>]) -> String {
    let mut diff = String::new();
    for hunk in hunks {
        let Hunk { old_start, old_lines, new_start, new_lines, lines } = hunk;
        writeln!(diff, "@@ -{old_start},{old_lines} +{new_start},{new_lines} @@")
            .expect("writing to a String cannot fail");
        for line in lines {
            diff.push_str(line);
            diff.push('\n');
        }
    }
    diff
}

/// One text below the other.
fn lines(above: &str, below: &str) -> String {
    match (above, below) {
        (text, "") | ("", text) => text.to_owned(),
        (above, below) if above.ends_with('\n') => format!("{above}{below}"),
        (above, below) => format!("{above}\n{below}"),
    }
}

/// Output of which the agent tells a part: how much that is, and where all of it is.
fn with_cut_marked(stdout: &str, sidecar: &Sidecar<'_>) -> String {
    let told = stdout.len();
    let mark = match (sidecar.persisted_output_size, sidecar.persisted_output_path.as_deref()) {
        (Some(size), _) if size <= told as u64 => return stdout.to_owned(),
        (Some(size), Some(path)) => {
            format!("[the agent tells {told} of {size} bytes; the whole output is in {path}]")
        }
        (Some(size), None) => format!("[the agent tells {told} of {size} bytes]"),
        (None, Some(path)) => format!("[the agent tells a part; the whole output is in {path}]"),
        (None, None) => return stdout.to_owned(),
    };
    lines(stdout, &mark)
}

fn exit_code_of(text: &str) -> Option<i32> {
    text.strip_prefix("Exit code ")?.split(['\n', ' ']).next()?.parse().ok()
}

fn after_exit_code(text: &str) -> &str {
    match exit_code_of(text) {
        Some(_) => text.split_once('\n').map_or("", |(_, rest)| rest),
        None => text,
    }
}

/// The text the model is given as a tool's result.
pub(super) fn result_text(block: &Block<'_>) -> String {
    let mut text = String::new();
    for piece in result_content(block) {
        if let Some(piece) = piece.as_text() {
            text.push_str(piece.preview());
        }
    }
    text
}

fn result_content(block: &Block<'_>) -> Vec<Content> {
    #[derive(Deserialize)]
    struct Source {
        #[serde(default)]
        media_type: String,
        #[serde(default)]
        data: String,
        #[serde(default)]
        url: Option<String>,
    }
    let Some(raw) = block.content else { return Vec::new() };
    let Ok(Blocks(blocks)) = serde_json::from_str::<Blocks<'_>>(raw.get()) else {
        return vec![Content::text(raw.get())];
    };
    blocks
        .iter()
        .map(|piece| match (&*piece.kind, piece.source) {
            ("image", Some(source)) => match serde_json::from_str::<Source>(source.get()) {
                Ok(Source { media_type, url: Some(url), .. }) => {
                    Content::Image { mime: media_type, source: ImageSource::Url(url) }
                }
                Ok(Source { media_type, data, url: None }) => {
                    Content::Image { mime: media_type, source: ImageSource::Base64(data.into()) }
                }
                Err(_) => Content::text(source.get()),
            },
            _ => Content::text(piece.text.as_deref().unwrap_or_default()),
        })
        .collect()
}

/// The whole list of steps that `TodoWrite` writes.
pub(super) fn todos(input: &RawValue) -> Option<Plan> {
    #[derive(Deserialize)]
    struct Todos {
        todos: Vec<Todo>,
    }
    #[derive(Deserialize)]
    struct Todo {
        content: String,
        #[serde(default)]
        status: String,
    }
    let Todos { todos } = serde_json::from_str(input.get()).ok()?;
    let entries = todos
        .into_iter()
        .map(|todo| PlanEntry { text: todo.content, status: step_status(&todo.status) })
        .collect();
    Some(Plan { entries, explanation: None })
}

fn step_status(status: &str) -> PlanStatus {
    match status {
        "in_progress" => PlanStatus::InProgress,
        "completed" => PlanStatus::Completed,
        _ => PlanStatus::Pending,
    }
}

/// The number and text of the step that `TaskCreate` made.
pub(super) fn created_step(sidecar: Option<&RawValue>) -> Option<(u64, String)> {
    #[derive(Deserialize)]
    struct Created {
        task: Task,
    }
    #[derive(Deserialize)]
    struct Task {
        id: String,
        subject: String,
    }
    let Created { task } = serde_json::from_str(sidecar?.get()).ok()?;
    Some((task.id.parse().ok()?, task.subject))
}

/// What `TaskUpdate` changes.
pub(super) struct StepUpdate {
    pub(super) id: u64,
    pub(super) status: Option<PlanStatus>,
    pub(super) text: Option<String>,
    pub(super) deleted: bool,
}

pub(super) fn updated_step(input: &Json) -> Option<StepUpdate> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Update {
        task_id: String,
        #[serde(default)]
        status: Option<String>,
        #[serde(default)]
        subject: Option<String>,
    }
    let update: Update = input.read().ok()?;
    Some(StepUpdate {
        id: update.task_id.parse().ok()?,
        deleted: update.status.as_deref() == Some("deleted"),
        status: update.status.as_deref().map(step_status),
        text: update.subject,
    })
}

/// The plan that `ExitPlanMode` was called with.
pub(super) fn plan_text(input: &Json) -> Option<String> {
    input.read::<Input<'_>>().ok()?.plan.map(String::from)
}
