//! The environment of a child: built name by name, never inherited by accident.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;

/// What a command that a model asked for may know of our environment.
const FOR_TOOLS: [&str; 23] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_ADDRESS",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_IDENTIFICATION",
    "LC_MEASUREMENT",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NAME",
    "LC_NUMERIC",
    "LC_PAPER",
    "LC_TELEPHONE",
    "LC_TIME",
];

/// Parts of names that a pattern does not let through besides. Coarser than [`looks_secret`]: here nothing is
/// lost that could not be named.
const NOT_BY_PATTERN: [&str; 4] = ["KEY", "TOKEN", "AUTH", "COOKIE"];

/// The environment of a child. `Debug` shows names only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Env(BTreeMap<OsString, OsString>);

impl Env {
    /// No variable at all.
    pub fn empty() -> Env {
        Env::default()
    }

    /// Our own environment without the variables whose names or values look like secrets.
    ///
    /// A secret stays if its name begins with one of `own_prefixes` (the agent's own provider) or is
    /// listed in `pass`. `CLAUDECODE` is always left out: it tells Claude Code that it runs inside
    /// itself.
    pub fn inherited(own_prefixes: &[&str], pass: &[String]) -> Env {
        Env::filtered(std::env::vars_os(), own_prefixes, pass)
    }

    /// Our own environment, whole: for ourselves in another process.
    pub fn everything() -> Env {
        Env(std::env::vars_os().collect())
    }

    /// [`Env::inherited`] from given variables.
    pub fn filtered(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        own_prefixes: &[&str],
        pass: &[String],
    ) -> Env {
        let wanted = |name: &OsStr, value: &OsStr| {
            let name = name.to_string_lossy();
            // A name that no child could be given (shells export functions under stranger ones)
            // would make the whole spec unusable.
            !name.is_empty()
                && !name.contains('=')
                && name != "CLAUDECODE"
                && (!(looks_secret(&name) || holds_secret(&name, value))
                    || own_prefixes.iter().any(|prefix| name.starts_with(prefix))
                    || pass.iter().any(|passed| *passed == name))
        };
        Env(variables.into_iter().filter(|(name, value)| wanted(name, value)).collect())
    }

    /// What a command that a model asked for may know: where programs are, who the user is, language
    /// and time zone, and what `allowed` adds.
    ///
    /// An entry of `allowed` is a name or a pattern in which `*` stands for anything. A name that looks
    /// like a secret's gets through only if it is written out.
    pub fn for_tools(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        allowed: &[String],
    ) -> Env {
        let by_pattern = |name: &str, value: &OsStr| {
            let upper = name.to_ascii_uppercase();
            !looks_secret(name)
                && !holds_secret(name, value)
                && !NOT_BY_PATTERN.iter().any(|part| upper.contains(part))
                && allowed.iter().any(|pattern| matches(pattern, name))
        };
        let wanted = |name: &OsStr, value: &OsStr| {
            let Some(name) = name.to_str() else { return false };
            !name.is_empty()
                && !name.contains('=')
                && (FOR_TOOLS.contains(&name)
                    || allowed.iter().any(|it| it == name)
                    || by_pattern(name, value))
        };
        Env(variables.into_iter().filter(|(name, value)| wanted(name, value)).collect())
    }

    /// Sets a variable.
    pub fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> &mut Env {
        self.0.insert(name.into(), value.into());
        self
    }

    /// Removes a variable.
    pub fn remove(&mut self, name: impl AsRef<OsStr>) -> &mut Env {
        self.0.remove(name.as_ref());
        self
    }

    /// The value of a variable.
    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.0.get(name.as_ref()).map(OsString::as_os_str)
    }

    /// The names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &OsStr> {
        self.0.keys().map(OsString::as_os_str)
    }

    /// How many variables there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no variable.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Parts of names that have no harmless use.
const SECRET_PARTS: [&str; 5] = ["SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"];

/// Words of names that are secrets as a whole.
const SECRET_WORDS: [&str; 5] = ["BEARER", "JWT", "COOKIE", "AUTHORIZATION", "DSN"];

/// Names that have a word of a secret and are none: a socket that agents need, and directories.
const HARMLESS: [&str; 4] = ["SSH_AUTH_SOCK", "DESKTOP_SESSION", "PWD", "OLDPWD"];

