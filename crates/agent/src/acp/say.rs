//! What the agent is told: the greeting, the session, prompts and settings.

use serde_json::json;
use tieline_event::{
    Content, Failure, FailureCode, ImageSource, McpServer, McpTransport, NoticeLevel, Prompt,
    TurnId,
};
use tieline_wire::acp::ProtocolVersion;
use tieline_wire::acp::schema as acp;
use tieline_wire::jsonrpc::write::{self, Form};

use super::driver::{About, AcpDriver, What};
use super::failure;
use super::offer::Setting;
use crate::ledger::Ledger;
use crate::servers;
use crate::words::plain;

impl AcpDriver {
    pub(super) fn say_hello(&mut self, ledger: &mut Ledger) {
        let files = acp::FileSystemCapabilities::new().read_text_file(true).write_text_file(true);
        let options = acp::SessionConfigOptionsCapabilities::new()
            .boolean(acp::BooleanConfigOptionCapabilities::new());
        let session = acp::ClientSessionCapabilities::new()
            .compaction(acp::CompactionCapabilities::new())
            .config_options(options)
            .notices(acp::NoticeCapabilities::new());
        let elicitation = acp::ElicitationCapabilities::new()
            .form(acp::ElicitationFormCapabilities::new())
            .url(acp::ElicitationUrlCapabilities::new());
        // Not in the protocol, but what its adapters stream the output of their own commands by.
        let meta = acp::Meta::from_iter([("terminal_output".to_owned(), json!(true))]);
        let can = acp::ClientCapabilities::new()
            .fs(files)
            .terminal(true)
            .session(session)
            .elicitation(elicitation)
            .meta(meta);
        let who = acp::Implementation::new("tieline", env!("CARGO_PKG_VERSION")).title("tieline");
        let hello = acp::InitializeRequest::new(ProtocolVersion::V1)
            .client_capabilities(can)
            .client_info(who);
        self.call(What::Initialize, "initialize", &hello, ledger);
    }

    /// Begins, resumes, loads or forks the session, by what the agent can do.
    pub(super) fn ask_for_session(&mut self, ledger: &mut Ledger) -> Result<(), Failure> {
        let can = self.can.session_capabilities.unwrap_or_default();
        let cwd = self.workspace.clone();
        let servers = self.mcp_servers(ledger);
        ledger.hide(servers::secrets(&self.extras.mcp_servers));
        let directories = match can.additional_directories {
            true => self.extras.directories.clone(),
            false => Vec::new(),
        };
        match self.resume.clone() {
            None => {
                let new = acp::NewSessionRequest::new(cwd)
                    .mcp_servers(servers)
                    .additional_directories(directories);
                self.call(What::Open, "session/new", &new, ledger);
            }
            Some((session, true)) if can.fork => {
                let fork = acp::ForkSessionRequest::new(session, cwd)
                    .mcp_servers(servers)
                    .additional_directories(directories);
                self.call(What::Open, "session/fork", &fork, ledger);
            }
            Some((_, true)) => {
                let message = format!("{} cannot branch off from a session", self.name);
                return Err(Failure::new(FailureCode::BadRequest, message)
                    .hint("begin a new conversation instead"));
            }
            Some((session, false)) if can.resume => {
                let resume = acp::ResumeSessionRequest::new(session, cwd)
                    .mcp_servers(servers)
                    .additional_directories(directories);
                self.call(What::Open, "session/resume", &resume, ledger);
            }
            Some((session, false)) if self.can.load_session => {
                self.is_replay = true;
                let load = acp::LoadSessionRequest::new(session, cwd)
                    .mcp_servers(servers)
                    .additional_directories(directories);
                self.call(What::Open, "session/load", &load, ledger);
            }
            Some(_) => {
                let message = format!("{} cannot go on with an earlier session", self.name);
                let unknown = failure::session_unknown(&self.name);
                return Err(Failure { message, ..unknown });
            }
        }
        Ok(())
    }

