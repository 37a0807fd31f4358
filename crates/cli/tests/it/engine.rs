//! `--agent engine`: what a user is told who has not set it up yet, and what who has.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tieline_testkit::model::ModelServer;
use tokio::runtime::Runtime;

use crate::tieline::{Outcome, Tieline};

const KEY: &str = "sk-very-secret-4711";

/// Gives every request the same answer.
struct Refuser {
    url: String,
    /// The heads of the requests.
    heads: Arc<Mutex<Vec<String>>>,
}

impl Refuser {
    fn new(status: &str, kind: &str, body: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let heads = Arc::new(Mutex::new(Vec::new()));
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\
             connection: close\r\n\r\n{body}",
            body.len()
        );
        let seen = Arc::clone(&heads);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if let Some(head) = serve(stream, &answer) {
                    seen.lock().unwrap().push(head);
                }
            }
        });
        Self { url, heads }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

/// Reads one request to its end and answers it.
fn serve(mut stream: TcpStream, answer: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let n = stream.read(&mut piece).ok().filter(|n| *n > 0)?;
        bytes.extend_from_slice(&piece[..n]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, _)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
        if bytes.len() >= head.len() + 4 + length {
            stream.write_all(answer.as_bytes()).ok()?;
            return Some(head);
        }
    }
}

/// What is said about the end of the turn, after the line that says it failed.
fn told(outcome: &Outcome) -> Vec<&str> {
    let mut lines = outcome.err.lines();
    lines.by_ref().find(|line| line.starts_with("— failed")).unwrap_or_else(|| {
        panic!("it did not fail: {outcome:#?}");
    });
    lines.collect()
}

/// A turn that fails.
#[track_caller]
fn fails(tieline: &Tieline, expected: &[&str]) -> Outcome {
    fails_with(1, tieline, expected)
}

#[track_caller]
fn fails_with(code: i32, tieline: &Tieline, expected: &[&str]) -> Outcome {
    let named = ["run", "--agent", "engine", "--model", "small", "--log", "trace"];
    let fresh = format!("-c=k{}", tieline.rows().as_array().unwrap().len());
    let args: Vec<&str> = named.into_iter().chain([fresh.as_str(), "hi"]).collect();
    let outcome = tieline.run(&args).ends_with(code);
    assert_eq!(told(&outcome), expected, "{outcome:#?}");
    outcome
}

/// The code of the failure as programs read it.
fn code(tieline: &Tieline) -> Value {
    let rows = tieline.rows();
    let key = rows[0]["key"].as_str().unwrap().to_owned();
    let events = tieline.events(&key);
    let end = events.iter().rev().find(|event| event["kind"] == "turn.completed").unwrap();
    end["data"]["error"]["code"].clone()
}

/// Whether a file below a directory has the key in it.
fn has_key(dir: &Path) -> bool {
    dir.read_dir().unwrap().any(|entry| {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => has_key(&path),
            false => {
                let bytes = std::fs::read(&path).unwrap();
                bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes())
            }
        }
    })
}

#[track_caller]
fn keeps_the_key(tieline: &Tieline, outcome: &Outcome) {
    assert!(!outcome.err.contains(KEY) && !outcome.out.contains(KEY), "{outcome:#?}");
    assert!(!has_key(&tieline.store()), "the store has the key");
    let list = tieline.run(&["list", "--json"]).succeeds().out;
    assert!(!list.contains(KEY));
}

#[test]
fn without_a_key_it_says_which_one() {
    let tieline = Tieline::new();
    let told = [
        "there is no key for openai: OPENAI_API_KEY is not set",
        "set OPENAI_API_KEY to the provider's key, or write the key to a file of mode 0600 and name it in \
         the configuration",
    ];
    for command in [&["run"][..], &["task", "run", "t1"]] {
        let args = [command, &["--agent", "engine", "hi"]].concat();
        let outcome = tieline.run(&args).ends_with(3);
        assert!(told.iter().all(|it| outcome.err.contains(it)), "{}", outcome.err);
        assert_eq!(tieline.rows().as_array().unwrap().len(), 0, "nothing has begun");
    }
}

