//! Items as tool calls.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};
use tieline_event::{
    ChangeKind, Content, FileChange, Gist, ImageSource, Item, ItemBody, ItemId, ItemStatus, Place,
    Text, ToolClass,
};
use tieline_wire::acp::schema::{
    self, ContentBlock, Diff, EmbeddedResource, EmbeddedResourceResource, ImageContent,
    ResourceLink, Terminal, TextContent, TextResourceContents, ToolCall, ToolCallContent,
    ToolCallLocation, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};

use super::diff;
use super::page::parent_meta;
use crate::{Fetch, visible, whole};

#[cfg(test)]
mod tests;

/// The longest title.
const TITLE: usize = 400;

/// So many spaces at the end of a line are more than an oversight.
const BLANK: usize = 24;

/// How much of an output is shown as text: three quarters of it from the beginning.
const OUTPUT: usize = 32 * 1024;

/// A tool call with everything a client shows of it.
#[derive(Debug)]
pub(super) struct Face {
    id: ItemId,
    title: String,
    name: Option<String>,
    kind: schema::ToolKind,
    pub(super) status: ToolCallStatus,
    content: Vec<ToolCallContent>,
    places: Vec<ToolCallLocation>,
    input: Option<Value>,
    output: Option<Value>,
    meta: serde_json::Map<String, Value>,
}

/// What a client has seen of a tool call, so that it is told only what is new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    title: u64,
    kind: schema::ToolKind,
    pub(super) status: ToolCallStatus,
    content: u64,
    places: u64,
    input: u64,
    output: u64,
}

/// How commands are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Screen {
    /// As a terminal whose output comes apart.
    Terminal,
    /// As text.
    Text,
}

