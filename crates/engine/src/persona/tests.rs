use tieline_event::Mode;

use super::*;
use crate::command::Granular;

#[test]
fn every_tone_takes_the_same_place() {
    let friendly = instructions(&Personality::Friendly);
    let pragmatic = instructions(&Personality::Pragmatic);
    let none = instructions(&Personality::None);
    for text in [&friendly, &pragmatic, &none, &instructions(&Personality::Other("x".to_owned()))] {
        assert!(!text.contains("{{") && !text.contains("\n\n\n"), "{text}");
        assert!(text.contains("*** Begin Patch"));
    }
    let without = |text: &str, tone: &str| text.replace(&format!("{}\n\n", tone.trim_end()), "");
    assert_ne!(friendly, none);
    assert_eq!(without(&friendly, tone(&Personality::Friendly)), none);
    assert_eq!(without(&pragmatic, tone(&Personality::Pragmatic)), none);
    assert!(personality_message(&Personality::Pragmatic).contains("trade-offs"));
    assert!(personality_message(&Personality::None).contains("plainly"));
}

#[test]
fn the_form_that_is_told_has_a_whole_example() {
    let example: Vec<&str> =
        PATCH_FORM.lines().skip_while(|line| *line != "*** Begin Patch").collect();
    assert_eq!(example.last(), Some(&"*** End Patch"));
}

#[test]
fn what_is_told_follows_from_the_terms() {
    let told = |mode| permissions(&Terms::of(mode, None), &[Path::new("/repo"), Path::new("/tmp")]);
    for (mode, has, lacks) in [
        (Mode::Default, "write nothing", "- /repo"),
        (Mode::Default, "asked before every change", "require_escalated"),
        (Mode::AcceptEdits, "- /repo\n- /tmp\n", "They have a network"),
        (Mode::AcceptEdits, "`require_escalated`", "fails. Find"),
        (Mode::BypassPermissions, "They have a network", "require_escalated"),
        (Mode::BypassPermissions, "Nobody is asked", "without a sandbox"),
        (Mode::Yolo, "without a sandbox", "network"),
        (Mode::Plan, "while planning", "require_escalated"),
    ] {
        let text = told(mode);
        assert!(text.contains(has), "{mode}: {text}");
        assert!(!text.contains(lacks), "{mode}: {text}");
        assert!(text.starts_with("<permissions instructions>\n"));
        assert!(text.ends_with("\n</permissions instructions>"));
    }
    let granular = |sandbox_approval| {
        let ask = Ask::Granular(Granular { sandbox_approval, rules: true });
        permissions(&Terms::of_policy(ask, Sandbox::WorkspaceWrite), &[])
    };
    assert!(granular(true).contains("require_escalated"));
    assert!(granular(false).contains("Nobody is asked"));
}

#[test]
fn the_model_knows_where_it_is() {
    let here = Environment {
        cwd: "/a<b>&c".to_owned(),
        shell: Some("bash".to_owned()),
        date: Some("2026-01-02".to_owned()),
    };
    assert_eq!(
        here.message(),
        "<environment_context>\n  <cwd>/a&lt;b&gt;&amp;c</cwd>\n  <shell>bash</shell>\n  \
         <current_date>2026-01-02</current_date>\n</environment_context>"
    );
    assert_eq!(here.change_since(&here), None);
    let there = Environment { cwd: "/d".to_owned(), ..here.clone() };
    assert!(there.change_since(&here).unwrap().contains("<cwd>/d</cwd>"));
}

#[test]
fn a_summary_says_what_it_is() {
    let message = summary_message(" done \n");
    assert!(message.starts_with(SUMMARY_PREFIX) && message.ends_with("\ndone"));
}
