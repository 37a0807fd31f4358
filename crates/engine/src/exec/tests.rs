use super::*;

fn ran(cause: Cause, exit: Exit, text: &str) -> Ran {
    let ended = Ended {
        exit: Some(exit),
        cause,
        elapsed: Duration::from_millis(1260),
        cut: false,
        withheld: 0,
    };
    let output = Printed { text: text.into(), total: text.len() as u64, left_out: 0 };
    Ran { ended, output, stdout: Printed::default(), stderr: Printed::default() }
}

const ZERO: Exit = Exit { code: Some(0), signal: None };
const KILLED: Exit = Exit { code: None, signal: Some(9) };

#[test]
fn a_run_is_told_with_code_time_and_output() {
    let told = ran(Cause::Itself, ZERO, "a\nb\n").to_model(100);
    assert_eq!(told, "Exit code: 0\nWall time: 1.3 seconds\nOutput:\na\nb\n");
    let told = ran(Cause::Itself, KILLED, "").to_model(100);
    assert_eq!(told, "Exit code: 137\nWall time: 1.3 seconds\nOutput:\n");
    let limit = Duration::from_secs(10);
    let told = ran(Cause::TimedOut { limit }, KILLED, "a\n").to_model(100);
    assert_eq!(
        told,
        "Exit code: 124\nWall time: 1.3 seconds\nOutput:\n\
         command timed out after 10000 milliseconds\na\n"
    );
    let told = ran(Cause::Itself, ZERO, "1\n2\n3\n4\n5\n6\n").to_model(2);
    assert_eq!(
        told,
        "Exit code: 0\nWall time: 1.3 seconds\nTotal output lines: 6\nOutput:\n\
         1\n2\n…1 tokens truncated…5\n6\n"
    );
}

#[test]
fn a_session_is_told_with_its_number_or_its_code() {
    let output = |text: &str| Printed { text: text.into(), ..Printed::default() };
    let waited = Duration::from_millis(1250);
    let state = State::Running(SessionId(5));
    let told = Yielded { output: output("x\n"), waited, state }.to_model(100);
    assert_eq!(told, "Wall time: 1.2500 seconds\nProcess running with session ID 5\nOutput:\nx\n");
    let state = State::Ended(Box::new(ran(Cause::Itself, ZERO, "")));
    let told = Yielded { output: output("1\n2\n3\n4\n5\n6\n"), waited, state }.to_model(2);
    assert_eq!(
        told,
        "Wall time: 1.2500 seconds\nProcess exited with code 0\nOriginal token count: 3\nOutput:\n\
         Total output lines: 6\n\n1\n2\n…1 tokens truncated…5\n6\n"
    );
}

#[test]
fn a_text_is_cut_in_its_middle_between_characters() {
    let whole = truncate_middle("12345678", 2);
    assert_eq!((&*whole.text, whole.original_tokens), ("12345678", None));
    let cut = truncate_middle("€€€€€", 2);
    assert_eq!((&*cut.text, cut.original_tokens), ("€…3 tokens truncated…€", Some(4)));
    let none = truncate_middle("abc", 0);
    assert_eq!(&*none.text, "…1 tokens truncated…");
}

#[test]
fn a_terminal_keeps_its_name_and_nobody_turns_pages() {
    let mut base = Env::empty();
    base.set("TERM", "screen").set("LC_CTYPE", "de_DE.UTF-8").set("PAGER", "less");
    let env = environment(&base, Input::Terminal(TerminalSize::default()));
    let shown = |env: &Env, name: &str| env.get(name).map(|it| it.to_string_lossy().into_owned());
    assert_eq!(shown(&env, "TERM").as_deref(), Some("screen"));
    assert_eq!(shown(&env, "PAGER").as_deref(), Some("cat"));
    assert_eq!(shown(&env, "LANG"), None);
    let env = environment(&Env::empty(), Input::None);
    assert_eq!(shown(&env, "TERM").as_deref(), Some("dumb"));
    assert_eq!(shown(&env, "LANG").as_deref(), Some("C.UTF-8"));
}