impl Face {
    /// How an item looks; none when it is no tool call. `streamed` is what a command has printed so
    /// far, while that is not in the item.
    pub(super) fn of(
        item: &Item,
        parent: Option<&ItemId>,
        workspace: &Path,
        screen: Screen,
        streamed: Option<&str>,
        fetch: &mut Fetch<'_>,
    ) -> Option<Self> {
        let mut face = Self {
            id: item.id.clone(),
            title: String::new(),
            name: None,
            kind: schema::ToolKind::Other,
            status: status(item.status),
            content: Vec::new(),
            places: Vec::new(),
            input: None,
            output: None,
            meta: parent.map(parent_meta).unwrap_or_default(),
        };
        match &item.body {
            ItemBody::Command { command, cwd, description, output, exit_code, gist, .. } => {
                face.kind = schema::ToolKind::Execute;
                // While the model still writes it, there is none.
                face.title = match command.is_empty() {
                    true => "Run a command".to_owned(),
                    false => shortened(command),
                };
                face.recognise(gist.as_ref(), workspace);
                let mut input = json!({"command": command});
                for (name, value) in [("cwd", cwd), ("description", description)] {
                    if let Some(value) = value {
                        input[name] = json!(value);
                    }
                }
                face.input = Some(input);
                let printed = match streamed {
                    Some(text) => both_ends(text),
                    None => ends(output, fetch),
                };
                match screen {
                    Screen::Terminal => {
                        let terminal = Terminal::new(item.id.to_string());
                        face.content = vec![ToolCallContent::Terminal(terminal)];
                        let info = json!({"terminal_id": item.id.as_str(), "cwd": cwd});
                        face.meta.insert("terminal_info".to_owned(), info);
                    }
                    Screen::Text if !printed.is_empty() => {
                        face.content = vec![text_content(fenced(&printed))];
                    }
                    Screen::Text => {
                        face.content =
                            description.iter().map(|it| text_content(it.clone())).collect();
                    }
                }
                if item.status.is_final() {
                    face.output =
                        Some(json!({"formatted_output": printed, "exit_code": exit_code}));
                }
            }
            ItemBody::FileChange { changes } => {
                face.kind = change_kind(changes);
                face.title = short_paths(&change_title(changes), workspace);
                (face.content, face.places) = diff::diffs(changes, workspace, fetch);
                face.input = Some(json!({
                    "files": changes.iter().map(|it| &it.path).collect::<Vec<_>>(),
                }));
            }
            ItemBody::ToolCall { class, tool, server, title, input, output, gist } => {
                face.kind = match class {
                    ToolClass::SubAgent => schema::ToolKind::Think,
                    _ => schema::ToolKind::Other,
                };
                face.name = Some(tool.clone());
                face.title = match (title, server) {
                    (Some(title), _) => shortened(&short_paths(title, workspace)),
                    (None, Some(server)) => shortened(&format!("{server}: {tool}")),
                    (None, None) => shortened(tool),
                };
                face.recognise(gist.as_ref(), workspace);
                if *class == ToolClass::Mcp {
                    face.meta.insert("is_mcp_tool_call".to_owned(), json!(true));
                }
                if let Some(server) = server {
                    let own = face.meta.entry("tieline").or_insert_with(|| json!({}));
                    own["server"] = json!(server);
                }
                face.input = input.as_ref().and_then(|input| input.read().ok());
                // A file or a list of matches is not Markdown, whatever it looks like.
                let is_verbatim =
                    matches!(face.kind, schema::ToolKind::Read | schema::ToolKind::Search);
                let content = |piece: &Content| match piece {
                    Content::Text { text } if is_verbatim && !text.is_empty() => {
                        text_content(fenced(&capped(text, fetch)))
                    }
                    _ => ToolCallContent::Content(schema::Content::new(shown(piece, fetch))),
                };
                face.content = output.iter().map(content).collect();
                if item.status.is_final() && !output.is_empty() {
                    let texts = output.iter().filter_map(Content::as_text);
                    let texts: Vec<String> = texts.map(|it| ends(it, fetch)).collect();
                    face.output = Some(json!(texts.join("\n")));
                }
            }
            ItemBody::WebSearch { query, output } => {
                face.kind = schema::ToolKind::Search;
                face.title = match query.is_empty() {
                    true => "Search the web".to_owned(),
                    false => shortened(&format!("Search the web for {query}")),
                };
                face.input = Some(json!({"query": query}));
                face.content = output
                    .iter()
                    .map(|piece| {
                        ToolCallContent::Content(schema::Content::new(shown(piece, fetch)))
                    })
                    .collect();
            }
            ItemBody::Image { content } => {
                face.kind = schema::ToolKind::Read;
                face.title = "Image".to_owned();
                if let Content::Link { uri, .. } = content {
                    face.title = shortened(&format!("Image {uri}"));
                    face.places = vec![ToolCallLocation::new(diff::absolute(workspace, uri))];
                }
                face.content =
                    vec![ToolCallContent::Content(schema::Content::new(shown(content, fetch)))];
            }
            ItemBody::Compaction { trigger, tokens_before } => {
                face.kind = schema::ToolKind::Think;
                face.title = "Shorten the conversation's memory".to_owned();
                face.input = Some(json!({"trigger": trigger, "tokensBefore": tokens_before}));
            }
            _ => return None,
        }
        Some(face)
    }

    /// What the agent's driver says it amounts to goes before what can be seen from outside.
    fn recognise(&mut self, gist: Option<&Gist>, workspace: &Path) {
        let Some(Gist { kind, title, places }) = gist else { return };
        self.kind = tool_kind(*kind);
        if let Some(title) = title {
            self.title = shortened(&short_paths(title, workspace));
        }
        let place = |place: &Place| {
            ToolCallLocation::new(diff::absolute(workspace, &place.path)).line(place.line)
        };
        self.places = places.iter().map(place).collect();
    }

    /// The file a question is about, where the call itself names none.
    pub(super) fn is_about(&mut self, path: &str, workspace: &Path) {
        if self.places.is_empty() {
            self.places = vec![ToolCallLocation::new(diff::absolute(workspace, path))];
        }
    }

    /// The end of a command in a terminal.
    pub(super) fn set_exit(&mut self, code: Option<i32>) {
        let exit = json!({"terminal_id": self.id.as_str(), "exit_code": code, "signal": null});
        self.meta.remove("terminal_info");
        self.meta.insert("terminal_exit".to_owned(), exit);
    }

