//! What the client can do, as far as it matters here.

use serde_json::Value;

/// What the client said it can do when it introduced itself. What it did not say it cannot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Client {
    /// Shows the output of a command while it runs, by the `_meta` convention.
    pub(super) terminal_output: bool,
    /// Shows forms.
    pub(super) forms: bool,
    /// Shows notices.
    pub(super) notices: bool,
    /// Shows that the memory is shortened.
    pub(super) compaction: bool,
    /// Runs us in a terminal for the login.
    pub(super) terminal_login: bool,
}

impl Client {
    /// Reads `clientCapabilities`.
    pub(super) fn new(capabilities: Option<&Value>) -> Self {
        let is_true =
            |path: &str| capabilities.and_then(|it| it.pointer(path)) == Some(&Value::Bool(true));
        let is_object =
            |path: &str| capabilities.and_then(|it| it.pointer(path)).is_some_and(Value::is_object);
        Self {
            terminal_output: is_true("/_meta/terminal_output"),
            forms: is_object("/elicitation/form"),
            notices: is_object("/session/notices"),
            compaction: is_object("/session/compaction"),
            terminal_login: is_true("/auth/terminal") || is_true("/_meta/terminal-auth"),
        }
    }
}
