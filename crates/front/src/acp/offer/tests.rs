use tieline_event::{Abilities, Mode};

use super::{EFFORT, Offer};

#[test]
fn an_effort_that_is_not_offered_cannot_be_chosen() {
    let mut offer = Offer::new(Mode::Default, None, None, &Mode::COMMON, false);
    assert!(offer.has_effort("high"), "the agent has not told yet");
    offer.adopt(&Abilities::default());
    assert!(!offer.settings().iter().any(|it| &*it.id.0 == EFFORT));
    assert!(!offer.has_effort("high"));
    // What was chosen before stays a value of it.
    offer.effort = Some("high".to_owned());
    assert!(offer.has_effort("high") && !offer.has_effort("low"));
    offer.adopt(&Abilities { efforts: vec!["low".to_owned()], ..Abilities::default() });
    assert!(offer.has_effort("low") && !offer.has_effort("nope"));
}
