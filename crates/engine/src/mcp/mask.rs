//! Secrets of a server, kept out of whatever is said about it.

use std::fmt;
use std::sync::Arc;

use tieline_event::McpTransport;

/// A value that is so short is no secret, and masking it would make holes in every sentence.
const SHORTEST: usize = 4;

/// What stands in a secret's place.
const MASK: &str = "***";

/// The secrets of a server: values of variables and headers, and its address, which may hold one.
#[derive(Clone)]
pub(super) struct Mask(Arc<[String]>);

impl Mask {
    pub(super) fn of(transport: &McpTransport) -> Self {
        let mut secrets: Vec<String> = match transport {
            McpTransport::Stdio { env, .. } => env.values().cloned().collect(),
            McpTransport::Http { url, headers } | McpTransport::Sse { url, headers } => {
                // `Bearer TOKEN`: the token alone may be said, too.
                let words = headers.values().filter_map(|value| value.split_once(' '));
                let words = words.map(|(_, token)| token.to_owned());
                headers.values().cloned().chain(words).chain(secret_parts(url)).collect()
            }
        };
        secrets.retain(|secret| secret.len() >= SHORTEST);
        // The longest first: one may be a part of another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Self(secrets.into())
    }

    /// The text with a mask in the place of each secret.
    pub(super) fn hide(&self, text: impl Into<String>) -> String {
        self.0.iter().fold(text.into(), |text, secret| match text.contains(secret.as_str()) {
            true => text.replace(secret.as_str(), MASK),
            false => text,
        })
    }
}

/// The address, its query and each value in that.
fn secret_parts(url: &str) -> Vec<String> {
    let mut parts = vec![url.to_owned()];
    if let Some((_, query)) = url.split_once('?') {
        parts.push(query.to_owned());
        parts.extend(query.split('&').filter_map(|pair| Some(pair.split_once('=')?.1.to_owned())));
    }
    if let Some((userinfo, _)) = url.split_once("//").and_then(|(_, rest)| rest.split_once('@')) {
        parts.push(userinfo.to_owned());
        parts.extend(userinfo.split_once(':').map(|(_, password)| password.to_owned()));
    }
    parts
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

#[test]
fn no_secret_of_a_server_is_said() {
    let of = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let mask = Mask::of(&McpTransport::Stdio {
        command: "x".to_owned(),
        args: Vec::new(),
        env: of(&[("TOKEN", "hunter2"), ("LONGER", "hunter22"), ("LEVEL", "1")]),
    });
    assert_eq!(mask.hide("hunter22 or hunter2, 1"), "*** or ***, 1");
    assert_eq!(format!("{mask:?}"), "***");
    let mask = Mask::of(&McpTransport::Http {
        url: "https://me:pass1@host/mcp?key=k12345&n=1".to_owned(),
        headers: of(&[("Authorization", "Bearer abcdef")]),
    });
    let said = "Bearer abcdef, abcdef, https://me:pass1@host/mcp?key=k12345&n=1, k12345, pass1";
    assert_eq!(mask.hide(said), "***, ***, ***, ***, ***");
}
