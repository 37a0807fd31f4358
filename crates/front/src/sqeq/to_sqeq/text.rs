//! What is said, thought and planned.

use tieline_event::{
    Content, Event, ImageSource, Item, ItemBody, ItemId, ItemStatus, Kind, ReviewOutcome, TurnId,
};
use tieline_wire::sqeq::{
    AgentMessage, AgentMessageItem, CodeLocation, Delta, EnteredReviewMode, EventMsg,
    ExitedReviewMode, Finding, ImageItem, InputItem, ItemDelta, ItemEvent, ItemName, LineRange,
    MessagePiece, NamedItem, PlanItem, ReasoningItem, ReviewOutput, SectionBreak, Text, TurnItem,
    UserMessage, UserMessageItem,
};
use tieline_wire::text::Str;

use super::{Mapper, Told, background, is_cut, raw};
use crate::prefix::Prefix;
use crate::sqeq::order::Work;
use crate::{Fetch, whole};

/// The priority of a finding for which the agent names none: the middle of its scale.
const DEFAULT_PRIORITY: i64 = 2;

/// A text that grows.
#[derive(Debug)]
pub(super) struct Growing {
    voice: Voice,
    shown: Prefix,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Voice {
    Said,
    Thought,
    Plan,
}

impl Mapper {
    /// More of a text came.
    pub(super) fn grows(&mut self, turn: &TurnId, item: &ItemId, text: &str, told: &mut Told) {
        let Some(growing) = self.texts.get_mut(item) else { return };
        growing.shown.grow(text);
        let voice = growing.voice;
        self.piece(voice, turn, item, text, told);
    }

    fn piece(&self, voice: Voice, turn: &TurnId, item: &ItemId, text: &str, told: &mut Told) {
        let sub = self.sub(Some(turn));
        let delta = || Delta { delta: text.to_owned().into() };
        let of_item = || ItemDelta {
            thread_id: self.thread.clone().into(),
            turn_id: sub.clone().into(),
            item_id: item.to_string().into(),
            delta: text.to_owned().into(),
            ..ItemDelta::default()
        };
        let msg = match (self.is_seed(), voice) {
            (true, Voice::Said) => EventMsg::AgentMessageContentDelta(of_item()),
            (true, Voice::Plan) => EventMsg::PlanDelta(of_item()),
            (true, Voice::Thought) => {
                EventMsg::ReasoningContentDelta(ItemDelta { summary_index: Some(0), ..of_item() })
            }
            (false, Voice::Said | Voice::Plan) => EventMsg::AgentMessageDelta(delta()),
            (false, Voice::Thought) => EventMsg::AgentReasoningDelta(delta()),
        };
        told.push((sub, msg));
    }

    pub(super) fn text(
        &mut self,
        item: &Item,
        event: &Event,
        fetch: &mut Fetch<'_>,
        told: &mut Told,
    ) {
        let sub = self.sub(event.turn.as_ref());
        let is_over = matches!(event.kind, Kind::ItemCompleted(_));
        let (voice, text) = match &item.body {
            // What an agent that the agent started says is not the answer.
            ItemBody::AgentMessage { text } if event.parent.is_none() => (Voice::Said, text),
            ItemBody::AgentMessage { text } | ItemBody::Reasoning { text, .. } => {
                (Voice::Thought, text)
            }
            ItemBody::Plan { text } => (Voice::Plan, text),
            ItemBody::Compaction { .. } => return self.compaction(item, is_over, &sub, told),
            ItemBody::Review { text, outcome } => {
                let output = is_over.then(|| match outcome {
                    Some(outcome) => review_output(outcome, fetch),
                    None => ReviewOutput {
                        overall_explanation: whole(text, fetch).into(),
                        ..ReviewOutput::default()
                    },
                });
                return self.review(event.turn.as_ref(), item, output, &sub, told);
            }
            _ => return,
        };
        if !self.texts.contains_key(&item.id) {
            let growing = Growing { voice, shown: Prefix::default() };
            self.texts.insert(item.id.clone(), growing);
            if self.is_seed() {
                let begun = self.turn_item(voice, item, String::new());
                told.push((sub.clone(), EventMsg::ItemStarted(self.of_item(&sub, begun))));
            } else if voice == Voice::Thought {
                let mark = EventMsg::AgentReasoningSectionBreak(SectionBreak::default());
                told.push((sub.clone(), mark));
            }
        }
        if !is_over {
            return;
        }
        let text = whole(text, fetch);
        let Some(growing) = self.texts.remove(&item.id) else { return };
        // Pieces together are the whole, so that a client may show either.
        let rest = growing.shown.rest(&text);
        if growing.shown.bytes > 0
            && !rest.is_empty()
            && let Some(turn) = &event.turn
        {
            self.piece(voice, turn, &item.id, rest, told);
        }
        if self.is_seed() {
            let whole = self.turn_item(voice, item, text.clone());
            told.push((sub.clone(), EventMsg::ItemCompleted(self.of_item(&sub, whole))));
        }
        if is_cut(item.status) {
            return;
        }
        let is_said = voice == Voice::Said || (voice == Voice::Plan && !self.is_seed());
        if is_said && let Some(task) = event.turn.as_ref().and_then(|turn| self.turns.get_mut(turn))
        {
            task.last_message = Some(text.clone());
        }
        match (voice, self.is_seed()) {
            (Voice::Thought, _) => {
                told.push((sub, EventMsg::AgentReasoning(Text { text: text.into() })));
            }
            (Voice::Plan, true) => {}
            (Voice::Said, _) | (Voice::Plan, false) => {
                let message = AgentMessage { message: text.into(), phase: None };
                told.push((sub, EventMsg::AgentMessage(message)));
            }
        }
    }