    /// What somebody is to decide about, in place of whatever else there is to show: these rows, and
    /// those of the changes as diffs that hide nothing. Where the question has none of its own, the
    /// call's diffs stay if everything in them can be seen.
    pub(super) fn decided(
        &mut self,
        rows: &[String],
        changes: Option<&[FileChange]>,
        workspace: &Path,
        fetch: &mut Fetch<'_>,
    ) {
        let (diffs, _) = diff::diffs(changes.unwrap_or_default(), workspace, fetch);
        self.content.retain(|it| match it {
            ToolCallContent::Terminal(_) => true,
            ToolCallContent::Diff(diff) => changes.is_none() && is_plain_diff(diff),
            _ => false,
        });
        self.content.insert(0, text_content(fenced(&rows.join("\n"))));
        self.content.extend(diffs);
        self.places.retain(|place| place.path.to_str().is_some_and(is_plain));
        self.input = self.input.take().map(visible_value);
    }

    /// What was seen once this was shown.
    pub(super) fn seen(&self) -> Seen {
        Seen {
            title: hash(&self.title),
            kind: self.kind,
            status: self.status,
            content: hash(&self.content),
            places: hash(&self.places),
            input: hash(&self.input),
            output: hash(&self.output),
        }
    }

    /// The call as a client hears of it first.
    pub(super) fn create(self) -> ToolCall {
        ToolCall::new(self.id.to_string(), self.title)
            .name(self.name)
            .kind(self.kind)
            .status(self.status)
            .content(self.content)
            .locations(self.places)
            .raw_input(self.input)
            .raw_output(self.output)
            .meta(Some(self.meta).filter(|meta| !meta.is_empty()))
    }

    /// What is new since it was seen; none when nothing is.
    pub(super) fn update(mut self, seen: &Seen) -> Option<ToolCallUpdate> {
        let now = self.seen();
        // What says where it belongs was said at the beginning.
        self.meta.retain(|key, _| key == "terminal_exit");
        if now == *seen && self.meta.is_empty() {
            return None;
        }
        let fields = ToolCallUpdateFields::new()
            .title((now.title != seen.title).then_some(self.title))
            .kind((now.kind != seen.kind).then_some(self.kind))
            .status((now.status != seen.status).then_some(self.status))
            .content((now.content != seen.content).then_some(self.content))
            .locations((now.places != seen.places).then_some(self.places))
            .raw_input(self.input.filter(|_| now.input != seen.input))
            .raw_output(self.output.filter(|_| now.output != seen.output));
        let meta = Some(self.meta).filter(|meta| !meta.is_empty());
        Some(ToolCallUpdate::new(self.id.to_string(), fields).meta(meta))
    }

    /// Everything about it, for a question about it.
    pub(super) fn whole(self) -> ToolCallUpdate {
        let fields = ToolCallUpdateFields::new()
            .title(self.title)
            .kind(self.kind)
            .status(self.status)
            .content(Some(self.content).filter(|it| !it.is_empty()))
            .locations(Some(self.places).filter(|it| !it.is_empty()))
            .raw_input(self.input);
        ToolCallUpdate::new(self.id.to_string(), fields)
    }
}

impl Seen {
    /// What was shown last is not how the call looks; the next look at it tells all of it. The place
    /// stays: the question may know one that the call does not.
    pub(super) fn forget(&mut self) {
        (self.title, self.content, self.input) = (0, 0, 0);
    }
}

fn hash(value: &impl Serialize) -> u64 {
    let mut hasher = DefaultHasher::new();
    // What cannot be written cannot be shown either, so it does not matter that it changed.
    serde_json::to_vec(value).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}

fn status(status: ItemStatus) -> ToolCallStatus {
    match status {
        ItemStatus::InProgress => ToolCallStatus::Pending,
        ItemStatus::Ok => ToolCallStatus::Completed,
        ItemStatus::Failed
        | ItemStatus::Denied
        | ItemStatus::Declined
        | ItemStatus::Cancelled
        | ItemStatus::TimedOut => ToolCallStatus::Failed,
    }
}

