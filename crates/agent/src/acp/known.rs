//! Agents that are known to speak the protocol, and how they are made to.

/// What an agent's name begins with.
pub const PREFIX: &str = "acp:";

/// An agent and how it is made to speak the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// What users call it, after the prefix.
    pub name: &'static str,
    /// What it is called on its own pages.
    pub title: &'static str,
    /// Its program.
    pub program: &'static str,
    /// The arguments that make it speak the protocol.
    pub args: &'static [&'static str],
    /// How to get it.
    pub install: &'static str,
    /// The variables it may have although they look like secrets, by how they begin.
    pub own_variables: &'static [&'static str],
}

/// As the protocol's registry of agents and their own pages have them.
pub const KNOWN: [Known; 11] = [
    Known {
        name: "gemini",
        title: "Gemini CLI",
        program: "gemini",
        args: &["--acp"],
        install: "npm install -g @google/gemini-cli",
        own_variables: &["GEMINI_", "GOOGLE_"],
    },
    Known {
        name: "copilot",
        title: "GitHub Copilot CLI",
        program: "copilot",
        args: &["--acp"],
        install: "npm install -g @github/copilot",
        own_variables: &["COPILOT_", "GH_", "GITHUB_"],
    },
    Known {
        name: "cursor",
        title: "Cursor CLI",
        program: "cursor-agent",
        args: &["acp"],
        install: "see https://cursor.com/docs/cli",
        own_variables: &["CURSOR_"],
    },
    Known {
        name: "goose",
        title: "goose",
        program: "goose",
        args: &["acp"],
        install: "see https://block.github.io/goose",
        own_variables: &["GOOSE_"],
    },
    Known {
        name: "opencode",
        title: "OpenCode",
        program: "opencode",
        args: &["acp"],
        install: "see https://opencode.ai",
        own_variables: &["OPENCODE_"],
    },
    Known {
        name: "qwen",
        title: "Qwen Code",
        program: "qwen",
        args: &["--acp"],
        install: "npm install -g @qwen-code/qwen-code",
        own_variables: &["QWEN_", "DASHSCOPE_", "OPENAI_"],
    },
    Known {
        name: "kimi",
        title: "Kimi CLI",
        program: "kimi",
        args: &["acp"],
        install: "see https://moonshotai.github.io/kimi-cli",
        own_variables: &["KIMI_", "MOONSHOT_"],
    },
    Known {
        name: "vibe",
        title: "Mistral Vibe",
        program: "vibe-acp",
        args: &[],
        install: "see https://github.com/mistralai/mistral-vibe",
        own_variables: &["MISTRAL_", "VIBE_"],
    },
    Known {
        name: "auggie",
        title: "Auggie CLI",
        program: "auggie",
        args: &["--acp"],
        install: "npm install -g @augmentcode/auggie",
        own_variables: &["AUGMENT_"],
    },
    Known {
        name: "claude-agent-acp",
        title: "Claude Code by its ACP adapter",
        program: "claude-agent-acp",
        args: &[],
        install: "npm install -g @agentclientprotocol/claude-agent-acp",
        own_variables: crate::claude::OWN_VARIABLES,
    },
    Known {
        name: "codex-acp",
        title: "Codex by its ACP adapter",
        program: "codex-acp",
        args: &[],
        install: "npm install -g @agentclientprotocol/codex-acp",
        own_variables: crate::codex::OWN_VARIABLES,
    },
];

/// The known agent of this name, given with or without the prefix.
pub fn find(name: &str) -> Option<&'static Known> {
    let name = name.strip_prefix(PREFIX).unwrap_or(name);
    KNOWN.iter().find(|known| known.name == name)
}

/// A command line as words; none when a quote is left open or there is no word.
pub fn words(line: &str) -> Option<Vec<String>> {
    shlex::split(line).filter(|words| words.first().is_some_and(|word| !word.is_empty()))
}

#[test]
fn agents_are_found_by_name_and_lines_are_split_as_a_shell_does() {
    assert_eq!(find("acp:gemini").map(|it| it.program), Some("gemini"));
    assert_eq!(find("cursor").map(|it| it.program), Some("cursor-agent"));
    assert!(find("acp:nobody").is_none());
    assert_eq!(words("a 'b c' d").unwrap(), ["a", "b c", "d"]);
    assert_eq!(words("a 'b"), None);
    assert_eq!(words(" "), None);
    let mut names: Vec<_> = KNOWN.iter().map(|known| known.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), KNOWN.len());
}
