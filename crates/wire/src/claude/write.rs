//! Writing lines to Claude Code. Every function gives one line with its terminator.
//!
//! A malformed line on stdin kills the agent, so everything here goes through the serializer.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::value::RawValue;

/// A message of the user.
pub fn user(content: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Frame<'a, C> {
        r#type: &'a str,
        message: Message<'a, C>,
        parent_tool_use_id: Option<&'a str>,
        session_id: &'a str,
    }
    #[derive(Serialize)]
    struct Message<'a, C> {
        role: &'a str,
        content: C,
    }
    line(&Frame {
        r#type: "user",
        message: Message { role: "user", content },
        parent_tool_use_id: None,
        session_id: "",
    })
}

/// A request of the host. `request` is the object with its `subtype`.
pub fn control_request(request_id: &str, request: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Frame<'a, R> {
        r#type: &'a str,
        request_id: &'a str,
        request: R,
    }
    line(&Frame { r#type: "control_request", request_id, request })
}

/// What the host can ask.
#[derive(Debug, Serialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum Control<'a> {
    /// Begin: the answer tells commands and models.
    Initialize,
    /// Stop the turn.
    Interrupt,
    /// Change the mode.
    SetPermissionMode {
        /// The agent's name for it.
        mode: &'a str,
    },
    /// Change the model; none is the default.
    SetModel {
        /// The model.
        model: Option<&'a str>,
    },
    /// Change settings of this process.
    ApplyFlagSettings {
        /// Which.
        settings: FlagSettings<'a>,
    },
    /// Use these MCP servers beside those of the agent's own configuration.
    McpSetServers {
        /// All of them, by name.
        servers: BTreeMap<&'a str, Server<'a>>,
    },
}

/// Settings of a process.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FlagSettings<'a> {
    /// How hard the model thinks.
    pub effort_level: &'a str,
}

/// An MCP server.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Server<'a> {
    /// As a process.
    Stdio {
        /// The program.
        command: &'a str,
        /// Its arguments.
        args: &'a [String],
        /// Variables it gets.
        env: &'a BTreeMap<String, String>,
    },
    /// By HTTP.
    Http {
        /// Where.
        url: &'a str,
        /// Headers of each request.
        headers: &'a BTreeMap<String, String>,
    },
    /// By HTTP with server-sent events.
    Sse {
        /// Where.
        url: &'a str,
        /// Headers of each request.
        headers: &'a BTreeMap<String, String>,
    },
}

impl fmt::Debug for Server<'_> {
    /// Values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stdio { .. } => "Stdio",
            Self::Http { .. } => "Http",
            Self::Sse { .. } => "Sse",
        })
    }
}

/// The answer to `can_use_tool`.
#[derive(Debug, Serialize)]
#[serde(tag = "behavior", rename_all = "lowercase")]
pub enum Permission<'a> {
    /// Yes.
    Allow {
        /// The input to use.
        #[serde(rename = "updatedInput", skip_serializing_if = "Option::is_none")]
        updated_input: Option<&'a RawValue>,
        /// Rules to add.
        #[serde(rename = "updatedPermissions", skip_serializing_if = "<[_]>::is_empty")]
        updated_permissions: &'a [&'a RawValue],
    },
    /// No.
    Deny {
        /// What the model is told.
        message: &'a str,
        /// End the turn as well.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        interrupt: bool,
    },
}

/// The host's answer to a request of the agent.
pub fn control_success(request_id: &str, response: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Response<'a, R> {
        subtype: &'a str,
        request_id: &'a str,
        response: R,
    }
    line(&ControlFrame {
        r#type: "control_response",
        response: Response { subtype: "success", request_id, response },
    })
}

/// The host's refusal of a request of the agent.
pub fn control_error(request_id: &str, error: &str) -> Vec<u8> {
    #[derive(Serialize)]
    struct Response<'a> {
        subtype: &'a str,
        request_id: &'a str,
        error: &'a str,
    }
    line(&ControlFrame {
        r#type: "control_response",
        response: Response { subtype: "error", request_id, error },
    })
}

#[derive(Serialize)]
struct ControlFrame<'a, R> {
    r#type: &'a str,
    response: R,
}

fn line(frame: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(frame).expect("strings and JSON values are JSON");
    line.push(b'\n');
    line
}
