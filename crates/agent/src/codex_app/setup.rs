//! Starting the app server.

use std::ffi::OsString;
use std::sync::atomic::{AtomicI64, Ordering};

use tieline_event::{Failure, FailureCode};

use super::driver::AppDriver;
use super::switchboard::AppSwitchboard;
use crate::codex::{Codex, FIRST_APP_SERVER, SavedPrompt, Version, home, notify_override};
use crate::driver::{Agent, Launch, Launching, Plan, Share};

/// The first version whose lines all name their thread.
const FIRST_SHARED: Version = Version(0, 72, 0);

/// Codex by its app server.
#[derive(Debug, Clone)]
pub struct CodexApp {
    /// The program.
    pub codex: Codex,
    /// How many conversations may share one server.
    pub seats: usize,
}

impl Agent for CodexApp {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn launch<'a>(&'a self, launch: Launch<'a>) -> Launching<'a> {
        Box::pin(self.plan(launch))
    }
}

impl CodexApp {
    async fn plan(&self, launch: Launch<'_>) -> Result<Plan, Failure> {
        let Codex { program, args, env, preamble, notify, versions } = &self.codex;
        let mut version = versions.of(program, env).await?;
        if version < FIRST_APP_SERVER {
            version = versions.again(program, env).await?;
        }
        if version < FIRST_APP_SERVER {
            return Err(Failure::new(
                FailureCode::AgentCannotStart,
                format!("Codex {version} has no app server that tieline can speak with"),
            )
            .hint(format!(
                "update it to {FIRST_APP_SERVER} or later (npm install -g @openai/codex@latest), \
                 or choose --agent codex-exec"
            )));
        }
        // Before, lines do not say whose they are.
        let is_shared = self.seats > 1 && version >= FIRST_SHARED;
        let directory = home(env).join("prompts");
        let prompts = tokio::task::spawn_blocking(move || SavedPrompt::read_all(&directory));
        let prompts = prompts.await.unwrap_or_else(|err| {
            tracing::warn!(%err, "the user's prompts are left out");
            Vec::new()
        });
        let driver = AppDriver::new(&launch, version, first_id(is_shared));
        let driver = Box::new(driver.with_prompts(prompts));
        let mut words: Vec<OsString> = args.iter().map(OsString::from).collect();
        words.push("app-server".into());
        if let Some(notify) = notify {
            words.extend(["-c".into(), notify_override(notify).into()]);
        }
        Ok(Plan {
            args: words,
            preamble: *preamble,
            share: is_shared.then_some(Share {
                seats: self.seats,
                switchboard: || Box::new(AppSwitchboard::default()),
            }),
            ..Plan::new(program.clone(), env.clone(), driver)
        })
    }
}

/// Conversations on one server number their requests in ranges of their own.
fn first_id(is_shared: bool) -> i64 {
    static NEXT: AtomicI64 = AtomicI64::new(1);
    match is_shared {
        true => (NEXT.fetch_add(1, Ordering::Relaxed) << 32) + 1,
        false => 1,
    }
}
