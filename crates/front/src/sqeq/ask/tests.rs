use super::*;

fn request(id: &str, body: RequestBody, kinds: &[ChoiceKind]) -> Request {
    let option = |(at, kind): (usize, &ChoiceKind)| Choice {
        id: format!("option-{at}"),
        label: String::new(),
        kind: *kind,
    };
    Request {
        id: RequestId::new(id),
        item: None,
        title: "May I?".into(),
        reason: None,
        body,
        options: kinds.iter().enumerate().map(option).collect(),
    }
}

fn approval() -> RequestBody {
    RequestBody::Approval(Approval {
        tool: "Fetch".into(),
        path: Some("/p".into()),
        ..Approval::default()
    })
}

fn asking(call: &str, command: Option<&str>) -> Asking {
    Asking {
        call: call.into(),
        command: command.map(str::to_owned),
        cwd: "/w".into(),
        changes: Vec::new(),
        server: None,
    }
}

fn ask(asked: &mut Asked, compat: Compat, request: &Request, asking: &Asking) -> EventMsg<'static> {
    let wording = Wording { compat, form: sqeq::ChangeForm::Tagged, sub: "sub" };
    asked.ask(request, asking, &wording, &mut |_| None)
}

#[test]
fn an_approval_is_found_by_its_call_or_by_its_task() {
    let mut asked = Asked::default();
    for id in ["one", "two", "three"] {
        let request = request(id, approval(), &[]);
        ask(&mut asked, Compat::Seed, &request, &asking(&format!("call-{id}"), Some("ls")));
    }
    let mut decide = |id: &str| {
        let found = asked.decide(id, Subject::Command, Verdict::Yes);
        found.map(|(request, _)| request.to_string())
    };
    assert_eq!(decide("call-two").as_deref(), Some("two"));
    assert_eq!(decide("call-two"), None, "once");
    assert_eq!(decide("sub").as_deref(), Some("one"), "the oldest");
    assert_eq!(decide("three").as_deref(), Some("three"));
    assert_eq!(decide("sub"), None);
}

#[test]
fn a_yes_is_never_wider_than_what_was_said() {
    use ChoiceKind::{AllowAlways, AllowOnce, AllowSession, Deny, DenyAndStop};
    let choose =
        |verdict, kinds: &[ChoiceKind]| answer(verdict, &request("r", approval(), kinds).options);
    let option = |at: usize| Answer::Choose { option: format!("option-{at}") };
    let all = [AllowOnce, AllowSession, AllowAlways, Deny, DenyAndStop];
    assert_eq!(choose(Verdict::Yes, &all), option(0));
    assert_eq!(choose(Verdict::YesForSession, &all), option(1));
    assert_eq!(choose(Verdict::YesAlways, &all), option(2));
    assert_eq!(choose(Verdict::No(None), &all), option(3));
    assert_eq!(choose(Verdict::Stop, &all), option(4));
    assert_eq!(choose(Verdict::YesForSession, &[AllowAlways, AllowOnce]), option(1));
    assert_eq!(choose(Verdict::Yes, &[AllowAlways]), AllowOnce.answer());
    let why = Verdict::No(Some("no".into()));
    assert_eq!(choose(why, &all), Answer::deny("no"));
}

#[test]
fn what_is_about_neither_command_nor_files_is_asked_in_the_words_the_client_knows() {
    let request = request("r", approval(), &[]);
    let mut asked = Asked::default();
    let seed = ask(&mut asked, Compat::Seed, &request, &asking("c", None));
    assert_eq!(seed.kind(), "elicitation_request");
    assert!(asked.decide("c", Subject::Server, Verdict::Yes).is_some());
    let upstream = ask(&mut asked, Compat::Upstream, &request, &asking("c", None));
    let EventMsg::ExecApprovalRequest(it) = upstream else { panic!("an approval") };
    let words: Vec<&str> = it.command.iter().map(|word| &**word).collect();
    assert_eq!(words, ["Fetch", "/p"]);
}
