//! Commands with a slash: what the engine offers, and what it does when it is told.

use tieline_event::{Configured, Kind, Mode, TurnStatus};

use crate::stage::Stage;

fn abilities(kinds: &[tieline_event::Event]) -> tieline_event::Abilities {
    let told = kinds.iter().find_map(|event| match &event.kind {
        Kind::ConversationConfigured(Configured { abilities: Some(abilities), .. }) => {
            Some(abilities.clone())
        }
        _ => None,
    });
    told.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_saved_prompts_and_skills_are_offered_and_work() {
    let stage = Stage::new().await;
    let config = stage.settings.config_dir.clone();
    std::fs::create_dir_all(config.join("prompts")).unwrap();
    std::fs::write(config.join("prompts/greet.md"), "SCENARIO:echo Greetings, $1.\n").unwrap();
    let skill = stage.workspace().join(".agents/skills/tides");
    std::fs::create_dir_all(&skill).unwrap();
    let text = "---\nname: tides\ndescription: Knows tides.\n---\nHigh water is at noon.\n";
    std::fs::write(skill.join("SKILL.md"), text).unwrap();
    let hub = stage.hub();
    let mut talk = stage.open(&hub, Mode::AcceptEdits).await;

    talk.say("SCENARIO:patch").await;
    let offered = abilities(&talk.events);
    let names: Vec<&str> = offered.commands.iter().map(|it| it.name.as_str()).collect();
    let all = ["compact", "review", "review-branch", "review-commit", "undo", "prompts:greet"];
    assert_eq!(names, all);
    assert!(offered.skills.contains(&"tides".to_owned()), "{:?}", offered.skills);

    let count = || std::fs::read_dir(stage.workspace()).unwrap().count();
    let before = count();
    let end = talk.say("/undo").await;
    assert_eq!(end.status, TurnStatus::Completed, "{:#?}", talk.names());
    assert!(count() < before, "{:#?}", talk.names());

    talk.say("/prompts:greet Ada").await;
    let asked = stage.asked().last().unwrap()["input"].to_string();
    assert!(asked.contains("Greetings, Ada."), "{asked}");

    let end = talk.say("/review-branch").await;
    assert_eq!(end.status, TurnStatus::Failed, "{:#?}", talk.names());
    let n_asked = stage.asked().len();
    let end = talk.say("/review").await;
    assert_eq!(end.status, TurnStatus::Completed, "{:#?}", talk.names());
    assert!(talk.item_names().contains(&"review"), "{:#?}", talk.names());
    assert!(stage.asked().len() > n_asked);
    talk.say("/compact").await;
    let compacted = talk.item_names().contains(&"compaction");
    assert!(compacted, "{:#?}", talk.names());
}
