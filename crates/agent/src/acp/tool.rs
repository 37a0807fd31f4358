//! Tool calls of the agent as items of ours.

use std::path::Path;

use serde_json::Value;
use tieline_event::{
    ChangeKind, Content, FileChange, Gist, ImageSource, ItemBody, ItemId, ItemStatus, Json, Place,
    Text, ToolClass, ToolKind,
};
use tieline_wire::acp::read::{Block, ToolCall, ToolContent};

use crate::codex::{bare_command, bare_words};
use crate::words::{first_line, plain};

/// How much is told of why a change failed.
const MOST_TROUBLE: usize = 4096;

/// A tool call, as far as it was told.
#[derive(Debug, Default)]
pub(super) struct Tool {
    /// The item it is told as.
    pub(super) item: Option<ItemId>,
    pub(super) kind: ToolKind,
    pub(super) title: Option<String>,
    pub(super) name: Option<String>,
    pub(super) status: Status,
    /// The terminal that shows its output.
    pub(super) terminal: Option<String>,
    /// The call whose work this is.
    pub(super) parent: Option<String>,
    /// How much of its output was shown while it ran.
    pub(super) n_streamed: usize,
    /// What somebody said yes to: the files and the command it was about then.
    granted: Option<(Vec<String>, Option<String>)>,
    pub(super) places: Vec<Place>,
    pub(super) diffs: Vec<FileChange>,
    content: Vec<Content>,
    input: Option<Json>,
    output: Option<Json>,
    cwd: Option<String>,
    exit_code: Option<i32>,
    is_mcp: bool,
    server: Option<String>,
}

/// How far a call is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Status {
    #[default]
    Pending,
    Running,
    Completed,
    Failed,
}

impl Status {
    /// How that is told; nothing is declined here.
    pub(super) fn told(self) -> ItemStatus {
        match self {
            Self::Pending | Self::Running => ItemStatus::InProgress,
            Self::Completed => ItemStatus::Ok,
            Self::Failed => ItemStatus::Failed,
        }
    }
}

/// What an update brought.
#[derive(Debug, Default)]
pub(super) struct Merged {
    /// Something about the item changed.
    pub(super) is_news: bool,
    /// Text that was printed.
    pub(super) printed: String,
    /// Kinds of content that are not known here.
    pub(super) odd: Vec<String>,
}

impl Tool {
    /// Takes in what an update says; what it does not say stays.
    pub(super) fn merge(&mut self, call: &ToolCall<'_>) -> Merged {
        let mut merged = Merged::default();
        let mut news = false;
        news |= set(&mut self.title, call.title.as_deref().map(str::to_owned));
        news |= set(&mut self.name, call.name.as_deref().map(str::to_owned));
        if let Some(kind) = call.kind.as_deref() {
            let kind = kind_of(kind);
            news |= std::mem::replace(&mut self.kind, kind) != kind;
        }
        if let Some(status) = call.status.as_deref().and_then(status_of) {
            news |= std::mem::replace(&mut self.status, status) != status;
        }
        if let Some(list) = &call.content {
            news = true;
            self.take_content(list, &mut merged.odd);
        }
        if let Some(locations) = &call.locations {
            let place = |it: &tieline_wire::acp::read::Location| Place {
                path: it.path.clone(),
                line: it.line,
            };
            let places: Vec<Place> = locations.iter().map(place).collect();
            news |= places != self.places;
            self.places = places;
        }
        let json = |raw: Option<&serde_json::value::RawValue>| {
            raw.filter(|raw| raw.get() != "null").map(Json::from_raw)
        };
        news |= set(&mut self.input, json(call.raw_input));
        news |= set(&mut self.output, json(call.raw_output));
        if let Some(meta) = &call.meta {
            let cwd = meta.terminal_info.as_ref().and_then(|it| it.cwd.as_deref());
            news |= set(&mut self.cwd, cwd.map(str::to_owned));
            let code = meta.terminal_exit.and_then(|it| it.exit_code);
            news |= set(&mut self.exit_code, code);
            let parent = meta.claude_code.as_ref().and_then(|it| it.parent_tool_use_id.as_deref());
            self.parent = self.parent.take().or_else(|| parent.map(str::to_owned));
            self.is_mcp |= meta.is_mcp_tool_call == Some(true);
            let server = meta.tieline.as_ref().and_then(|it| it.server.as_deref());
            news |= set(&mut self.server, server.map(str::to_owned));
            if let Some(output) = &meta.terminal_output {
                merged.printed = output.data.to_string();
            }
        }
        merged.is_news = news;
        merged
    }

