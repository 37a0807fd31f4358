//! The real agents against the scripted model, in a network of loopback alone.
//!
//! A row of the table is a scene, its sentence for `docs/wires.md`, the file it is in, and a cell
//! for each wire in the order of [`Wire::ALL`]. A cell is `yes`, or the reason why the wire cannot
//! do it, with a scene that proves the gap where that is cheap. Tests and page come from the same
//! rows, so that neither tells more than the other.

mod approvals;
mod claude;
mod codex;
mod example;
mod failures;
mod interrupts;
mod scene;
mod sessions;
mod tools;
mod wire;

use std::fmt::Write as _;

use self::wire::Wire;

struct Row {
    part: &'static str,
    scene: &'static str,
    sentence: &'static str,
    /// Why not, for each wire that cannot.
    cells: [Option<&'static str>; 5],
}

macro_rules! table {
    ($($part:literal { $(
        $scene:ident $sentence:literal $file:ident: $claude:tt $codex:tt $exec:tt $proto:tt
            $acp:tt;
    )* })*) => {
        const TABLE: &[Row] = &[$($(Row {
            part: $part,
            scene: stringify!($scene),
            sentence: $sentence,
            cells: [
                reason!($claude), reason!($codex), reason!($exec), reason!($proto), reason!($acp)
            ],
        },)*)*];

        $($(pub(super) mod $scene {
            use super::*;

            cell!($claude, claude, Wire::Claude, $file::$scene);
            cell!($codex, codex, Wire::Codex, $file::$scene);
            cell!($exec, codex_exec, Wire::CodexExec, $file::$scene);
            cell!($proto, codex_proto, Wire::CodexProto, $file::$scene);
            cell!($acp, acp_claude, Wire::AcpClaude, $file::$scene);
        })*)*
    };
}

macro_rules! reason {
    (yes) => {
        None
    };
    (($reason:expr)) => {
        Some($reason)
    };
    (($reason:expr, $check:path)) => {
        Some($reason)
    };
}

macro_rules! cell {
    (yes, $name:ident, $wire:path, $scene:path) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            $scene($wire).await;
        }
    };
    (($reason:expr), $name:ident, $wire:path, $scene:path) => {};
    (($reason:expr, $check:path), $name:ident, $wire:path, $scene:path) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            $check($wire).await;
        }
    };
}

const NO_DIALOGUE: &str = "`exec` takes no answers";
const NO_RESUME: &str = "`proto` of this version cannot go on with a session";
const NO_PLACE: &str =
    "it branches off at the end alone: once the other one went on, the turn fails";
const NO_QUESTIONS: &str = "this version's model has no tool to ask with";

