//! Outputs as short lines a person can review.

use tieline_agent::{Draft, Output};
use tieline_event::{Answer, Content, Gist, Item, ItemBody, Kind, Place, RequestBody, Text, Usage};

pub(crate) fn show(output: &Output) -> String {
    match output {
        Output::Delta(delta) => format!(
            "  ~ {} {:?}@{} {:?}",
            delta.item,
            delta.stream,
            delta.offset,
            short(&delta.text)
        ),
        Output::Event(draft) => show_draft(draft),
    }
}

fn show_draft(draft: &Draft) -> String {
    let turn = draft.turn.as_ref().map_or("-", |turn| turn.as_str());
    let parent =
        draft.parent.as_ref().map(|parent| format!(" (under {parent})")).unwrap_or_default();
    format!("{turn} {}{parent}: {}", draft.kind.name(), show_kind(&draft.kind))
}

fn show_kind(kind: &Kind) -> String {
    match kind {
        Kind::ConversationConfigured(it) => {
            let abilities = it.abilities.as_ref().map(|abilities| {
                format!(
                    " abilities: {} commands, {} models, {} efforts, {} tools, {} skills",
                    abilities.commands.len(),
                    abilities.models.len(),
                    abilities.efforts.len(),
                    abilities.tools.len(),
                    abilities.skills.len()
                )
            });
            let effort = it.effort.as_ref().map(|effort| format!(" effort {effort}"));
            let title = it.title.as_ref().map(|title| format!(" title {title:?}"));
            format!(
                "version {:?} model {:?} mode {:?} cwd {:?}{}{}{}",
                it.agent_version,
                it.model,
                it.mode,
                it.cwd,
                effort.unwrap_or_default(),
                title.unwrap_or_default(),
                abilities.unwrap_or_default()
            )
        }
        Kind::TurnStarted(it) => format!("{:?}", it.origin),
        Kind::TurnCompleted(it) => {
            let error = it.error.as_ref().map(|error| {
                format!(
                    "\n      {:?} http {:?}: {}\n      hint: {}",
                    error.code,
                    error.http_status,
                    short(&error.message),
                    error.hint.as_deref().unwrap_or("-")
                )
            });
            let usage = it.usage.as_ref().map(|usage| {
                format!(
                    " in {} cached {} out {} think {} cost {:.5}",
                    usage.input_tokens,
                    usage.cached_input_tokens,
                    usage.output_tokens,
                    usage.reasoning_tokens,
                    usage.cost_usd.unwrap_or(-1.0)
                )
            });
            format!(
                "{:?} by {:?} stop {:?} open tasks {} text {}{}{}",
                it.status,
                it.signal,
                it.stop_reason,
                it.open_tasks,
                show_text(&it.text),
                usage.unwrap_or_default(),
                error.unwrap_or_default()
            )
        }
        Kind::ItemStarted(item) | Kind::ItemUpdated(item) | Kind::ItemCompleted(item) => {
            show_item(item)
        }
        Kind::PlanUpdated(plan) => {
            let step =
                |entry: &tieline_event::PlanEntry| format!("{:?} {}", entry.status, entry.text);
            plan.entries.iter().map(step).collect::<Vec<_>>().join("; ")
        }
        Kind::RequestOpened(it) => {
            let options: Vec<_> = it.options.iter().map(|option| option.id.as_str()).collect();
            let body = match &it.body {
                RequestBody::Approval(it) => {
                    format!("approval of {} with {} suggestions", it.tool, it.suggestions.len())
                }
                RequestBody::Question { questions } => format!("{questions:?}"),
                RequestBody::ExitPlan { plan } => format!("plan {plan:?}"),
            };
            format!("{} {:?} [{}] {body}", it.id, short(&it.title), options.join(" "))
        }
        Kind::RequestResolved(it) => {
            let edited = matches!(&it.answer, Answer::Allow { input: Some(_), .. });
            format!(
                "{} {}{}",
                it.request,
                it.answer.summary(),
                if edited { ", edited" } else { "" }
            )
        }
        Kind::RequestExpired(it) => format!("{} {}", it.request, it.reason),
        Kind::Notice(it) => format!("{:?} {}: {}", it.level, it.code, short(&it.text)),
        Kind::Unparsed(it) => format!("{} bytes: {}", it.bytes, it.reason),
        Kind::UsageUpdated(usage) => {
            // How the last digits of a number are read is a feature of `serde_json` that any crate of
            // a build may turn on.
            let cost_usd = usage.cost_usd.map(|cost| (cost * 1e9).round() / 1e9);
            format!("{:?}", Kind::UsageUpdated(Usage { cost_usd, ..usage.clone() }))
        }
        other => format!("{other:?}"),
    }
}

fn show_item(item: &Item) -> String {
    let body = match &item.body {
        ItemBody::UserMessage { content } => show_content(content),
        ItemBody::AgentMessage { text } => show_text(text),
        ItemBody::Reasoning { text, signature } => {
            format!("{} signed {}", show_text(text), signature.is_some())
        }
        ItemBody::Command { command, output, exit_code, background, gist, .. } => format!(
            "{:?} -> {} exit {exit_code:?}{}{}",
            short(command),
            show_text(output),
            if *background { " in the background" } else { "" },
            show_gist(gist.as_ref())
        ),
        ItemBody::FileChange { changes } => changes
            .iter()
            .map(|change| {
                let show = |text: &Option<Text>| text.as_ref().map(show_text).unwrap_or_default();
                format!(
                    "{:?} {} old {} new {} diff {}",
                    change.kind,
                    change.path,
                    show(&change.old_text),
                    show(&change.new_text),
                    show(&change.diff)
                )
            })
            .collect::<Vec<_>>()
            .join("; "),
        ItemBody::ToolCall { class, tool, server, title, input, output, gist } => format!(
            "{class:?} {}{tool} {title:?} input {} -> {}{}",
            server.as_ref().map(|server| format!("{server}/")).unwrap_or_default(),
            input.as_ref().map(|input| short(input.as_str())).unwrap_or_default(),
            show_content(output),
            show_gist(gist.as_ref())
        ),
        other => format!("{other:?}"),
    };
    format!("{} {} {:?} {body}", item.body.name(), item.id, item.status)
}

fn show_gist(gist: Option<&Gist>) -> String {
    let Some(gist) = gist else { return String::new() };
    let title = gist.title.as_ref().map(|title| format!(" {title:?}")).unwrap_or_default();
    let place = |place: &Place| match place.line {
        Some(line) => format!(" {}:{line}", place.path),
        None => format!(" {}", place.path),
    };
    let places: String = gist.places.iter().map(place).collect();
    format!(" [{:?}{title}{places}]", gist.kind)
}

fn show_content(content: &[Content]) -> String {
    content
        .iter()
        .map(|piece| match piece {
            Content::Text { text } => show_text(text),
            Content::Image { mime, .. } => format!("image {mime}"),
            other => format!("{other:?}"),
        })
        .collect::<Vec<_>>()
        .join(", ")
}

fn show_text(text: &Text) -> String {
    format!("{:?}", short(text.preview()))
}

fn short(text: &str) -> String {
    if text.chars().count() <= 120 {
        return text.to_owned();
    }
    let head: String = text.chars().take(100).collect();
    format!("{head}… ({} bytes)", text.len())
}
