//! What is tried.

mod acp;
mod claude;
mod codex_app;
mod codex_exec;
mod config;
mod drivers;
mod jsonrpc;
mod markers;
mod ndjson;
mod patch;
mod responses;
mod sqeq;
mod sse;
mod switchboard;

/// One thing that reads bytes nobody has looked at.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, which is that of its corpus.
    pub name: &'static str,
    /// Panics when something does not hold for this input.
    pub check: fn(&[u8]),
}

impl Target {
    /// The target of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        TARGETS.iter().find(|target| target.name == name)
    }
}

/// Makes a table of the list below, and tests of the same list for those who include this.
///
/// A new target is a line here, a file in `targets/` and a folder in `corpus/`.
#[macro_export]
macro_rules! for_each_target {
    ($table:ident) => {
        $table! {
            ndjson: ndjson::check,
            jsonrpc: jsonrpc::check,
            claude: claude::check,
            codex_exec: codex_exec::check,
            codex_app: codex_app::check,
            sqeq: sqeq::check,
            acp: acp::check,
            markers: markers::check,
            config: config::check,
            sse: sse::check,
            responses: responses::check,
            patch: patch::check,
            switchboard: switchboard::check,
            claude_driver: drivers::claude,
            codex_exec_driver: drivers::codex_exec,
            codex_app_driver: drivers::codex_app,
            codex_proto_driver: drivers::codex_proto,
            acp_driver: drivers::acp,
        }
    };
}

macro_rules! table {
    ($($name:ident: $check:path,)*) => {
        /// Every target.
        pub const TARGETS: &[Target] =
            &[$(Target { name: stringify!($name), check: $check }),*];
    };
}
for_each_target!(table);

/// The lines of an input, as a framer would give them.
fn lines(input: &[u8]) -> impl Iterator<Item = &[u8]> {
    input.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

/// A sum of the input, for whatever is to be chosen by it.
fn sum(input: &[u8]) -> u64 {
    input.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Cuts an input into pieces of any length.
fn chunks(input: &[u8]) -> Vec<&[u8]> {
    let mut rng = fastrand::Rng::with_seed(sum(input));
    let longest = rng.choice([1, 7, 64, 4096]).unwrap_or(1);
    let mut rest = input;
    let mut chunks = Vec::new();
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(rng.usize(1..=longest.min(rest.len())));
        chunks.push(chunk);
        rest = after;
    }
    chunks
}