table! {
    "Text and tools" {
        hello "A prompt is answered once, with the tokens of this turn" tools: yes yes yes yes yes;
        streaming "Text is shown while it is written" tools:
            yes yes ("`exec` writes whole messages", tools::no_streaming) yes yes;
        reasoning "The model's thoughts are shown" tools: yes yes yes yes yes;
        command_runs "A command is shown with its output and exit code" tools: yes yes yes yes yes;
        command_fails "A failing command is shown as failed" tools: yes yes yes yes yes;
        sandbox "A command runs in the sandbox of its mode" tools:
            ("it asks; its sandbox is a setting of its own") yes yes
            ("`proto` starts none on Linux: the command fails", tools::no_sandbox) ("it asks; its sandbox is a setting of its own");
        parallel_commands "Commands at the same time are told apart" tools: yes yes yes yes yes;
        patch "A changed file is named" tools: yes yes yes yes yes;
        patch_text "A changed file is shown with its change" tools:
            yes yes ("`exec` names the file alone", tools::no_patch_text) yes yes;
        plan "The agent's list of steps is shown" tools: yes yes yes yes yes;
        mcp_tool "A tool of an MCP server is called" tools: yes yes yes yes yes;
        client_mcp "A client's MCP server is used, beside the user's own" tools: yes yes yes yes yes;
        client_directory "A client's directory is written in as the workspace is" tools:
            yes yes yes ("`proto` starts no sandbox on Linux: the command fails") yes;
        mcp_tool_fails "A failing tool of an MCP server is shown as failed" tools: yes yes yes yes yes;
        web_search "A search of the web is shown" tools: yes yes yes yes yes;
        unknown_tool "A tool that does not exist does not end the turn" tools: yes yes yes yes yes;
    }
    "Sessions" {
        resume "A conversation goes on in a new process" sessions:
            yes yes yes (NO_RESUME, sessions::no_resume) yes;
        command_line "A new `tieline run` goes on by the conversation's key" sessions:
            yes yes yes (NO_RESUME) yes;
        reset "A conversation begins a new session and keeps its history" sessions:
            yes yes yes yes yes;
        fork "A conversation branches off" sessions:
            yes yes yes ("`proto` has no word for it", sessions::no_fork) yes;
        fork_is_a_snapshot "A branch has nothing of what the other one does later" sessions:
            yes yes (NO_PLACE, sessions::fork_is_refused_later) ("`proto` has no word for it")
            (NO_PLACE, sessions::fork_is_refused_later);
        sleep "An idle agent is put to sleep and resumed unseen" sessions: yes yes yes (NO_RESUME) yes;
        mode_and_model "Mode and model change between turns" sessions: yes yes yes yes yes;
        effort "The effort is chosen, and changes between turns" sessions: yes yes yes yes yes;
        offer "Models, efforts and commands are told before the first turn" sessions:
            yes yes ("`exec` begins with its prompt") ("`proto` tells of none") yes;
        unknown_session "A session the agent forgot is an error with a way out" sessions:
            yes yes yes yes yes;
        notify "A program of ours is called at the end of a turn" sessions:
            ("it has hooks instead") yes yes yes ("the protocol has none");
        preamble "The model is told the workspace" sessions: yes yes yes yes yes;
    }
    "Approvals and questions" {
        command_allowed "A command waits for a yes" approvals:
            yes yes (NO_DIALOGUE, approvals::no_approvals) yes yes;
        command_allowed_for_session "A yes for the session is not asked again" approvals:
            yes yes (NO_DIALOGUE) yes
            ("the adapter offers it for some commands only", approvals::command_asked_again);
        command_declined "After a no the turn goes on" approvals: yes yes (NO_DIALOGUE) yes yes;
        command_cancelled "After a no and stop the turn ends" approvals:
            yes yes (NO_DIALOGUE) yes yes;
        file_allowed "A change of a file waits for a yes" approvals: yes yes (NO_DIALOGUE) yes yes;
        file_allowed_for_session "A yes for the session holds for the file" approvals:
            yes yes (NO_DIALOGUE) ("this version asks each time", approvals::file_asked_again) yes;
        file_declined "A change of a file that got a no is not made" approvals:
            yes yes (NO_DIALOGUE) yes yes;
        file_cancelled "After a no and stop to a change the turn ends" approvals:
            yes yes (NO_DIALOGUE) yes yes;
        policy "A finer policy than a mode holds" approvals:
            ("it has modes alone", approvals::no_policy) yes (NO_DIALOGUE) yes
            ("the protocol has modes alone", approvals::no_policy);
        headless_denied "With nobody to ask, the answer is no and says so" approvals:
            yes yes (NO_DIALOGUE) yes yes;
        headless_allowed "With nobody to ask, the answer can be yes" approvals:
            yes yes (NO_DIALOGUE) yes yes;
        question_while_planning "The agent asks while it plans" approvals:
            yes yes (NO_DIALOGUE) (NO_QUESTIONS) yes;
        question_while_working "The agent asks while it works" approvals:
            yes yes (NO_DIALOGUE, approvals::no_question) (NO_QUESTIONS, approvals::no_question) yes;
        mcp_question "An MCP server asks" approvals:
            ("tieline does not pass the question on", approvals::no_mcp_question) yes (NO_DIALOGUE)
            ("this version leaves it unanswered") yes;
    }
    "Interrupts" {
        interrupt_at_once "A turn is stopped before it has begun" interrupts: yes yes yes yes yes;
        interrupt_text "A turn is stopped while text streams" interrupts: yes yes yes yes yes;
        interrupt_command "A turn is stopped while a command runs" interrupts: yes yes yes yes yes;
        interrupt_approval "A turn is stopped while an approval is open" interrupts:
            yes yes (NO_DIALOGUE) yes yes;
        steer "A message in the middle of a turn is taken into it" interrupts:
            yes yes ("`exec` takes one prompt", interrupts::no_steering) yes yes;
        killed "An agent that is killed is known at once, and the next turn works" interrupts:
            yes yes yes ("known at once; the session is lost with its process", interrupts::killed) yes;
    }
    "Failures" {
        http_400 "The provider rejects the request" failures: yes yes yes yes yes;
        http_401 "Nobody is logged in" failures: yes yes yes yes yes;
        http_429 "The provider's limit is reached" failures: yes yes yes yes yes;
        http_500 "The provider is broken" failures: yes yes yes yes yes;
        stream_dropped_once "A lost stream is tried again, with a notice" failures:
            yes yes yes yes
            ("tried again; the adapter tells nobody", failures::stream_dropped_silently);
        stream_dropped_always "A stream that is always lost is a failure" failures:
            yes yes yes yes yes;
        stream_failed "The provider fails inside the stream" failures: yes yes yes yes yes;
        max_tokens "The model's limit of output is reached" failures:
            yes yes yes ("this version takes it for a lost stream", failures::max_tokens_unknown) yes;
    }
}

/// Whether the table says that a wire can do what a scene shows.
fn can(wire: Wire, scene: &str) -> bool {
    let row = TABLE.iter().find(|row| row.scene == scene).expect("the scene is in the table");
    let place = Wire::ALL.iter().position(|it| *it == wire).expect("every wire is in the table");
    row.cells[place].is_none()
}

const PAGE: &str = "\
# Wires

What tieline can do over each wire, as its tests with the real agents prove it. Each `yes` is a test
that drives the pinned program against a scripted model; any other cell says what stands in the way.
The table is the one those tests are made from (`crates/hub/tests/it/real.rs`), so it cannot drift;
`UPDATE_EXPECT=1 cargo xtask test --real wires` writes this page anew.
";

#[test]
fn the_page_of_wires_is_the_table() {
    let mut page = format!("{PAGE}\n| agent | version | what is started |\n|---|---|---|\n");
    for wire in Wire::ALL {
        let (name, version, command) = (wire.name(), wire.version(), wire.command());
        writeln!(page, "| `{name}` | {version} | `{command}` |").unwrap();
    }
    let mut part = "";
    for row in TABLE {
        if row.part != part {
            part = row.part;
            let names = Wire::ALL.map(Wire::name).join(" | ");
            writeln!(page, "\n## {part}\n\n| | {names} |\n|---|---|---|---|---|---|").unwrap();
        }
        let cells = row.cells.map(|reason| reason.unwrap_or("yes")).join(" | ");
        writeln!(page, "| {} | {cells} |", row.sentence).unwrap();
    }
    expect_test::expect_file!["../../../../docs/wires.md"].assert_eq(&page);
}
