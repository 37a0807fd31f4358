//! What the agent does: commands, patches, tools, reviews.

use std::collections::HashMap;

use tieline_event::{
    Content, Item, ItemBody, ItemId, ItemStatus, Json, Native, NoticeLevel, Stream, Text, ToolClass,
};
use tieline_wire::sqeq::{self, Changes};
use tieline_wire::text::Str;

use super::ProtoDriver;
use crate::codex::{bare_words, content, file_changes, search_query};
use crate::ledger::{Ledger, Meta};
use crate::words::first_line;

/// Calls of the running task.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// How often each call was over: a command that failed in the sandbox may run once more.
    over: HashMap<String, u32>,
    /// Bytes of a character whose rest has not come, for each command and output.
    cut: HashMap<String, [Vec<u8>; 2]>,
    review: Option<ItemId>,
}

impl Calls {
    /// The item of a call.
    fn item(&self, call: &str) -> ItemId {
        match self.over.get(call) {
            None => ItemId::from(call),
            Some(n) => ItemId::new(format!("{call}:{}", n + 1)),
        }
    }
}

impl ProtoDriver {
    /// A call began or changed.
    pub(super) fn call_begins(
        &mut self,
        call: &str,
        body: ItemBody,
        ledger: &mut Ledger,
    ) -> ItemId {
        let id = self.calls.item(call);
        // The request before it may have told the same.
        if ledger.item(id.as_str()).is_none_or(|item| item.body != body) {
            let item = Item { id: id.clone(), status: ItemStatus::InProgress, body };
            ledger.upsert_item(meta(call), item);
        }
        id
    }

    /// A call is over.
    pub(super) fn call_ends(
        &mut self,
        call: &str,
        status: ItemStatus,
        body: ItemBody,
        ledger: &mut Ledger,
    ) {
        let id = self.calls.item(call);
        ledger.complete_item(meta(call), Item { id, status, body });
        *self.calls.over.entry(call.to_owned()).or_insert(0) += 1;
    }

    /// What is known of a call that is open.
    pub(super) fn call_body(&self, call: &str, ledger: &Ledger) -> Option<ItemBody> {
        ledger.item(self.calls.item(call).as_str()).map(|item| item.body.clone())
    }

    pub(super) fn exec_begin(&mut self, it: &sqeq::ExecCommandBegin<'_>, ledger: &mut Ledger) {
        self.call_begins(&it.call_id, command(&it.command, Some(&it.cwd)), ledger);
    }

    pub(super) fn output(
        &mut self,
        it: &sqeq::ExecCommandOutputDelta<'_>,
        line: &[u8],
        ledger: &mut Ledger,
    ) {
        let Some(bytes) = it.chunk.bytes() else {
            ledger.unparsed("the output is not base64", line);
            return;
        };
        let id = self.calls.item(&it.call_id);
        let which = usize::from(it.stream == sqeq::OutputStream::Stderr);
        let cut = self.calls.cut.get_mut(&*it.call_id).map(|cut| &mut cut[which]);
        let (text, rest) = match cut.map(std::mem::take).filter(|cut| !cut.is_empty()) {
            None => whole_characters(&bytes),
            Some(mut joined) => {
                joined.extend_from_slice(&bytes);
                whole_characters(&joined)
            }
        };
        ledger.delta(id.as_str(), Stream::Output, &text);
        if !rest.is_empty() {
            let cut = self.calls.cut.entry(it.call_id.to_string()).or_default();
            cut[which] = rest;
        }
    }

    pub(super) fn exec_end(&mut self, it: &sqeq::ExecCommandEnd<'_>, ledger: &mut Ledger) {
        let known = self.call_body(&it.call_id, ledger).unwrap_or_else(|| {
            command(it.command.as_deref().unwrap_or_default(), it.cwd.as_deref())
        });
        let printed = match it.aggregated_output.is_empty() {
            false => it.aggregated_output.to_string(),
            true => format!("{}{}", &*it.stdout, &*it.stderr),
        };
        let body = match known {
            ItemBody::Command { command, cwd, description, background, .. } => ItemBody::Command {
                command,
                cwd,
                description,
                output: printed.into(),
                exit_code: Some(it.exit_code),
                background,
            },
            // A patch that was applied by a command.
            other => other,
        };
        self.calls.cut.remove(&*it.call_id);
        let status = ended(it.status.as_deref(), it.exit_code == 0);
        self.call_ends(&it.call_id, status, body, ledger);
    }

    pub(super) fn patch(&mut self, call: &str, changes: &Changes<'_>, ledger: &mut Ledger) {
        self.call_begins(call, ItemBody::FileChange { changes: file_changes(changes) }, ledger);
    }

    pub(super) fn patch_end(&mut self, it: &sqeq::PatchApplyEnd<'_>, ledger: &mut Ledger) {
        let told = it.changes.as_ref().map(file_changes).filter(|files| !files.is_empty());
        let body = match told {
            Some(changes) => ItemBody::FileChange { changes },
            None => self
                .call_body(&it.call_id, ledger)
                .unwrap_or(ItemBody::FileChange { changes: Vec::new() }),
        };
        let status = ended(it.status.as_deref(), it.success);
        if status == ItemStatus::Failed && !it.stderr.is_empty() {
            ledger.notice(NoticeLevel::Warning, "patch_failed", first_line(&it.stderr));
        }
        self.call_ends(&it.call_id, status, body, ledger);
    }