fn tool_kind(kind: tieline_event::ToolKind) -> schema::ToolKind {
    use tieline_event::ToolKind;
    match kind {
        ToolKind::Read => schema::ToolKind::Read,
        ToolKind::Edit => schema::ToolKind::Edit,
        ToolKind::Delete => schema::ToolKind::Delete,
        ToolKind::Move => schema::ToolKind::Move,
        ToolKind::Search => schema::ToolKind::Search,
        ToolKind::Execute => schema::ToolKind::Execute,
        ToolKind::Think | ToolKind::Plan => schema::ToolKind::Think,
        ToolKind::Fetch => schema::ToolKind::Fetch,
        ToolKind::SwitchMode => schema::ToolKind::SwitchMode,
        ToolKind::Other => schema::ToolKind::Other,
    }
}

/// Changes that are all of one sort are that; any other mixture is an edit.
fn change_kind(changes: &[FileChange]) -> schema::ToolKind {
    let all = |is: fn(&FileChange) -> bool| !changes.is_empty() && changes.iter().all(is);
    if all(|it| it.kind == ChangeKind::Delete) {
        schema::ToolKind::Delete
    } else if all(|it| it.moved_to.is_some() && it.diff.as_ref().is_none_or(Text::is_empty)) {
        schema::ToolKind::Move
    } else {
        schema::ToolKind::Edit
    }
}

fn change_title(changes: &[FileChange]) -> String {
    let verb = |change: &FileChange| match (change.kind, &change.moved_to) {
        (_, Some(_)) => "Move",
        (ChangeKind::Add, None) => "Write",
        (ChangeKind::Update, None) => "Edit",
        (ChangeKind::Delete, None) => "Delete",
    };
    match changes {
        [] => "Edit files".to_owned(),
        [one] => match &one.moved_to {
            Some(to) => shortened(&format!("Move {} to {to}", one.path)),
            None => shortened(&format!("{} {}", verb(one), one.path)),
        },
        [first, rest @ ..] => {
            let is_same = rest.iter().all(|it| verb(it) == verb(first));
            let verb = if is_same { verb(first) } else { "Edit" };
            format!("{verb} {} files", changes.len())
        }
    }
}

/// A piece of a message in the client's form.
pub(super) fn shown(piece: &Content, fetch: &mut Fetch<'_>) -> ContentBlock {
    match piece {
        Content::Text { text } => ContentBlock::Text(TextContent::new(capped(text, fetch))),
        Content::Image { mime, source } => match source {
            ImageSource::Base64(data) => {
                ContentBlock::Image(ImageContent::new(whole(data, fetch), mime.as_str()))
            }
            ImageSource::Url(url) => {
                ContentBlock::ResourceLink(ResourceLink::new(url.as_str(), url.as_str()))
            }
            ImageSource::Blob(blob) => {
                ContentBlock::Text(TextContent::new(format!("[image {}]", blob.sha256)))
            }
        },
        Content::Resource { uri, text } => {
            let text = TextResourceContents::new(capped(text, fetch), uri.as_str());
            let text = EmbeddedResourceResource::TextResourceContents(text);
            ContentBlock::Resource(EmbeddedResource::new(text))
        }
        Content::Link { uri, name } => {
            let name = name.as_deref().unwrap_or(uri);
            ContentBlock::ResourceLink(ResourceLink::new(name, uri.as_str()))
        }
        Content::Skill { name, .. } | Content::Mention { name, .. } => {
            ContentBlock::Text(TextContent::new(format!("${name}")))
        }
    }
}

/// A text as it was up to a size no client chokes on.
fn capped(text: &Text, fetch: &mut Fetch<'_>) -> String {
    const LARGEST: u64 = 1024 * 1024;
    if text.len() <= LARGEST { whole(text, fetch) } else { ends(text, fetch) }
}

fn text_content(text: String) -> ToolCallContent {
    ToolCallContent::Content(schema::Content::new(ContentBlock::Text(TextContent::new(text))))
}