#[test]
fn a_conversation_that_nobody_named_and_whose_agent_cannot_start_is_not_kept() {
    let tieline = Tieline::new();
    let program = tieline.program("broken", "");
    std::fs::write(&program, "#!/no/such/interpreter\n").unwrap();
    let tieline = tieline.with("TIELINE_CLAUDE", program);
    let outcome = tieline.run(&["run", "--agent", "claude", "hi"]).ends_with(3);
    assert_eq!(outcome.err.matches("cannot start").count(), 1, "{}", outcome.err);
    assert!(outcome.err.contains("No such file or directory"), "{}", outcome.err);
    assert!(!outcome.err.contains("go on"), "{}", outcome.err);
    assert_eq!(tieline.rows().as_array().unwrap().len(), 0);
    tieline.run(&["run", "--agent", "claude", "-c", "named", "hi"]).ends_with(3);
    assert_eq!(tieline.rows()[0]["key"], "named");
}

#[test]
fn a_wrong_key_is_told_and_never_shown() {
    let body = format!(
        r#"{{"error":{{"message":"Incorrect API key provided: {KEY}.","type":"invalid_request_error","code":"invalid_api_key"}}}}"#
    );
    let server = Refuser::new("401 Unauthorized", "application/json", &body);
    let tieline = Tieline::new().with("OPENAI_API_KEY", KEY).with("OPENAI_BASE_URL", &server.url);
    let outcome = fails_with(
        3,
        &tieline,
        &[
            "openai does not accept the key",
            "put a valid key into OPENAI_API_KEY",
            "  Incorrect API key provided: ***.",
        ],
    );
    let heads = server.heads();
    assert_eq!(heads.len(), 1, "a wrong key is not tried again");
    assert!(heads[0].contains(&format!("authorization: bearer {KEY}")), "{heads:?}");
    keeps_the_key(&tieline, &outcome);
    assert_eq!(code(&tieline), "not_logged_in");
    // The same by a file, which others must not read.
    let file = tieline.path("key");
    std::fs::write(&file, format!("{KEY}\n")).unwrap();
    let text = format!(
        "[engine]\nprovider = \"own\"\n[engine.providers.own]\nbase_url = \"{}\"\n\
         key_file = \"~/key\"\n",
        server.url
    );
    let tieline = tieline.with_config(&text);
    set_mode(&file, 0o644);
    let path = file.display();
    let exposed = [
        format!("there is no key for own: the key in {path} can be read by others (mode 0644)"),
        format!("run `chmod 600 {path}`"),
    ];
    let outcome = tieline.run(&["run", "--agent", "engine", "hi"]).ends_with(3);
    assert!(exposed.iter().all(|it| outcome.err.contains(it)), "{}", outcome.err);
    set_mode(&file, 0o600);
    let hint = format!("put a valid key into {path}");
    let expected = ["own does not accept the key", &hint, "  Incorrect API key provided: ***."];
    let outcome = fails_with(3, &tieline, &expected);
    keeps_the_key(&tieline, &outcome);
}

fn set_mode(file: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// An address where nobody listens.
fn nowhere() -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    format!("http://{}/v1", listener.local_addr().unwrap())
}

#[test]
fn an_endpoint_that_is_not_there_is_told_after_one_round_of_tries() {
    let url = nowhere();
    let tieline = Tieline::new().with("OPENAI_API_KEY", KEY).with("OPENAI_BASE_URL", &url);
    let outcome = fails(
        &tieline,
        &[
            &format!("nothing listens at {url}"),
            "start the server, or correct base_url",
            "  Connection refused (os error 111)",
        ],
    );
    let tries: Vec<&str> =
        outcome.err.lines().filter(|line| line.contains("Reconnecting...")).collect();
    assert_eq!(tries.len(), 4, "{tries:#?}");
    for (n, line) in tries.iter().enumerate() {
        let expected = format!("Reconnecting... {}/4 (no connection: Connection refused", n + 1);
        assert!(line.contains(&expected), "{line}");
    }
    assert_eq!(code(&tieline), "provider_unavailable");
    keeps_the_key(&tieline, &outcome);
}

