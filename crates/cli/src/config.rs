//! The configuration file. It is the user's own; none is ever read from a workspace.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use tieline_agent::claude::Lifetime;
use tieline_event::Mode;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::args::{FormatArg, OnRequestArg};
use crate::error::Error;

mod engine;

#[cfg(test)]
mod tests;

pub(crate) use engine::{EngineConfig, ProviderConfig, ServerConfig};

/// The longest time that can be chosen: a hundred years. Clocks do not count much further.
pub(crate) const MOST_SECONDS: u64 = 100 * 366 * 24 * 3600;

/// What the user wrote down.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Config {
    pub(crate) agent: Option<String>,
    pub(crate) mode: Option<Mode>,
    pub(crate) model: Option<String>,
    pub(crate) on_request: Option<OnRequestArg>,
    pub(crate) format: Option<FormatArg>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) idle_sleep: Option<Duration>,
    pub(crate) engine: EngineConfig,
    /// Where it was read from.
    pub(crate) file: Option<PathBuf>,
    /// The tables of agents, by name.
    agents: BTreeMap<String, AgentConfig>,
}

impl Config {
    /// What is written in an agent's own table.
    pub(crate) fn table(&self, agent: &str) -> AgentConfig {
        self.agents.get(agent).cloned().unwrap_or_default()
    }

    /// The model of new conversations with an agent.
    pub(crate) fn model_of(&self, agent: &str) -> Option<String> {
        let own = self.engine.model.as_ref().filter(|_| agent == "engine");
        own.or(self.model.as_ref()).cloned()
    }

    /// The agents that have a table.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        self.agents.keys().cloned()
    }

    /// What holds for an agent: what the other two wires of Codex leave out is as for `codex`.
    pub(crate) fn agent(&self, name: &str) -> AgentConfig {
        match name {
            "codex-exec" | "codex-proto" => self.table(name).or(self.table("codex")),
            _ => self.table(name),
        }
    }
}

/// How an agent's program is started.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct AgentConfig {
    pub(crate) program: Option<String>,
    pub(crate) args: Option<Vec<String>>,
    pub(crate) env: Option<BTreeMap<String, String>>,
    pub(crate) pass: Option<Vec<String>>,
    pub(crate) preamble: Option<bool>,
    pub(crate) lifetime: Lifetime,
    pub(crate) notify: Option<bool>,
    pub(crate) shared: Option<usize>,
    pub(crate) silence: Option<Duration>,
    pub(crate) script: Option<String>,
}

impl AgentConfig {
    fn or(self, other: Self) -> Self {
        Self {
            program: self.program.or(other.program),
            args: self.args.or(other.args),
            env: self.env.or(other.env),
            pass: self.pass.or(other.pass),
            preamble: self.preamble.or(other.preamble),
            notify: self.notify.or(other.notify),
            ..self
        }
    }
}

/// The tables of agents and the keys of each.
const TABLES: [(&str, &[&str]); 5] = [
    ("claude", &["program", "args", "env", "pass", "preamble", "lifetime"]),
    ("codex", &["program", "args", "env", "pass", "preamble", "notify", "shared"]),
    ("codex-exec", &["program", "args", "env", "pass", "preamble", "notify", "silence"]),
    ("codex-proto", &["program", "args", "env", "pass", "preamble", "notify"]),
    ("demo", &["script"]),
];

/// The keys of the table of any agent of the Agent Client Protocol.
const ACP_KEYS: &[&str] = &["program", "args", "env", "pass", "preamble"];

impl std::fmt::Debug for AgentConfig {
    /// Values of variables may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentConfig")
            .field("program", &self.program)
            .field("n_args", &self.args.as_ref().map(Vec::len))
            .field("env", &self.env.as_ref().map(|env| env.keys().collect::<Vec<_>>()))
            .field("pass", &self.pass)
            .field("preamble", &self.preamble)
            .field("lifetime", &self.lifetime)
            .field("notify", &self.notify)
            .field("shared", &self.shared)
            .field("silence", &self.silence)
            .field("script", &self.script)
            .finish()
    }
}

/// Reads the file the user named, or the one in the usual place if there is one.
pub(crate) fn load(named: Option<&Path>) -> Result<Config, Error> {
    let (path, must_exist) = match named.filter(|path| !path.as_os_str().is_empty()) {
        Some(path) => (path.to_owned(), true),
        None => match usual_place() {
            Some(path) => (path, false),
            None => return Ok(Config::default()),
        },
    };
    match std::fs::read(&path) {
        Ok(bytes) => {
            let config = parse(&path.display().to_string(), &String::from_utf8_lossy(&bytes))?;
            Ok(Config { file: std::path::absolute(&path).ok(), ..config })
        }
        Err(err) if err.kind() == std::io::ErrorKind::NotFound && !must_exist => {
            Ok(Config::default())
        }
        Err(err) => Err(Error::usage(format!("cannot read {}: {err}", path.display()))),
    }
}

