//! Shortening the memory: the model sums up, and goes on from the summary.

use std::sync::Arc;

use tieline_wire::responses::Item;
use tieline_wire::sqeq::{EventMsg, Message};
use tieline_wire::text::Str;

use super::{Stop, step};
use crate::core::Core;
use crate::shared::Shared;
use crate::turn::{Step, Wish};
use crate::{history, persona};

/// Why it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// Somebody wants it.
    Asked,
    /// There is little room left.
    Full,
}

/// Whether there is little room left.
pub(crate) fn is_due(core: &Core, shared: &Shared) -> bool {
    core.last_usage.total_tokens >= shared.settings.compact_at(&core.context.model)
}

/// Puts a summary in place of the history.
pub(crate) async fn run(
    core: &mut Core,
    shared: &Arc<Shared>,
    id: &str,
    why: Why,
) -> Result<(), Stop> {
    let before = core.items.clone();
    if before.is_empty() {
        return Ok(());
    }
    let summary = summary(core, shared, id, before.clone()).await?;
    let shorter = history::compacted(&before, &[], &summary);
    core.compacted(shorter);
    core.keep().await?;
    shared.out.put(id, EventMsg::ContextCompacted);
    if why == Why::Full {
        let message = Str::Borrowed(
            "the conversation was summed up to make room; long conversations and several \
             summaries make the model less exact, so begin a new one when you can",
        );
        shared.out.put(id, EventMsg::Warning(Message { message }));
    }
    shared.out.flush().await;
    Ok(())
}

/// What the model makes of the history. Where that is longer than it can read, the oldest goes.
async fn summary(
    core: &mut Core,
    shared: &Arc<Shared>,
    id: &str,
    mut items: Vec<Item>,
) -> Result<String, Stop> {
    let wish = Wish { bare: true, silent: true, ..Wish::default() };
    loop {
        let mut aside = core.aside(items.clone());
        aside.items.push(Item::message("user", persona::COMPACT));
        match step(&mut aside, shared, id, &wish).await {
            Ok(Step { said: Some(said), .. }) if !said.trim().is_empty() => {
                core.count(&aside);
                return Ok(said);
            }
            Ok(_) => return Err(Stop::failed("the model gave no summary; try again")),
            Err(Stop::Failed(trouble)) if trouble.is_too_long() && items.len() > 1 => {
                items = history::without_oldest(&items);
            }
            Err(stop) => return Err(stop),
        }
    }
}