    /// The client's MCP servers, as far as the agent can reach them.
    fn mcp_servers(&self, ledger: &mut Ledger) -> Vec<acp::McpServer> {
        let can = self.can.mcp_capabilities.unwrap_or_default();
        let header = |(name, value): (&String, &String)| acp::HttpHeader::new(name, value);
        let mut servers = Vec::new();
        for McpServer { name, transport } in &self.extras.mcp_servers {
            let server = match transport {
                McpTransport::Stdio { command, args, env } => {
                    let env = env.iter().map(|(name, value)| acp::EnvVariable::new(name, value));
                    let server = acp::McpServerStdio::new(name, command).args(args.clone());
                    Some(acp::McpServer::Stdio(server.env(env.collect())))
                }
                McpTransport::Http { url, headers } => can.http.then(|| {
                    let server = acp::McpServerHttp::new(name, url);
                    acp::McpServer::Http(server.headers(headers.iter().map(header).collect()))
                }),
                McpTransport::Sse { url, headers } => can.sse.then(|| {
                    let server = acp::McpServerSse::new(name, url);
                    acp::McpServer::Sse(server.headers(headers.iter().map(header).collect()))
                }),
            };
            if server.is_none() {
                let text = format!("{} cannot reach the MCP server {name} that way", self.name);
                ledger.notice(NoticeLevel::Warning, "mcp_server_left_out", text);
            }
            servers.extend(server);
        }
        servers
    }

    pub(super) fn write_prompt(&mut self, turn: TurnId, prompt: &Prompt, ledger: &mut Ledger) {
        let session = self.session.clone().unwrap_or_default();
        let request = acp::PromptRequest::new(session, self.blocks(prompt));
        self.call(What::Prompt(turn), "session/prompt", &request, ledger);
    }

    /// Not in the protocol; the agent said that it knows it.
    pub(super) fn write_steering(&mut self, prompt: &Prompt, ledger: &mut Ledger) {
        let params = json!({
            "sessionId": self.session,
            "prompt": self.blocks(prompt),
            "_meta": {"steering": {"idleBehavior": "promptRequired"}},
        });
        self.call(What::Steer(prompt.clone()), "_session/steering", &params, ledger);
    }

    pub(super) fn write_cancel(&self, ledger: &mut Ledger) {
        let session = self.session.clone().unwrap_or_default();
        let cancel = acp::CancelNotification::new(session);
        ledger.write(&write::notification(Form::Versioned, "session/cancel", Some(&cancel)));
    }

    pub(super) fn write_setting(&mut self, setting: Setting, about: About, ledger: &mut Ledger) {
        let session = self.session.clone().unwrap_or_default();
        match &setting {
            Setting::Option { id, value } => {
                let params =
                    acp::SetSessionConfigOptionRequest::new(session, id.clone(), value.as_str());
                let what = What::Set(setting, about);
                self.call(what, "session/set_config_option", &params, ledger);
            }
            Setting::Mode(mode) => {
                let params = acp::SetSessionModeRequest::new(session, mode.clone());
                self.call(What::Set(setting, about), "session/set_mode", &params, ledger);
            }
            // Gone from the protocol; agents of last year still have it.
            Setting::Model(model) => {
                let params = json!({"sessionId": session, "modelId": model});
                self.call(What::Set(setting, about), "session/set_model", &params, ledger);
            }
        }
    }

    /// A message as the agent takes it.
    fn blocks(&self, prompt: &Prompt) -> Vec<acp::ContentBlock> {
        let can = self.prompt_can();
        let text = |text: String| acp::ContentBlock::Text(acp::TextContent::new(text));
        let piece = |piece: &Content| match piece {
            Content::Image { mime, source } => match source {
                ImageSource::Base64(data) if can.image => {
                    acp::ContentBlock::Image(acp::ImageContent::new(data.preview(), mime))
                }
                ImageSource::Base64(_) => text(format!("[image {mime}]")),
                ImageSource::Url(url) => {
                    let name = url.rsplit('/').next().unwrap_or(url);
                    acp::ContentBlock::ResourceLink(acp::ResourceLink::new(name, url))
                }
                ImageSource::Blob(blob) => text(format!("[image {}]", blob.sha256)),
            },
            Content::Resource { uri, text } if can.embedded_context => {
                let document = acp::TextResourceContents::new(text.preview(), uri);
                let document = acp::EmbeddedResourceResource::TextResourceContents(document);
                acp::ContentBlock::Resource(acp::EmbeddedResource::new(document))
            }
            Content::Link { uri, name } => {
                let end = uri.rsplit('/').next().unwrap_or(uri);
                let name = name.as_deref().unwrap_or(end);
                acp::ContentBlock::ResourceLink(acp::ResourceLink::new(name, uri))
            }
            other => text(plain(other, '/').unwrap_or_default()),
        };
        prompt.content.iter().map(piece).collect()
    }
}
