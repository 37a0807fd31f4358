//! A review: a conversation of its own, whose outcome comes back into this one.

use std::sync::Arc;

use tieline_event::ReviewTarget;
use tieline_wire::raw::Raw;
use tieline_wire::responses::Item;
use tieline_wire::sqeq::{AgentMessage, EnteredReviewMode, EventMsg, ExitedReviewMode};
use tieline_wire::text::Str;

use super::{End, Stop, to_the_end};
use crate::core::Core;
use crate::review;
use crate::shared::Shared;
use crate::turn::Wish;

/// Reviews changes.
pub(super) async fn run(
    core: &mut Core,
    shared: &Arc<Shared>,
    id: &str,
    target: &ReviewTarget,
    hint: Option<String>,
) -> Result<End, Stop> {
    let entered = EnteredReviewMode {
        target: Raw::of(&review::write_target(target)).ok(),
        user_facing_hint: Some(Str::Owned(hint.unwrap_or_else(|| review::hint(target)))),
        ..EnteredReviewMode::default()
    };
    shared.out.send(id, EventMsg::EnteredReviewMode(entered)).await;
    let mut aside = core.aside(Vec::new());
    super::say::context(&mut aside, shared).await;
    aside.items.push(Item::message("user", &review::prompt(target, None)));
    let wish = Wish { instructions: Some(review::RUBRIC), silent: true, ..Wish::default() };
    let end = to_the_end(&mut aside, shared, id, &wish).await;
    core.count(&aside);
    let said = match end {
        Ok(End { message }) => message.unwrap_or_default(),
        Err(stop) => {
            let exited = ExitedReviewMode { review_output: None };
            shared.out.send(id, EventMsg::ExitedReviewMode(exited)).await;
            return Err(stop);
        }
    };
    let output = review::parse(&said);
    let text = review::render(&output);
    let exited = ExitedReviewMode { review_output: Some(output.clone()) };
    shared.out.put(id, EventMsg::ExitedReviewMode(exited));
    let message = Str::Borrowed(text.as_str());
    shared.out.send(id, EventMsg::AgentMessage(AgentMessage { message, phase: None })).await;
    let told = review::user_action(target, Some(&text));
    core.push(Item::message("user", &told));
    core.push(Item::message("assistant", &text));
    core.keep().await?;
    Ok(End { message: Some(text) })
}