/// Whether a name is that of a secret. `KEY`, `TOKEN` and `AUTH` count only at the end of a word
/// (`APIKEY`, `TOKENS`, `KEY2`), because `KEYBOARD_LAYOUT`, `TOKENIZERS_PARALLELISM` and `GIT_AUTHOR_NAME`
/// are no secrets; `PASS`, `PWD` and `SESSION` only at the end of the name, because desktops have
/// variables such as `XDG_SESSION_TYPE`.
fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    if HARMLESS.contains(&&*name) {
        return false;
    }
    let last = name.rsplit('_').next().unwrap_or_default();
    SECRET_PARTS.iter().any(|part| name.contains(part))
        || matches!(last, "PASS" | "SSHPASS" | "PWD" | "SESSION")
        || name.ends_with("DATABASE_URL")
        || name.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| {
            let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
            let word = word.strip_suffix('S').unwrap_or(word);
            ["KEY", "TOKEN", "AUTH"].iter().any(|end| word.ends_with(end))
                || SECRET_WORDS.contains(&word)
        })
}

/// Whether a value is that of a secret: an address with a password in it, or a signed token. A proxy is
/// needed for the way out and stays.
fn holds_secret(name: &str, value: &OsStr) -> bool {
    let Some(value) = value.to_str() else { return false };
    let has_password = value.split_once("://").is_some_and(|(_, rest)| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let user = authority.rsplit_once('@').map(|(user, _)| user);
        user.and_then(|it| it.split_once(':')).is_some_and(|(_, password)| !password.is_empty())
    });
    let parts: Vec<&str> = value.split('.').collect();
    let is_coded = |part: &str| {
        part.len() >= 8 && part.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it))
    };
    let is_token = matches!(*parts, [head, body, signature]
        if [head, body].iter().all(|part| part.starts_with("eyJ")) && is_coded(signature));
    is_token || has_password && !name.to_ascii_uppercase().ends_with("_PROXY")
}