    pub(super) fn mcp_begin(&mut self, it: &sqeq::McpToolCallBegin<'_>, ledger: &mut Ledger) {
        self.call_begins(&it.call_id, mcp(&it.invocation, Vec::new()), ledger);
    }

    pub(super) fn mcp_end(&mut self, it: &sqeq::McpToolCallEnd<'_>, ledger: &mut Ledger) {
        let (status, output) = match &it.result {
            sqeq::McpResult::Ok(given) => (
                ended(None, given.is_error != Some(true)),
                given.content.iter().map(|piece| content(piece)).collect(),
            ),
            sqeq::McpResult::Err(why) => (ItemStatus::Failed, vec![Content::text(&**why)]),
        };
        self.call_ends(&it.call_id, status, mcp(&it.invocation, output), ledger);
    }

    pub(super) fn search_begin(&mut self, it: &sqeq::WebSearchBegin<'_>, ledger: &mut Ledger) {
        let body = ItemBody::WebSearch { query: String::new(), output: Vec::new() };
        self.call_begins(&it.call_id, body, ledger);
    }

    pub(super) fn search_end(&mut self, it: &sqeq::WebSearchEnd<'_>, ledger: &mut Ledger) {
        let query = search_query(&it.query, it.action.as_deref());
        let body = ItemBody::WebSearch { query, output: Vec::new() };
        self.call_ends(&it.call_id, ItemStatus::Ok, body, ledger);
    }

    pub(super) fn view_image(&mut self, it: &sqeq::ViewImageToolCall<'_>, ledger: &mut Ledger) {
        let content = Content::Link { uri: it.path.to_string(), name: None };
        self.call_ends(&it.call_id, ItemStatus::Ok, ItemBody::Image { content }, ledger);
    }

    pub(super) fn review_begin(&mut self, it: &sqeq::EnteredReviewMode<'_>, ledger: &mut Ledger) {
        let turn = ledger.current_turn().map_or("idle", |turn| turn.as_str());
        let id = ItemId::new(format!("{turn}:review"));
        let text = it.user_facing_hint.as_deref().or(it.prompt.as_deref()).unwrap_or_default();
        let body = ItemBody::Review { text: text.into() };
        let item = Item { id: id.clone(), status: ItemStatus::InProgress, body };
        ledger.upsert_item(Meta::default(), item);
        self.calls.review = Some(id);
    }

    pub(super) fn review_end(&mut self, it: &sqeq::ExitedReviewMode<'_>, ledger: &mut Ledger) {
        let id = self.calls.review.take().unwrap_or_else(|| ItemId::from("review"));
        let (status, text) = match &it.review_output {
            Some(review) => (ItemStatus::Ok, review_text(review)),
            None => (ItemStatus::Cancelled, String::new()),
        };
        let body = ItemBody::Review { text: text.into() };
        ledger.complete_item(Meta::default(), Item { id, status, body });
    }
}

/// How something ended: its own word, else whether it worked.
fn ended(word: Option<&str>, worked: bool) -> ItemStatus {
    match word {
        Some("declined") => ItemStatus::Declined,
        _ if worked => ItemStatus::Ok,
        _ => ItemStatus::Failed,
    }
}

/// A command that printed nothing yet.
pub(super) fn command(words: &[Str<'_>], cwd: Option<&str>) -> ItemBody {
    let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
    ItemBody::Command {
        command: bare_words(&words),
        cwd: cwd.filter(|cwd| !cwd.is_empty()).map(str::to_owned),
        description: None,
        output: Text::default(),
        exit_code: None,
        background: false,
    }
}

fn mcp(invocation: &sqeq::McpInvocation<'_>, output: Vec<Content>) -> ItemBody {
    ItemBody::ToolCall {
        class: ToolClass::Mcp,
        tool: invocation.tool.to_string(),
        server: Some(invocation.server.to_string()),
        title: None,
        input: invocation.arguments.as_deref().map(Json::from_raw),
        output,
    }
}

fn review_text(review: &sqeq::ReviewOutput<'_>) -> String {
    let mut text = review.overall_explanation.to_string();
    for finding in &review.findings {
        let place = &finding.code_location;
        let sqeq::LineRange { start, end } = place.line_range;
        let path = &place.absolute_file_path;
        text.push_str(&format!("\n\n{} ({path}:{start}-{end})\n{}", finding.title, finding.body));
    }
    text.trim_start().to_owned()
}

fn meta(call: &str) -> Meta {
    Meta { parent: None, native: Native { item: Some(call.to_owned()), ..Native::default() } }
}

/// Bytes as text, and those at the end that are not a whole character yet.
fn whole_characters(bytes: &[u8]) -> (String, Vec<u8>) {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        let invalid = chunk.invalid();
        let is_last = invalid.as_ptr_range().end == bytes.as_ptr_range().end;
        let is_cut = std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
        if is_last && is_cut {
            return (text, invalid.to_vec());
        }
        if !invalid.is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    (text, Vec::new())
}

#[test]
fn a_character_that_is_cut_waits_for_its_rest() {
    assert_eq!(whole_characters(b"a\xc3"), ("a".to_owned(), vec![0xc3]));
    assert_eq!(whole_characters("aé".as_bytes()), ("aé".to_owned(), vec![]));
    assert_eq!(whole_characters(b"\xff\xe2\x82"), ("\u{fffd}".to_owned(), vec![0xe2, 0x82]));
    assert_eq!(whole_characters(b"\xe2\x82a"), ("\u{fffd}a".to_owned(), vec![]));
}
