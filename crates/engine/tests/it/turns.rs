//! Turns on the scripted model, through the hub.

use serde_json::json;
use tieline_event::{
    Answer, ItemBody, ItemStatus, Kind, Mode, Prompt, RequestBody, Scope, TurnStatus,
};

use crate::mcp::scene::fake;
use crate::provider::{End, Provider, Reply, answer};
use crate::stage::{HELLO, Stage};

#[tokio::test(flavor = "multi_thread")]
async fn a_word_and_its_answer() {
    let stage = Stage::new().await;
    let hub = stage.hub();
    let mut talk = stage.open(&hub, Mode::Yolo).await;
    let end = talk.say("SCENARIO:hello").await;
    assert_eq!(end.status, TurnStatus::Completed, "{:#?}", talk.names());
    assert_eq!(end.text.preview(), HELLO);
    assert!(end.bookmark.is_some(), "{end:?}");
    assert_eq!(talk.item_names(), ["user_message", "agent_message"], "{:#?}", talk.names());
    // The second turn sends the first along.
    let end = talk.say("SCENARIO:echo again").await;
    assert_eq!(end.status, TurnStatus::Completed);
    let asked = stage.asked();
    assert_eq!(asked.len(), 2);
    let input = asked[1]["input"].to_string();
    assert!(input.contains("SCENARIO:hello") && input.contains(HELLO), "{input}");
    assert_eq!(asked[0]["store"], false);
    assert_eq!(asked[0]["prompt_cache_key"], asked[1]["prompt_cache_key"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_runs_and_its_output_goes_back() {
    let stage = Stage::new().await;
    let hub = stage.hub();
    let mut talk = stage.open(&hub, Mode::Yolo).await;
    let end = talk.say("SCENARIO:shell").await;
    assert_eq!(end.status, TurnStatus::Completed, "{:#?}", talk.names());
    let (output, code) = talk.command();
    assert!(output.contains("hello-from-shell"), "{output}");
    assert_eq!(code, Some(0));
    let asked = stage.asked();
    assert_eq!(asked.len(), 2, "{:#?}", talk.names());
    assert!(asked[1]["input"].to_string().contains("hello-from-shell"));
    let n_steps = talk.events.iter().filter(|it| matches!(it.kind, Kind::TurnStep(_))).count();
    assert_eq!(n_steps, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_is_applied_and_undone() {
    let stage = Stage::new().await;
    let hub = stage.hub();
    let mut talk = stage.open(&hub, Mode::AcceptEdits).await;
    let end = talk.say("SCENARIO:patch").await;
    assert_eq!(end.status, TurnStatus::Completed, "{:#?}", talk.names());
    let names = talk.item_names();
    assert!(names.contains(&"file_change"), "{:#?}", talk.names());
    let changed: Vec<_> = std::fs::read_dir(stage.workspace()).unwrap().flatten().collect();
    assert!(changed.len() > 1, "{changed:?}");
    let end = talk.turn(Prompt::errand(tieline_event::Errand::Undo)).await;
    assert_eq!(end.status, TurnStatus::Completed, "{:#?}", talk.names());
    let left: Vec<_> = std::fs::read_dir(stage.workspace()).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn leave_is_asked_for_and_counts_for_the_session() {
    let stage = Stage::new().await;
    let hub = stage.hub();
    let mut talk = stage.open(&hub, Mode::Default).await;
    for (answer, ran) in [
        (Answer::Deny { message: None, stop: false }, false),
        (Answer::Allow { scope: Scope::Session, input: None, mode: None }, true),
    ] {
        talk.events.clear();
        talk.conversation.start_turn(Prompt::text("SCENARIO:write")).await.unwrap();
        let Kind::RequestOpened(request) =
            talk.until(|kind| matches!(kind, Kind::RequestOpened(_))).await
        else {
            panic!()
        };
        assert!(matches!(request.body, RequestBody::Approval(_)));
        let by = tieline_event::Origin::Human;
        talk.conversation.answer(&request.id, answer, by, None).await.unwrap();
        let end = talk.end().await;
        assert_eq!(end.status, TurnStatus::Completed, "{:#?}", talk.names());
        let created = stage.workspace().join("created-by-agent.txt");
        assert_eq!(created.exists(), ran, "{:#?}", talk.names());
    }
    // Nobody is asked a second time.
    std::fs::remove_file(stage.workspace().join("created-by-agent.txt")).unwrap();
    talk.say("SCENARIO:write").await;
    assert!(stage.workspace().join("created-by-agent.txt").exists());
    assert!(!talk.names().iter().any(|name| name.starts_with("request.opened")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_the_model_needs_no_options_and_keeps_their_values() {
    let provider = Provider::start(|n, _| match n {
        0 => {
            let option = json!({"label": "SQLite", "description": "One file.", "value": "sqlite"});
            let questions = json!({"questions": [
                {"id": "db", "header": "Store", "question": "Which?", "options": [option]},
                {"id": "name", "header": "Name", "question": "What is it called?"},
            ]});
            let call = json!({
                "type": "function_call", "id": "item_q", "call_id": "q",
                "name": "request_user_input", "arguments": questions.to_string(),
            });
            Reply::stream(&answer("q", &[call]), End::Whole)
        }
        n => Reply::say(&n.to_string(), "Fine."),
    })
    .await;
    let mut stage = Stage::new().await;
    stage.settings.provider.base_url = provider.url.clone();
    let hub = stage.hub();
    let mut talk = stage.open(&hub, Mode::Yolo).await;
    talk.conversation.start_turn(Prompt::text("ask me")).await.unwrap();
    let opened = talk.until(|kind| matches!(kind, Kind::RequestOpened(_))).await;
    let Kind::RequestOpened(request) = opened else { panic!() };
    let RequestBody::Question { questions } = &request.body else { panic!("{request:?}") };
    assert_eq!(questions[0].options[0].value.as_deref(), Some("sqlite"));
    assert!(questions[1].options.is_empty() && questions[1].free_text, "{questions:?}");
    let given = [("db", "sqlite"), ("name", "tides")];
    let answers = given.map(|(id, text)| (id.to_owned(), vec![text.to_owned()])).into();
    let by = tieline_event::Origin::Human;
    talk.conversation.answer(&request.id, Answer::Answers { answers }, by, None).await.unwrap();
    assert_eq!(talk.end().await.status, TurnStatus::Completed, "{:#?}", talk.names());
    let heard = provider.asked().last().unwrap()["input"].to_string();
    assert!(heard.contains("sqlite") && heard.contains("tides"), "{heard}");
    let tools = provider.asked()[0]["tools"].clone();
    let tools = tools.as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["name"] == "request_user_input").unwrap();
    let question = &tool["parameters"]["properties"]["questions"]["items"];
    assert_eq!(question["required"], json!(["id", "header", "question"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_tools_asks_the_user_and_hears_the_answer() {
    let mut stage = Stage::new().await;
    stage.settings.mcp_servers = vec![fake("fake", &[], &[])];
    let hub = stage.hub();
    let mut talk = stage.open(&hub, Mode::Yolo).await;
    talk.conversation.start_turn(Prompt::text("Go. SCENARIO:mcp-ask")).await.unwrap();
    let opened = talk.until(|kind| matches!(kind, Kind::RequestOpened(_))).await;
    let Kind::RequestOpened(request) = opened else { panic!() };
    let RequestBody::Question { questions } = &request.body else { panic!("{request:?}") };
    let answers = questions.iter().map(|it| (it.id.clone(), vec!["Blue".to_owned()])).collect();
    let by = tieline_event::Origin::Human;
    talk.conversation.answer(&request.id, Answer::Answers { answers }, by, None).await.unwrap();
    let end = talk.end().await;
    assert_eq!(end.status, TurnStatus::Completed, "{:#?}", talk.names());
    let heard = stage.asked().last().unwrap()["input"].to_string();
    assert!(heard.contains("Blue"), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_a_server_does_not_outlive_its_turn() {
    let mut stage = Stage::new().await;
    stage.settings.mcp_servers = vec![fake("fake", &[], &[])];
    let hub = stage.hub();
    let mut talk = stage.open(&hub, Mode::Yolo).await;
    talk.conversation.start_turn(Prompt::text("Go. SCENARIO:mcp-ask")).await.unwrap();
    talk.until(|kind| matches!(kind, Kind::RequestOpened(_))).await;
    talk.conversation.interrupt().await.unwrap();
    assert_eq!(talk.end().await.status, TurnStatus::Interrupted);
    // The server was told no and is there for the next call.
    let end = talk.say("Go. SCENARIO:mcp").await;
    assert_eq!(end.status, TurnStatus::Completed, "{:#?}", talk.names());
    let items = talk.items();
    let call = items.iter().find(|item| item.body.name() == "tool_call").unwrap();
    assert_eq!(call.status, ItemStatus::Ok, "{call:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_ends_the_turn_and_the_next_one_works() {
    let stage = Stage::new().await;
    let hub = stage.hub();
    let mut talk = stage.open(&hub, Mode::Yolo).await;
    talk.conversation.start_turn(Prompt::text("SCENARIO:sleep:60")).await.unwrap();
    talk.until(|kind| {
        matches!(kind, Kind::ItemStarted(item) if matches!(item.body, ItemBody::Command { .. }))
    })
    .await;
    talk.conversation.interrupt().await.unwrap();
    let end = talk.end().await;
    assert_eq!(end.status, TurnStatus::Interrupted, "{:#?}", talk.names());
    let end = talk.say("SCENARIO:hello").await;
    assert_eq!(end.text.preview(), HELLO, "{:#?}", talk.names());
    let asked = stage.asked();
    let input = asked.last().unwrap()["input"].to_string();
    assert!(input.contains("aborted by user") && input.contains("<turn_aborted>"), "{input}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_in_another_process() {
    let stage = Stage::new().await;
    {
        let hub = stage.hub();
        let mut talk = stage.open(&hub, Mode::Yolo).await;
        talk.say("SCENARIO:shell").await;
        talk.conversation.close().await.unwrap();
    }
    let hub = stage.hub();
    let mut talk = stage.open(&hub, Mode::Yolo).await;
    let end = talk.say("SCENARIO:hello").await;
    assert_eq!(end.status, TurnStatus::Completed, "{:#?}", talk.names());
    let asked = stage.asked();
    let input = asked.last().unwrap()["input"].to_string();
    assert!(input.contains("hello-from-shell"), "{input}");
    assert_eq!(asked[0]["prompt_cache_key"], asked.last().unwrap()["prompt_cache_key"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_used_the_same_in_another_process() {
    let stage = Stage::new().await;
    let mut used = Vec::new();
    for n_turns in [3, 2] {
        let hub = stage.hub();
        let mut talk = stage.open(&hub, Mode::Yolo).await;
        for _ in 0..n_turns {
            let usage = talk.say("SCENARIO:hello").await.usage.unwrap();
            used.push((usage.input_tokens, usage.output_tokens));
        }
        talk.conversation.close().await.unwrap();
    }
    assert_eq!(used, vec![used[0]; 5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_turn_goes_on_from_an_earlier_answer() {
    let stage = Stage::new().await;
    let hub = stage.hub();
    let mut talk = stage.open(&hub, Mode::Yolo).await;
    let first = talk.say("SCENARIO:hello").await.bookmark.unwrap();
    talk.say("SCENARIO:echo the second").await;
    let mut prompt = Prompt::text("SCENARIO:hello");
    prompt.options.after = Some(first);
    let end = talk.turn(prompt).await;
    assert_eq!(end.status, TurnStatus::Completed, "{:#?}", talk.names());
    let asked = stage.asked();
    let input = asked.last().unwrap()["input"].to_string();
    assert!(input.contains(HELLO) && !input.contains("the second"), "{input}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_model_fails_the_turn_with_what_to_do() {
    let stage = Stage::new().await;
    let hub = stage.hub();
    let mut talk = stage.open(&hub, Mode::Yolo).await;
    let end = talk.say("SCENARIO:http401").await;
    assert_eq!(end.status, TurnStatus::Failed, "{:#?}", talk.names());
    assert!(end.error.is_some(), "{end:?}");
    let end = talk.say("SCENARIO:hello").await;
    assert_eq!(end.status, TurnStatus::Completed, "{:#?}", talk.names());
}