#[test]
fn an_unknown_model_is_told_by_its_name() {
    let said = "The model `small` does not exist or you do not have access to it.";
    let openai = format!(
        r#"{{"error":{{"message":"{said}","type":"invalid_request_error","param":"model","code":"model_not_found"}}}}"#
    );
    let ollama = r#"{"error":{"message":"model 'small' not found","type":"not_found_error","param":null,"code":null}}"#;
    for (status, body, detail) in [
        ("404 Not Found", openai.as_str(), format!("  {said}")),
        ("400 Bad Request", &openai, format!("  {said}")),
        ("404 Not Found", ollama, "  model 'small' not found".to_owned()),
    ] {
        let server = Refuser::new(status, "application/json", body);
        let tieline = Tieline::new().with("OPENAI_BASE_URL", &server.url);
        fails(
            &tieline,
            &[
                "openai has no model small",
                "choose another --model; the provider lists those of your account",
                &detail,
            ],
        );
        assert_eq!(code(&tieline), "bad_request");
        let heads = server.heads();
        assert_eq!(heads.len(), 1);
        assert!(!heads[0].contains("authorization"), "no key is sent where none is set: {heads:?}");
    }
}

#[test]
fn an_endpoint_without_the_api_is_told() {
    for (status, kind, body, detail) in [
        ("404 Not Found", "text/plain", "404 page not found", Some("  404 page not found")),
        ("404 Not Found", "application/json", r#"{"detail":"Not Found"}"#, Some("  Not Found")),
        ("405 Method Not Allowed", "text/html", "<html>no</html>", Some("  a page of HTML")),
        ("501 Not Implemented", "application/json", "{}", None),
    ] {
        let server = Refuser::new(status, kind, body);
        let tieline = Tieline::new().with("OPENAI_BASE_URL", &server.url);
        let message = format!("there is no {}/responses", server.url);
        let mut expected = vec![
            message.as_str(),
            "check base_url; a server that has only /chat/completions has to be updated to one \
             with the Responses API",
        ];
        expected.extend(detail);
        fails(&tieline, &expected);
        assert_eq!(server.heads().len(), 1, "{status}");
    }
    // A web server that says yes to everything.
    let server = Refuser::new("200 OK", "text/html; charset=utf-8", "<html>hi</html>");
    let tieline = Tieline::new().with("OPENAI_BASE_URL", &server.url);
    let message = format!(
        "{}/responses does not speak the Responses API: text/html; charset=utf-8 in place of a \
         stream of events",
        server.url
    );
    fails(&tieline, &[&message, "check base_url"]);
    assert_eq!(code(&tieline), "protocol");
}

#[test]
fn an_address_that_is_none_is_told_before_anything_is_asked() {
    let tieline = Tieline::new().with("OPENAI_BASE_URL", "localhost:11434");
    let outcome = tieline.run(&["run", "--agent", "engine", "hi"]).ends_with(3);
    assert!(outcome.err.contains("cannot ask openai: the URL"), "{}", outcome.err);
    assert!(outcome.err.contains("correct the model provider"), "{}", outcome.err);
}

#[test]
fn a_local_model_needs_one_variable() {
    let runtime = Runtime::new().unwrap();
    let model = runtime.block_on(ModelServer::start());
    let url = format!("{}/v1", model.url());
    let tieline = Tieline::new().with("OPENAI_BASE_URL", &url);
    let args = ["run", "--agent", "engine", "--model", "qwen3", "--format", "final"];
    let said = tieline.run(&[&args[..], &["SCENARIO:hello"]].concat()).succeeds();
    assert_eq!(said.out.trim(), "Hello from the fake model.");
    let asked = model.requests();
    assert_eq!(asked.last().unwrap().body["model"], "qwen3");
    // Nobody needs to name the agent either.
    let auto = tieline.run(&["run", "--model", "qwen3", "SCENARIO:hello"]).succeeds();
    assert!(
        auto.err.contains("tieline: agent engine (OPENAI_BASE_URL names a model)"),
        "{}",
        auto.err
    );
}

#[test]
fn auto_takes_the_engine_where_a_model_is_named_and_no_other_agent_is_there() {
    let url = nowhere();
    let config = format!(
        "[engine]\nprovider = \"own\"\n[engine.providers.own]\nbase_url = \"{url}\"\n\
         request_max_retries = 0\n"
    );
    let tieline = Tieline::new().with_config(&config);
    let outcome = tieline.run(&["run", "hi"]).ends_with(1);
    assert!(outcome.err.contains("agent engine ([engine] names a model)"), "{}", outcome.err);
    assert!(!outcome.err.contains("Reconnecting"), "none was wanted: {}", outcome.err);
    tieline.program(".local/bin/codex", "[ \"$1\" = --version ] && echo 'codex-cli 0.1.0'");
    let outcome = tieline.run(&["run", "hi"]);
    assert!(outcome.err.contains("agent codex (found"), "{}", outcome.err);
}

/// What doctor says about a part of the engine: its state, what is there, and what to do.
fn checked(tieline: &Tieline, code: i32) -> Vec<(String, String, String, String)> {
    let outcome = tieline.run(&["doctor", "--json", "--log", "trace"]).ends_with(code);
    assert!(!outcome.out.contains(KEY) && !outcome.err.contains(KEY), "{outcome:#?}");
    let report: Value = serde_json::from_str(&outcome.out).unwrap();
    let word = |it: &Value, name: &str| it[name].as_str().unwrap_or_default().to_owned();
    let checks = report["checks"].as_array().unwrap().iter();
    let engine = checks.filter(|it| it["area"] == "engine");
    let row =
        |it: &Value| (word(it, "name"), word(it, "state"), word(it, "detail"), word(it, "advice"));
    engine.map(row).collect()
}

fn row(name: &str, state: &str, detail: &str, advice: &str) -> (String, String, String, String) {
    (name.to_owned(), state.to_owned(), detail.to_owned(), advice.to_owned())
}

#[test]
fn doctor_says_where_the_model_is_and_whether_it_is_there() {
    let model = "gpt-5.2-codex by openai at https://api.openai.com/v1";
    let unset = "there is no key for openai: OPENAI_API_KEY is not set";
    let advice = "set OPENAI_API_KEY, or OPENAI_BASE_URL to a server of your own; docs/engine.md \
                  says more";
    assert_eq!(
        checked(&Tieline::new(), 0),
        [
            row("model", "missing", &format!("{model}; not asked for"), ""),
            row("key", "missing", unset, advice),
            row("endpoint", "missing", "not asked without a key", ""),
        ]
    );
    // Nobody outside is asked.
    assert_eq!(
        checked(&Tieline::new().with("OPENAI_API_KEY", KEY), 0),
        [
            row("model", "missing", &format!("{model}; not asked for"), ""),
            row("key", "good", "OPENAI_API_KEY is set", ""),
            row("endpoint", "missing", "not asked; --online does", ""),
        ]
    );
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(ModelServer::start());
    let url = format!("{}/v1", server.url());
    let local = format!("gpt-5.2-codex by openai at {url}; the server does not list it");
    let names = "name one that it lists with engine.model: gpt-5.5, claude-opus-5-5";
    let good = row("endpoint", "good", "it answers, and has /responses", "");
    assert_eq!(
        checked(&Tieline::new().with("OPENAI_BASE_URL", &url), 1),
        [
            row("model", "bad", &local, names),
            row("key", "good", "none is needed", ""),
            good.clone()
        ]
    );
    let listed = format!("gpt-5.5 by openai at {url}; the server lists it");
    let tieline =
        Tieline::new().with_config("[engine]\nmodel = \"gpt-5.5\"\n").with("OPENAI_BASE_URL", &url);
    assert_eq!(
        checked(&tieline, 0),
        [row("model", "good", &listed, ""), row("key", "good", "none is needed", ""), good]
    );
    // One that has neither a list nor the API.
    let other = Refuser::new("404 Not Found", "application/json", "{}");
    let found = checked(&Tieline::new().with("OPENAI_BASE_URL", &other.url), 1);
    let model = format!("gpt-5.2-codex by openai at {}; the server lists no models", other.url);
    assert_eq!(found[0], row("model", "missing", &model, ""));
    let (_, state, detail, advice) = found.last().unwrap();
    assert_eq!((state.as_str(), detail.as_str()), ("bad", "it answers, but has no /responses"));
    assert!(advice.contains("/chat/completions"), "{advice}");
    let refuser = Refuser::new("401 Unauthorized", "application/json", "{}");
    let tieline = Tieline::new().with("OPENAI_BASE_URL", &refuser.url).with("OPENAI_API_KEY", KEY);
    let found = checked(&tieline, 1);
    let expected = row(
        "endpoint",
        "bad",
        "openai does not accept the key",
        "put a valid key into OPENAI_API_KEY",
    );
    assert_eq!(found.last(), Some(&expected));
    let url = nowhere();
    let found = checked(&Tieline::new().with("OPENAI_BASE_URL", &url), 1);
    let detail = format!("nothing listens at {url}");
    let expected = row("endpoint", "bad", &detail, "start the server, or correct base_url");
    assert_eq!(found.last(), Some(&expected));
}