    fn take_content(&mut self, list: &[ToolContent<'_>], odd: &mut Vec<String>) {
        self.content.clear();
        // What came of a change often stands in its place; the change is still what it is about.
        if list.iter().any(|piece| piece.kind == "diff") {
            self.diffs.clear();
        }
        for piece in list {
            match (&*piece.kind, &piece.content) {
                ("content", Some(block)) => match content(block) {
                    Some(content) => self.content.push(content),
                    None => odd.push(block.kind.to_string()),
                },
                ("diff", _) => self.diffs.extend(diff(piece, self.kind)),
                ("terminal", _) => {
                    self.terminal = piece.terminal_id.as_deref().map(str::to_owned);
                }
                (kind, _) => odd.push(kind.to_owned()),
            }
        }
    }

    /// Whether nothing is known about it but that it comes: its input is still being written.
    pub(super) fn is_blank(&self) -> bool {
        let has_input = self.input.as_ref().is_some_and(|input| input.as_str() != "{}");
        self.status == Status::Pending
            && !has_input
            && self.content.is_empty()
            && self.diffs.is_empty()
            && self.places.is_empty()
            && self.terminal.is_none()
    }

    /// The command it runs.
    pub(super) fn command(&self) -> Option<String> {
        let input: Value = self.input.as_ref()?.read().ok()?;
        let command = ["command", "cmd", "script"].iter().find_map(|key| input.get(key))?;
        match command {
            Value::String(line) => Some(bare_command(line)).filter(|line| !line.is_empty()),
            Value::Array(words) => {
                let words: Option<Vec<String>> =
                    words.iter().map(|word| word.as_str().map(str::to_owned)).collect();
                words.map(|words| bare_words(&words))
            }
            _ => None,
        }
    }

    /// What it is given, as the agent tells it.
    pub(super) fn given(&self) -> Option<&Json> {
        self.input.as_ref()
    }

    /// What happens to files.
    pub(super) fn changes(&self) -> Vec<FileChange> {
        let kind = match self.kind {
            ToolKind::Edit => ChangeKind::Update,
            ToolKind::Delete => ChangeKind::Delete,
            _ => return self.diffs.clone(),
        };
        if !self.diffs.is_empty() {
            return self.diffs.clone();
        }
        let change = |place: &Place| FileChange {
            path: place.path.clone(),
            kind,
            moved_to: None,
            old_text: None,
            new_text: None,
            diff: None,
        };
        self.places.iter().map(change).collect()
    }

    /// The files it is about.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        let diffs = self.diffs.iter().map(|change| change.path.as_str());
        diffs.chain(self.places.iter().map(|place| place.path.as_str()))
    }

    /// Somebody says yes to it, as it stands: what it says later was not allowed.
    pub(super) fn grant(&mut self) {
        // Leave to read a file is no leave to write it.
        let is_change = matches!(self.kind, ToolKind::Edit | ToolKind::Delete | ToolKind::Move);
        let paths = self.paths().filter(|_| is_change).map(str::to_owned).collect();
        self.granted = Some((paths, self.command()));
    }

    /// Whether the yes was about writing this file.
    pub(super) fn may_write(&self, path: &Path) -> bool {
        let is_it = |told: &String| Path::new(told) == path;
        self.granted.as_ref().is_some_and(|(paths, _)| paths.iter().any(is_it))
    }

    /// Whether the yes was about this command line.
    pub(super) fn may_run(&self, line: &str) -> bool {
        self.granted.as_ref().is_some_and(|(_, command)| command.as_deref() == Some(line))
    }

    /// Why a change failed; its item has no place for that.
    pub(super) fn trouble(&self) -> Option<String> {
        if self.diffs.is_empty() {
            return None;
        }
        let texts: Vec<String> = self.results("").iter().filter_map(|it| plain(it, '/')).collect();
        let mut text = texts.join("\n");
        text.truncate(text.floor_char_boundary(MOST_TROUBLE));
        Some(text).filter(|text| !text.trim().is_empty())
    }