    fn turn_item(&self, voice: Voice, item: &Item, text: String) -> TurnItem<'static> {
        let id = Str::Owned(item.id.to_string());
        match voice {
            Voice::Said => {
                let content = match text.is_empty() {
                    true => Vec::new(),
                    false => vec![MessagePiece::Text(Text { text: text.into() })],
                };
                TurnItem::AgentMessage(AgentMessageItem { id, content, phase: None })
            }
            Voice::Thought => {
                let summary_text = if text.is_empty() { Vec::new() } else { vec![text.into()] };
                TurnItem::Reasoning(ReasoningItem { id, summary_text, raw_content: Vec::new() })
            }
            Voice::Plan => TurnItem::Plan(PlanItem { id, text: text.into() }),
        }
    }

    pub(super) fn of_item(&self, sub: &str, item: TurnItem<'static>) -> ItemEvent<'static> {
        ItemEvent { thread_id: self.thread.clone().into(), turn_id: sub.to_owned().into(), item }
    }

    pub(super) fn user_message(
        &mut self,
        id: &ItemId,
        turn: Option<&TurnId>,
        content: &[Content],
        fetch: &mut Fetch<'_>,
        told: &mut Told,
    ) {
        let sub = self.sub(turn);
        let input: Vec<_> = content.iter().map(|piece| input(piece, fetch)).collect();
        let mut message = UserMessage::default();
        let mut texts: Vec<String> = Vec::new();
        for piece in &input {
            match piece {
                InputItem::Text(it) => texts.push(it.text.to_string()),
                InputItem::Image(it) => {
                    message.images.get_or_insert_default().push(it.image_url.clone());
                }
                _ => {}
            }
        }
        message.message = texts.join("\n").into();
        let item = || {
            let id = Str::Owned(id.to_string());
            TurnItem::UserMessage(UserMessageItem { id, content: input.clone() })
        };
        told.push((sub.clone(), EventMsg::ItemStarted(self.of_item(&sub, item()))));
        told.push((sub.clone(), EventMsg::ItemCompleted(self.of_item(&sub, item()))));
        told.push((sub, EventMsg::UserMessage(message)));
    }

    fn compaction(&mut self, item: &Item, is_over: bool, sub: &str, told: &mut Told) {
        let named = || {
            let id = Str::Owned(item.id.to_string());
            self.of_item(sub, TurnItem::ContextCompaction(ItemName { id }))
        };
        let is_new = !self.calls.contains_key(&item.id) && !self.texts.contains_key(&item.id);
        if is_new && self.is_seed() {
            told.push((sub.to_owned(), EventMsg::ItemStarted(named())));
        }
        if !is_over {
            let growing = Growing { voice: Voice::Thought, shown: Prefix::default() };
            self.texts.insert(item.id.clone(), growing);
            return;
        }
        if self.is_seed() {
            told.push((sub.to_owned(), EventMsg::ItemCompleted(named())));
        }
        self.texts.remove(&item.id);
        if item.status == ItemStatus::Ok {
            told.push((sub.to_owned(), EventMsg::ContextCompacted));
        }
    }

    fn review(
        &mut self,
        turn: Option<&TurnId>,
        item: &Item,
        output: Option<ReviewOutput<'static>>,
        sub: &str,
        told: &mut Told,
    ) {
        if !self.texts.contains_key(&item.id) {
            let growing = Growing { voice: Voice::Thought, shown: Prefix::default() };
            self.texts.insert(item.id.clone(), growing);
            let work = turn.and_then(|turn| self.turns.get(turn)).and_then(|it| it.work.clone());
            let mut entered = EnteredReviewMode::default();
            if let Some(Work::Review { told, hint, .. }) = work {
                let target = told.and_then(|it| serde_json::value::RawValue::from_string(it).ok());
                entered.target = target.map(tieline_wire::raw::Raw::Owned);
                entered.user_facing_hint = hint.map(Str::Owned);
            }
            told.push((sub.to_owned(), EventMsg::EnteredReviewMode(entered)));
        }
        let Some(output) = output else { return };
        self.texts.remove(&item.id);
        let review_output = (!is_cut(item.status)).then_some(output);
        told.push((sub.to_owned(), EventMsg::ExitedReviewMode(ExitedReviewMode { review_output })));
    }

    /// A picture the agent looked at or made.
    pub(super) fn image(&self, call: &str, content: &Content, sub: String, told: &mut Told) {
        let path = match content {
            Content::Link { uri, .. } => Some(uri),
            Content::Image { source: ImageSource::Url(url), .. } => Some(url),
            _ => None,
        };
        told.push((
            sub,
            match path {
                Some(path) => EventMsg::ViewImageToolCall(tieline_wire::sqeq::ViewImageToolCall {
                    call_id: call.to_owned().into(),
                    path: path.strip_prefix("file://").unwrap_or(path).to_owned().into(),
                }),
                None => background("the agent has a picture that this protocol cannot show".into()),
            },
        ));
    }
}

/// The outcome of a review in the protocol's form.
fn review_output(outcome: &ReviewOutcome, fetch: &mut Fetch<'_>) -> ReviewOutput<'static> {
    let findings = outcome.findings.iter().map(|finding| {
        let lines = finding.lines.map(|lines| LineRange { start: lines.first, end: lines.last });
        Finding {
            title: finding.title.clone().into(),
            body: whole(&finding.body, fetch).into(),
            confidence_score: finding.confidence.unwrap_or_default(),
            priority: finding.priority.unwrap_or(DEFAULT_PRIORITY),
            code_location: CodeLocation {
                absolute_file_path: finding.path.clone().unwrap_or_default().into(),
                line_range: lines.unwrap_or_default(),
            },
        }
    });
    ReviewOutput {
        findings: findings.collect(),
        overall_correctness: outcome.correctness.clone().unwrap_or_default().into(),
        overall_explanation: outcome
            .explanation
            .as_ref()
            .map(|text| whole(text, fetch))
            .unwrap_or_default()
            .into(),
        overall_confidence_score: outcome.confidence.unwrap_or_default(),
    }
}

/// A piece of a message in the protocol's form.
fn input(content: &Content, fetch: &mut Fetch<'_>) -> InputItem<'static> {
    let image = |url: String| InputItem::Image(ImageItem { image_url: url.into() });
    match content {
        Content::Text { text } => InputItem::text(whole(text, fetch)),
        Content::Resource { uri, text } => {
            InputItem::text(format!("{uri}\n{}", whole(text, fetch)))
        }
        Content::Link { uri, .. } => InputItem::text(uri.clone()),
        Content::Image { mime, source: ImageSource::Base64(data) } => {
            image(format!("data:{mime};base64,{}", whole(data, fetch)))
        }
        Content::Image { source: ImageSource::Url(url), .. } => image(url.clone()),
        Content::Image { mime, source: ImageSource::Blob(blob) } => {
            InputItem::text(format!("[{mime}, {} bytes]", blob.bytes))
        }
        Content::Skill { name, path } => InputItem::Skill(NamedItem {
            name: name.clone().into(),
            path: path.clone().unwrap_or_default().into(),
        }),
        Content::Mention { name, path } => {
            InputItem::Mention(NamedItem { name: name.clone().into(), path: path.clone().into() })
        }
    }
}

/// What a search looked for.
pub(super) fn search(query: &str) -> Option<tieline_wire::raw::Raw<'static>> {
    raw(&serde_json::json!({"type": "search", "query": query}))
}
