use serde_json::json;
use tieline_event::{Abilities, Content, Mode};
use tieline_wire::acp::INVALID_PARAMS;
use tieline_wire::acp::schema::ContentBlock;

use super::super::offer::Offer;
use super::{mode, prompt};

fn blocks(json: serde_json::Value) -> Vec<ContentBlock> {
    serde_json::from_value(json).unwrap()
}

fn offer(images: bool) -> Offer {
    let mut offer = Offer::new(Mode::Default, None, None, &Mode::COMMON, false);
    let skills = vec!["lint".to_owned()];
    offer.adopt(&Abilities { images, skills, ..Abilities::default() });
    offer
}

#[test]
fn every_mode_has_its_aliases_in_any_case() {
    for (name, expected) in [
        ("default", Mode::Default),
        ("PLAN", Mode::Plan),
        ("accept-edits", Mode::AcceptEdits),
        ("accept_edits", Mode::AcceptEdits),
        ("acceptEdits", Mode::AcceptEdits),
        ("bypass", Mode::BypassPermissions),
        ("bypass-permissions", Mode::BypassPermissions),
        ("yolo", Mode::Yolo),
        ("danger", Mode::Yolo),
        ("danger-full-access", Mode::Yolo),
    ] {
        assert_eq!(mode(name), Ok(expected), "{name}");
    }
    assert_eq!(mode("ask nicely").unwrap_err().code, INVALID_PARAMS);
}

#[test]
fn pieces_of_a_prompt_become_ours() {
    let content = prompt(
        blocks(json!([
            {"type": "text", "text": "see"},
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "A"}},
            {"type": "resource", "resource": {"uri": "file:///b", "blob": "Qg=="}},
            {"type": "resource", "resource": {"uri": "file:///c", "blob": "/w==", "mimeType": "x/y"}},
            {"type": "resource_link", "uri": "file:///d", "name": "d"},
        ])),
        &offer(true),
    )
    .unwrap();
    let names: Vec<String> = content
        .iter()
        .map(|piece| match piece {
            Content::Text { text } => format!("text {}", text.preview()),
            Content::Image { mime, .. } => format!("image {mime}"),
            Content::Resource { uri, text } => format!("resource {uri} {}", text.preview()),
            Content::Link { uri, name } => format!("link {uri} {name:?}"),
            Content::Skill { name, .. } | Content::Mention { name, .. } => format!("skill {name}"),
        })
        .collect();
    assert_eq!(
        names,
        [
            "text see",
            "image image/png",
            "resource file:///a A",
            "resource file:///b B",
            "link file:///c None",
            "link file:///d Some(\"d\")",
        ]
    );
}

#[test]
fn what_an_agent_cannot_take_is_refused_in_words() {
    let refused = |json, images| prompt(blocks(json), &offer(images)).unwrap_err();
    let audio = refused(json!([{"type": "audio", "data": "", "mimeType": "audio/wav"}]), true);
    assert_eq!((audio.code, audio.message.contains("audio")), (INVALID_PARAMS, true));
    let picture = refused(json!([{"type": "image", "data": "", "mimeType": "image/png"}]), false);
    assert_eq!((picture.code, picture.message.contains("pictures")), (INVALID_PARAMS, true));
    assert_eq!(refused(json!([]), true).code, INVALID_PARAMS);
}

#[test]
fn a_slash_and_the_name_of_a_skill_calls_it() {
    let content =
        prompt(blocks(json!([{"type": "text", "text": "/lint the parser"}])), &offer(true))
            .unwrap();
    assert_eq!(content[0], Content::Skill { name: "lint".into(), path: None });
    assert_eq!(content[1], Content::text("the parser"));
    let other =
        prompt(blocks(json!([{"type": "text", "text": "/other x"}])), &offer(true)).unwrap();
    assert_eq!(other, [Content::text("/other x")]);
}