/// Whether a name is what a pattern means, in which `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        // The first place where it fits leaves the most for what follows.
        let Some((_, after)) = name.split_once(part) else { return false };
        name = after;
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(own_prefixes: &[&str], pass: &[&str], kept: &[&str], dropped: &[&str]) {
        let variables = kept.iter().chain(dropped).map(|name| ((*name).into(), "v".into()));
        let pass: Vec<String> = pass.iter().map(|name| (*name).to_owned()).collect();
        let env = Env::filtered(variables, own_prefixes, &pass);
        let mut kept = kept.to_vec();
        kept.sort_unstable();
        assert_eq!(env.names().collect::<Vec<_>>(), kept);
    }

    #[test]
    fn names_that_look_like_secrets_are_left_out() {
        check(
            &[],
            &[],
            &[
                "PATH",
                "HOME",
                "LANG",
                "KEYBOARD_LAYOUT",
                "TOKENIZERS_PARALLELISM",
                "PWD",
                "A_KEYED",
            ],
            &[
                "OPENAI_API_KEY",
                "AWS_ACCESS_KEY_ID",
                "aws_secret_access_key",
                "GITHUB_TOKEN",
                "NPM_TOKENS",
                "MYAPIKEY",
                "KEY2",
                "PGPASSWORD",
                "DB_PASSWD",
                "GOOGLE_APPLICATION_CREDENTIALS",
                "CLAUDECODE",
            ],
        );
    }

    #[track_caller]
    fn check_tools(allowed: &[&str], kept: &[&str], dropped: &[&str]) {
        let variables = kept.iter().chain(dropped).map(|name| ((*name).into(), "v".into()));
        let allowed: Vec<String> = allowed.iter().map(|it| (*it).to_owned()).collect();
        let mut kept = kept.to_vec();
        kept.sort_unstable();
        assert_eq!(Env::for_tools(variables, &allowed).names().collect::<Vec<_>>(), kept);
    }

    #[test]
    fn tools_are_told_what_is_on_the_list_and_no_more() {
        check_tools(
            &[],
            &["PATH", "HOME", "LC_ALL", "LANG", "TZ"],
            &["EDITOR", "LC_API", "PATHS", "path", "HOME_TOKEN", "LD_PRELOAD", "SSH_AUTH_SOCK"],
        );
        check_tools(
            &["CARGO_*", "*_PROXY", "A*B*C", "GITHUB_TOKEN", "*"],
            &["CARGO_HOME", "HTTP_PROXY", "AxBxC", "GITHUB_TOKEN", "PATH", "KNOWN"],
            &["CARGO_REGISTRY_TOKEN", "MY_KEYBOARD", "GITLAB_TOKEN", "DB_passwd"],
        );
        check_tools(
            &["CARGO_*", "A*B*C", "*_X"],
            &["CARGO_", "ABC", "A_B_B_C", "_X"],
            &["XCARGO_", "ABCD", "AC", "BC", "_XY"],
        );
    }

    #[test]
    fn three_hundred_planted_variables_do_not_reach_tools() {
        let words = ["API_KEY", "SECRET", "TOKEN", "PASSWORD", "URL", "DSN"];
        let planted = (0..300).map(|n| format!("PLANTED_{}_{n}", words[n % words.len()]));
        let variables = planted.chain(["PATH".into()]).map(|name| (name.into(), "v".into()));
        let env = Env::for_tools(variables, &[]);
        assert_eq!(env.names().collect::<Vec<_>>(), ["PATH"]);
    }

    #[test]
    fn secrets_under_many_names_are_left_out() {
        check(
            &[],
            &[],
            &[
                "SSH_AUTH_SOCK",
                "DESKTOP_SESSION",
                "XDG_SESSION_TYPE",
                "XDG_SESSION_ID",
                "DBUS_SESSION_BUS_ADDRESS",
                "SESSION_MANAGER",
                "TERM_SESSION_ID",
                "PWD",
                "OLDPWD",
                "GIT_AUTHOR_NAME",
                "XAUTHORITY",
                "KEYBOARD_LAYOUT",
                "TOKENIZERS_PARALLELISM",
                "COMPASS_HOME",
                "BYPASS_CACHE",
                "HTTP_PROXY",
                "PASSENGER_PORT",
                "DSNAME",
                "DATABASE_URLS_FILE",
            ],
            &[
                "AUTH",
                "NPM_AUTH",
                "_auth",
                "DOCKER_AUTH_CONFIG",
                "BASIC_AUTH",
                "OAUTH",
                "AUTHORIZATION",
                "HTTP_AUTHORIZATION",
                "BEARER",
                "API_BEARER",
                "JWT",
                "SERVICE_JWT",
                "JWT_1",
                "COOKIE",
                "SITE_COOKIES",
                "SESSION_COOKIE",
                "PASSPHRASE",
                "GPG_PASSPHRASE",
                "DB_PASS",
                "PASS",
                "FTP_PASSWD",
                "MYSQL_PWD",
                "SSHPASS",
                "SESSION",
                "FB_SESSION",
                "DATABASE_URL",
                "TEST_DATABASE_URL",
                "SENTRY_DSN",
                "DSN",
                "PG_DSN",
                "MY_SECRET_1",
                "AWS_ACCESS_KEY_ID",
                "GITHUB_TOKEN",
                "APIKEY",
                "KEYS",
                "DEPLOY_KEY2",
                "DB_PASSWORD",
                "GOOGLE_CREDENTIALS",
                "auth_token",
                "Api_Key",
            ],
        );
    }

    #[test]
    fn secrets_in_values_are_left_out() {
        let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJlLW9mLWl0";
        let variables = [
            ("HOME_PAGE", "https://example.org/a:b@c"),
            ("HTTPS_PROXY", "http://me:hunter2@proxy:8080"),
            ("MAIL", "me@example.org"),
            ("REPOSITORY", "ssh://git@example.org/it"),
            ("VERSION", "1.2.3"),
            ("QUEUE", "amqp://me:hunter2@queue/it"),
            ("IDENTITY", jwt),
        ];
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        let kept = ["HOME_PAGE", "HTTPS_PROXY", "MAIL", "REPOSITORY", "VERSION"];
        let env = Env::filtered(variables.clone(), &[], &[]);
        assert_eq!(env.names().collect::<Vec<_>>(), kept);
        assert_eq!(Env::for_tools(variables.clone(), &["*".to_owned()]), env);
        // Who names one means it.
        let named = ["QUEUE".to_owned()];
        assert!(Env::filtered(variables.clone(), &[], &named).get("QUEUE").is_some());
        assert!(Env::for_tools(variables, &named).get("QUEUE").is_some());
    }

    #[test]
    fn own_prefixes_and_passed_names_stay_but_claudecode_never_does() {
        check(
            &["ANTHROPIC_", "CLAUDE"],
            &["GITHUB_TOKEN", "CLAUDECODE"],
            &["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "GITHUB_TOKEN"],
            &["OPENAI_API_KEY", "CLAUDECODE", "MY_ANTHROPIC_API_KEY"],
        );
    }
}
