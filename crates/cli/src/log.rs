//! Logging to stderr.

use std::io;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::error::Error;

/// Starts logging. Without a word from the user only what is degraded or lost is logged.
pub(crate) fn init(filter: Option<&str>) -> Result<(), Error> {
    let builder = tracing_subscriber::fmt().with_writer(io::stderr).with_ansi(false);
    // Who closed our stderr hears nothing; to say so there would end the task that has something to say.
    let builder = builder.log_internal_errors(false);
    match filter.filter(|filter| !filter.is_empty()) {
        None => builder.with_max_level(LevelFilter::WARN).init(),
        Some(filter) => {
            // The library for servers of tools logs what is said to them, word for word.
            let quiet = if filter.contains("rmcp") { "" } else { ",rmcp=warn" };
            let filter = EnvFilter::try_new(format!("{filter}{quiet}")).map_err(|err| {
                Error::usage(format!(
                    "--log {filter:?} is not understood ({err}); use error, warn, info, debug or trace"
                ))
            })?;
            builder.with_env_filter(filter).init();
        }
    }
    Ok(())
}