    /// What it is, with what was printed while it ran.
    pub(super) fn body(&self, streamed: &str) -> ItemBody {
        let changes = self.changes();
        // Where only words tell of a change, it is a call: a change has no place for them.
        let has_words = || self.diffs.is_empty() && !self.results(streamed).is_empty();
        if !changes.is_empty() && !has_words() {
            return ItemBody::FileChange { changes };
        }
        let title = self.title.as_deref().filter(|title| !title.is_empty());
        let shown = || self.terminal.is_some().then(|| title.unwrap_or("a command").to_owned());
        if self.kind == ToolKind::Execute
            && let Some(command) = self.command().or_else(shown)
        {
            return self.run(command, streamed);
        }
        if let Some(query) = self.query() {
            return ItemBody::WebSearch { query, output: self.results(streamed) };
        }
        let name = self.name.as_deref().or(title).unwrap_or("tool");
        let (server, tool) = match self.of_server(name) {
            Some((server, tool)) => (Some(server), tool),
            None => (None, name.to_owned()),
        };
        let is_mcp = self.is_mcp || server.is_some();
        ItemBody::ToolCall {
            class: if is_mcp { ToolClass::Mcp } else { ToolClass::Generic },
            tool,
            server,
            title: title.map(first_line),
            input: self.input.clone(),
            output: self.results(streamed),
            gist: Some(Gist { kind: self.kind, title: None, places: self.places.clone() }),
        }
    }

    /// A text in its input.
    fn field(&self, key: &str) -> Option<String> {
        let input: Value = self.input.as_ref()?.read().ok()?;
        input.get(key)?.as_str().map(str::to_owned)
    }

    /// What it looks for in the web.
    fn query(&self) -> Option<String> {
        let is_search = matches!(self.name.as_deref(), Some("WebSearch" | "web_search"))
            || self.field("type").as_deref() == Some("webSearch");
        self.field("query").filter(|_| is_search)
    }

    /// The MCP server it is a tool of, and the tool's name there.
    fn of_server(&self, name: &str) -> Option<(String, String)> {
        if let Some(server) = &self.server {
            return Some((server.clone(), name.to_owned()));
        }
        if let Some((server, tool)) = name.strip_prefix("mcp__").and_then(|it| it.split_once("__"))
        {
            return Some((server.to_owned(), tool.to_owned()));
        }
        let told = || Some((self.field("server")?, self.field("tool")?));
        told().filter(|_| self.is_mcp)
    }

    fn run(&self, command: String, streamed: &str) -> ItemBody {
        let title = self.title.as_ref().filter(|title| **title != command).cloned();
        let gist = Gist { kind: ToolKind::Execute, title, places: self.places.clone() };
        let says_more = gist.title.is_some() || !gist.places.is_empty();
        ItemBody::Command {
            command,
            cwd: self.cwd.clone().or_else(|| self.field("cwd")),
            description: self.field("description"),
            output: match streamed {
                "" => self.printed().into(),
                streamed => streamed.into(),
            },
            exit_code: self.exit_code.or_else(|| self.told_exit_code()),
            background: false,
            gist: says_more.then_some(gist),
        }
    }

    /// What a command printed, where it was not shown while it ran. Before its end there is none:
    /// what stands in its place then is a description.
    fn printed(&self) -> String {
        if !matches!(self.status, Status::Completed | Status::Failed) {
            return String::new();
        }
        let raw: Value = self.output.as_ref().and_then(|it| it.read().ok()).unwrap_or_default();
        let keys = ["formatted_output", "aggregated_output", "output", "stdout"];
        let told = match &raw {
            Value::String(text) => Some(text.as_str()),
            raw => keys.iter().find_map(|key| raw.get(key)?.as_str()),
        };
        if let Some(told) = told {
            return told.to_owned();
        }
        let texts = self.content.iter().filter_map(Content::as_text).map(Text::preview);
        texts.collect::<Vec<_>>().join("\n")
    }

    fn told_exit_code(&self) -> Option<i32> {
        let raw: Value = self.output.as_ref()?.read().ok()?;
        let code = raw.get("exit_code").or_else(|| raw.get("exitCode"))?.as_i64()?;
        i32::try_from(code).ok()
    }