/// Where the file is, unless the user says otherwise.
pub(crate) fn usual_place() -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CONFIG_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".config")))
        .map(|dir| dir.join("tieline/config.toml"))
}

/// Reads the text of a file, which errors call by this name.
pub(crate) fn parse(file: &str, text: &str) -> Result<Config, Error> {
    let reader = Reader { file, text };
    let document = DeTable::parse(text).map_err(|err| {
        let at = err.span().unwrap_or(0..0);
        reader.error(&at, "", err.message())
    })?;
    reader.read(document.get_ref())
}

/// Finds its way through the document and says where something is wrong.
struct Reader<'a> {
    file: &'a str,
    text: &'a str,
}

type Value<'i> = Spanned<DeValue<'i>>;

impl Reader<'_> {
    fn error(&self, at: &Range<usize>, key: &str, message: &str) -> Error {
        let before = self.text.get(..at.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let key = if key.is_empty() { String::new() } else { format!("{key}: ") };
        Error::usage(format!("{}:{line}: {key}{message}", self.file))
    }

    fn read(&self, document: &DeTable<'_>) -> Result<Config, Error> {
        let mut config = Config::default();
        for (key, value) in document {
            let name = key.get_ref().as_ref();
            match name {
                "defaults" => self.defaults(self.table(name, value)?, &mut config)?,
                "agents" => self.agents(self.table(name, value)?, &mut config)?,
                "engine" => config.engine = self.engine(self.table(name, value)?)?,
                _ => {
                    let known = ["defaults", "agents", "engine"];
                    return Err(self.unknown(key.span(), "", name, &known));
                }
            }
        }
        Ok(config)
    }

    fn defaults(&self, table: &DeTable<'_>, config: &mut Config) -> Result<(), Error> {
        const KEYS: [&str; 7] =
            ["agent", "mode", "model", "on_request", "format", "timeout", "idle_sleep"];
        for (key, value) in table {
            let path = format!("defaults.{}", key.get_ref());
            match key.get_ref().as_ref() {
                "agent" => config.agent = Some(self.string(&path, value)?),
                "mode" => {
                    let mode = self.string(&path, value)?.parse().map_err(
                        |err: tieline_event::UnknownMode| {
                            self.error(&value.span(), &path, &err.to_string())
                        },
                    )?;
                    config.mode = Some(mode);
                }
                "model" => config.model = Some(self.string(&path, value)?),
                "on_request" => config.on_request = Some(self.choice(&path, value)?),
                "format" => config.format = Some(self.choice(&path, value)?),
                "timeout" => config.timeout = Some(self.seconds(&path, value)?),
                "idle_sleep" => config.idle_sleep = Some(self.seconds(&path, value)?),
                name => return Err(self.unknown(key.span(), "defaults", name, &KEYS)),
            }
        }
        Ok(())
    }

    fn agents(&self, table: &DeTable<'_>, config: &mut Config) -> Result<(), Error> {
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let path = format!("agents.{name}");
            if name == "acp" {
                for (key, value) in self.table(&path, value)? {
                    let (name, path) = (key.get_ref(), format!("{path}.{}", key.get_ref()));
                    let agent = self.agent(&path, ACP_KEYS, self.table(&path, value)?)?;
                    config.agents.insert(format!("acp:{name}"), agent);
                }
                continue;
            }
            if name.starts_with("acp:") {
                let agent = self.agent(&path, ACP_KEYS, self.table(&path, value)?)?;
                config.agents.insert(name.to_owned(), agent);
                continue;
            }
            let Some((_, keys)) = TABLES.iter().find(|(known, _)| *known == name) else {
                let mut known = TABLES.map(|(it, _)| it).to_vec();
                known.push("acp");
                return Err(self.unknown(key.span(), "agents", name, &known));
            };
            let agent = self.agent(&path, keys, self.table(&path, value)?)?;
            config.agents.insert(name.to_owned(), agent);
        }
        Ok(())
    }

    fn agent(
        &self,
        parent: &str,
        keys: &[&str],
        table: &DeTable<'_>,
    ) -> Result<AgentConfig, Error> {
        let mut agent = AgentConfig::default();
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let path = format!("{parent}.{name}");
            let unknown = || self.unknown(key.span(), parent, name, keys);
            if !keys.contains(&name) {
                return Err(unknown());
            }
            match name {
                "program" => agent.program = Some(self.string(&path, value)?),
                "args" => agent.args = Some(self.strings(&path, value)?),
                "pass" => agent.pass = Some(self.strings(&path, value)?),
                "env" => agent.env = Some(self.variables(&path, value)?),
                "preamble" => agent.preamble = Some(self.boolean(&path, value)?),
                "lifetime" => agent.lifetime = self.lifetime(&path, value)?,
                "notify" => agent.notify = Some(self.boolean(&path, value)?),
                "shared" => {
                    let most = self.number(&path, value, "a whole number from 1 on")?;
                    agent.shared = Some(usize::try_from(most).unwrap_or(usize::MAX));
                }
                "script" => agent.script = Some(self.string(&path, value)?),
                "silence" => agent.silence = Some(self.seconds(&path, value)?),
                _ => return Err(unknown()),
            }
        }
        Ok(agent)
    }

    fn variables(&self, key: &str, value: &Value<'_>) -> Result<BTreeMap<String, String>, Error> {
        let table = self.table(key, value)?.iter();
        let pairs = table.map(|(name, value)| {
            let path = format!("{key}.{}", name.get_ref());
            Ok((name.get_ref().clone().into_owned(), self.string(&path, value)?))
        });
        pairs.collect()
    }

    fn lifetime(&self, key: &str, value: &Value<'_>) -> Result<Lifetime, Error> {
        match self.string(key, value)?.as_str() {
            "conversation" => Ok(Lifetime::Conversation),
            "turn" => Ok(Lifetime::Turn),
            other => {
                let message = format!("{other:?} is none of \"conversation\" and \"turn\"");
                Err(self.error(&value.span(), key, &message))
            }
        }
    }

    fn unknown(&self, at: Range<usize>, parent: &str, name: &str, known: &[&str]) -> Error {
        let path = if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") };
        self.error(&at, &path, &format!("unknown key; known here: {}", known.join(", ")))
    }

    fn wrong(&self, key: &str, value: &Value<'_>, wanted: &str) -> Error {
        let found = value.get_ref().type_str();
        self.error(&value.span(), key, &format!("must be {wanted}, is {found}"))
    }

    fn table<'v, 'i>(&self, key: &str, value: &'v Value<'i>) -> Result<&'v DeTable<'i>, Error> {
        value.get_ref().as_table().ok_or_else(|| self.wrong(key, value, "a table"))
    }

    fn string(&self, key: &str, value: &Value<'_>) -> Result<String, Error> {
        let text = value.get_ref().as_str().ok_or_else(|| self.wrong(key, value, "a string"))?;
        Ok(text.to_owned())
    }

    fn strings(&self, key: &str, value: &Value<'_>) -> Result<Vec<String>, Error> {
        let wanted = "an array of strings";
        let values = value.get_ref().as_array().ok_or_else(|| self.wrong(key, value, wanted))?;
        values.iter().map(|value| self.string(key, value)).collect()
    }

    fn boolean(&self, key: &str, value: &Value<'_>) -> Result<bool, Error> {
        value.get_ref().as_bool().ok_or_else(|| self.wrong(key, value, "true or false"))
    }

    fn seconds(&self, key: &str, value: &Value<'_>) -> Result<Duration, Error> {
        let seconds = self.number(key, value, "a whole number of seconds from 1 on")?;
        if seconds > MOST_SECONDS {
            let message = format!("must be at most {MOST_SECONDS}, a hundred years");
            return Err(self.error(&value.span(), key, &message));
        }
        Ok(Duration::from_secs(seconds))
    }

    /// A number from 1 on; `wanted` says so.
    fn number(&self, key: &str, value: &Value<'_>, wanted: &str) -> Result<u64, Error> {
        let number = value.get_ref().as_integer().ok_or_else(|| self.wrong(key, value, wanted))?;
        match u64::from_str_radix(&number.as_str().replace('_', ""), number.radix()) {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(self.error(&value.span(), key, &format!("must be {wanted}"))),
        }
    }

    fn choice<T: ValueEnum>(&self, key: &str, value: &Value<'_>) -> Result<T, Error> {
        let text = self.string(key, value)?;
        T::from_str(&text, false).map_err(|_| {
            let known: Vec<String> = T::value_variants()
                .iter()
                .filter_map(T::to_possible_value)
                .map(|it| it.get_name().to_owned())
                .collect();
            let message = format!("{text:?} is none of {}", known.join(", "));
            self.error(&value.span(), key, &message)
        })
    }
}
