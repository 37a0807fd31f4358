//! The list of steps.

use serde::Deserialize;
use tieline_wire::sqeq::{EventMsg, PlanStep, PlanUpdate};
use tieline_wire::text::Str;

use super::{Outcome, Scene};

#[derive(Debug, Deserialize)]
pub(super) struct Args {
    #[serde(default)]
    explanation: Option<String>,
    plan: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    step: String,
    status: Status,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
}

/// Tells the client what is to be done and how far it is.
pub(super) async fn update(scene: &Scene, args: Args) -> Outcome {
    if scene.context.plan {
        return Outcome::failed(
            "update_plan keeps a list of steps for work under way and is not for plan mode; put \
             the plan into <proposed_plan> instead",
        );
    }
    let entry = |entry: Entry| PlanStep {
        step: Str::Owned(entry.step),
        status: Str::Borrowed(match entry.status {
            Status::Pending => "pending",
            Status::InProgress => "in_progress",
            Status::Completed => "completed",
        }),
    };
    let event = PlanUpdate {
        explanation: args.explanation.map(Str::Owned),
        plan: args.plan.into_iter().map(entry).collect(),
    };
    scene.shared.out.send(&scene.task, EventMsg::PlanUpdate(event)).await;
    Outcome::said("Plan updated")
}
