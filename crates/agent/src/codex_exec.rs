//! Codex by `codex exec --json`: one process for each turn.
//!
//! [`CodexExec`] starts it, [`ExecDriver`] reads it. The wire goes one way: the prompt goes in on
//! stdin, and that is all. Nothing can be asked, so every mode runs with the approval policy
//! `never` in the sandbox the mode stands for, and a notice says so. What a version prints and
//! which words it takes is in one table (`setup.rs`).

mod driver;
mod item;
mod old;
mod setup;
mod usage;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tieline_event::{Content, Failure, FailureCode, ImageSource, Text};

use crate::codex::Codex;
use crate::driver::{Agent, Launch, Launching, Plan};
use crate::files::PrivateFiles;

pub use driver::{ExecDriver, Setup};
pub(crate) use setup::plan_mode_off;

/// Codex by its exec wire.
#[derive(Debug, Clone)]
pub struct CodexExec {
    /// The program.
    pub codex: Codex,
}

impl Agent for CodexExec {
    fn name(&self) -> &'static str {
        "codex-exec"
    }

    fn launch<'a>(&'a self, launch: Launch<'a>) -> Launching<'a> {
        Box::pin(async move {
            let Codex { program, env, preamble, versions, .. } = &self.codex;
            let version = versions.of(program, env).await?;
            let pictures = pictures(launch.pictures).await?;
            let files = pictures.as_ref().map_or(&[][..], PrivateFiles::paths);
            let args = setup::arguments(&self.codex, version, &launch, files)?;
            let driver = Box::new(ExecDriver::new(Setup::of(version, &launch)));
            Ok(Plan {
                args,
                one_turn: true,
                preamble: *preamble,
                files: pictures,
                ..Plan::new(program.clone(), env.clone(), driver)
            })
        })
    }
}

/// The pictures of a message as files, which the program reads; none without pictures.
async fn pictures(pictures: &[Content]) -> Result<Option<PrivateFiles>, Failure> {
    let mut files = Vec::new();
    for picture in pictures {
        let Content::Image { mime, source: ImageSource::Base64(Text::Inline(data)) } = picture
        else {
            continue;
        };
        let bytes = STANDARD.decode(data.as_bytes()).map_err(|error| {
            let text = format!("a picture of the message is not base64: {error}");
            Failure::new(FailureCode::BadRequest, text).hint("send the picture again")
        })?;
        let subtype = mime.strip_prefix("image/").unwrap_or_default();
        let is_plain = !subtype.is_empty() && subtype.chars().all(|it| it.is_ascii_alphanumeric());
        let ending = if is_plain { subtype } else { "picture" };
        files.push((format!("{}.{ending}", files.len() + 1), bytes));
    }
    if files.is_empty() {
        return Ok(None);
    }
    let written = tokio::task::spawn_blocking(move || PrivateFiles::write(&files)).await;
    let written = written.map_err(std::io::Error::other).flatten();
    written.map(Some).map_err(|error| {
        let text = format!("the pictures of the message cannot be written to files: {error}");
        Failure::new(FailureCode::AgentCannotStart, text)
            .hint("make room in the directory for temporary files (TMPDIR)")
    })
}