    fn results(&self, streamed: &str) -> Vec<Content> {
        if !self.content.is_empty() {
            return self.content.clone();
        }
        if !streamed.is_empty() {
            return vec![Content::text(streamed)];
        }
        // The result of an MCP server, as it is.
        let output: Value = self.output.as_ref().and_then(|it| it.read().ok()).unwrap_or_default();
        let pieces = output.pointer("/result/content").and_then(Value::as_array);
        let texts: Option<Vec<Content>> = pieces.and_then(|pieces| {
            pieces.iter().map(|it| it.get("text")?.as_str().map(Content::text)).collect()
        });
        if let Some(texts) = texts.filter(|texts| !texts.is_empty()) {
            return texts;
        }
        // A result that is told in no other way.
        let raw = self
            .output
            .as_ref()
            .map(|output| output.read::<String>().unwrap_or_else(|_| output.as_str().to_owned()));
        raw.filter(|raw| !raw.is_empty()).map(Content::text).into_iter().collect()
    }

    /// A command of ours ended.
    pub(super) fn exited(&mut self, code: Option<i32>) {
        self.exit_code = code;
    }

    /// The plan that is to be left, in words.
    pub(super) fn plan(&self) -> Option<String> {
        let input: Option<Value> = self.input.as_ref().and_then(|input| input.read().ok());
        let told = input.and_then(|input| input.get("plan")?.as_str().map(str::to_owned));
        let texts = self.content.iter().filter_map(Content::as_text).map(Text::preview);
        told.or_else(|| Some(texts.collect::<Vec<_>>().join("\n")).filter(|text| !text.is_empty()))
    }
}

/// Whether a field changed; an update that does not have it changes nothing.
fn set<T: PartialEq>(field: &mut Option<T>, new: Option<T>) -> bool {
    match new {
        Some(new) if field.as_ref() != Some(&new) => {
            *field = Some(new);
            true
        }
        _ => false,
    }
}

fn kind_of(word: &str) -> ToolKind {
    match word {
        "read" => ToolKind::Read,
        "edit" => ToolKind::Edit,
        "delete" => ToolKind::Delete,
        "move" => ToolKind::Move,
        "search" => ToolKind::Search,
        "execute" => ToolKind::Execute,
        "think" => ToolKind::Think,
        "fetch" => ToolKind::Fetch,
        "switch_mode" => ToolKind::SwitchMode,
        _ => ToolKind::Other,
    }
}

fn status_of(word: &str) -> Option<Status> {
    Some(match word {
        "pending" => Status::Pending,
        "in_progress" => Status::Running,
        "completed" => Status::Completed,
        "failed" => Status::Failed,
        _ => return None,
    })
}

fn diff(piece: &ToolContent<'_>, kind: ToolKind) -> Option<FileChange> {
    let text = |text: Option<&str>| text.map(Text::from);
    Some(FileChange {
        path: piece.path.as_deref()?.to_owned(),
        kind: match (&piece.old_text, kind) {
            (None, _) => ChangeKind::Add,
            (Some(_), ToolKind::Delete) => ChangeKind::Delete,
            (Some(_), _) => ChangeKind::Update,
        },
        moved_to: None,
        old_text: text(piece.old_text.as_deref()),
        new_text: text(piece.new_text.as_deref()),
        diff: None,
    })
}

/// A content block; none where its kind is not known here.
pub(super) fn content(block: &Block<'_>) -> Option<Content> {
    let owned = |text: &Option<tieline_wire::text::Str<'_>>| text.as_deref().map(str::to_owned);
    Some(match &*block.kind {
        "text" => Content::text(block.text.as_deref()?),
        "image" => {
            let mime = owned(&block.mime_type).unwrap_or_else(|| "image/png".to_owned());
            let source = match (&block.data, owned(&block.uri)) {
                (Some(data), _) if !data.is_empty() => ImageSource::Base64(Text::from(&**data)),
                (_, Some(uri)) => ImageSource::Url(uri),
                _ => return None,
            };
            Content::Image { mime, source }
        }
        "resource_link" => Content::Link { uri: owned(&block.uri)?, name: owned(&block.name) },
        "resource" => {
            let resource = block.resource.as_ref()?;
            let uri = resource.uri.to_string();
            match resource.text.as_deref() {
                Some(text) => Content::Resource { uri, text: text.into() },
                None => Content::Link { uri, name: None },
            }
        }
        _ => return None,
    })
}