/// A text in a fence that nothing inside it closes.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}\n{text}{end}{fence}")
}

/// The beginning and the end of a long text, with what is left out between them. Of one that is no
/// longer in the store, what was kept beside it.
fn ends(text: &Text, fetch: &mut Fetch<'_>) -> String {
    match text {
        Text::Inline(text) => both_ends(text),
        Text::Blob { blob, head, tail } => match fetch(blob) {
            Some(bytes) => both_ends(&String::from_utf8_lossy(&bytes)),
            None => joined(head, tail, text.len()),
        },
    }
}

fn both_ends(text: &str) -> String {
    match text.len() <= OUTPUT {
        true => text.to_owned(),
        false => joined(text, text, text.len() as u64),
    }
}

/// What one text of so many bytes begins with and what another ends with.
fn joined(head: &str, tail: &str, bytes: u64) -> String {
    let head = head.get(..head.floor_char_boundary(OUTPUT / 4 * 3)).unwrap_or_default();
    let start = tail.ceil_char_boundary(tail.len().saturating_sub(OUTPUT / 4));
    let tail = tail.get(start..).unwrap_or_default();
    let left_out = bytes.saturating_sub((head.len() + tail.len()) as u64);
    format!("{head}\n[… {left_out} bytes …]\n{tail}")
}

/// A line for a person without the way to the workspace, which is the same everywhere.
fn short_paths(text: &str, workspace: &Path) -> String {
    match workspace.to_str().filter(|it| it.len() > 1) {
        Some(workspace) => text.replace(&format!("{}/", workspace.trim_end_matches('/')), ""),
        None => text.to_owned(),
    }
}

/// A title: one line in which everything can be seen, as far as it goes.
fn shortened(text: &str) -> String {
    let text = visible::line(text.trim());
    match text.char_indices().nth(TITLE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// A value with every text in it visible, the names of its fields too.
fn visible_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(visible_text(&text)),
        Value::Array(values) => values.into_iter().map(visible_value).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter();
            fields.map(|(name, value)| (visible::line(&name), visible_value(value))).collect()
        }
        other => other,
    }
}

/// A text as it was where everything in it can be seen, else as it is shown.
pub(super) fn visible_text(text: &str) -> String {
    match is_plain(text) {
        true => text.to_owned(),
        false => visible::text(text),
    }
}

/// Whether everything in a text can be seen as it is, whatever white space ends its lines and
/// whichever indents them.
fn is_plain(text: &str) -> bool {
    let text = text.replace('\t', " ");
    let lines: Vec<&str> = text.split('\n').map(|line| line.trim_end_matches(' ')).collect();
    let is_short = text.split('\n').zip(&lines).all(|(line, it)| line.len() - it.len() < BLANK);
    let text = lines.join("\n");
    is_short && visible::text(&text) == text.strip_suffix('\n').unwrap_or(&text)
}

/// Whether everything in a diff can be seen.
fn is_plain_diff(diff: &Diff) -> bool {
    diff.path.to_str().is_some_and(|path| visible::line(path) == path)
        && diff.old_text.as_deref().is_none_or(is_plain)
        && is_plain(&diff.new_text)
}

/// Whether a client may show what changes as a diff of its own.
pub(super) fn is_plain_change(change: &FileChange, fetch: &mut Fetch<'_>) -> bool {
    let FileChange { path, moved_to, old_text, new_text, diff, .. } = change;
    let texts = [old_text, new_text];
    let is_plain_name = |name: &String| visible::line(name) == *name;
    // Without the signs that its lines begin with.
    let bare = |line: &str| line.chars().skip(1).collect::<String>();
    let diff = diff.as_ref().map(|diff| whole(diff, fetch));
    let diff = diff.map(|diff| diff.split('\n').map(bare).collect::<Vec<_>>().join("\n"));
    is_plain_name(path)
        && moved_to.iter().all(is_plain_name)
        && diff.iter().all(|diff| is_plain(diff))
        && texts.into_iter().flatten().all(|text| is_plain(&whole(text, fetch)))
}
