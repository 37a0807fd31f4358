//! The head of a `SKILL.md`.

use serde::Deserialize;

/// The longest name, in characters.
const LONGEST_NAME: usize = 64;

/// The longest description, in characters.
const LONGEST_DESCRIPTION: usize = 1024;

/// What the head of a file says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Matter {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) short_description: Option<String>,
}

#[derive(Deserialize)]
struct Head {
    name: Option<String>,
    description: Option<String>,
    #[serde(default)]
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default, rename = "short-description")]
    short_description: Option<String>,
}

/// Reads the head of a file.
pub(super) fn parse(text: &str) -> Result<Matter, String> {
    let yaml = head(text).ok_or("missing YAML frontmatter delimited by ---")?;
    let head: Head = serde_saphyr::from_str(&yaml).map_err(|err| {
        // Further lines show the text, which whoever reads this can do as well.
        let words = err.to_string();
        format!("invalid YAML: {}", words.lines().next().unwrap_or_default().trim())
    })?;
    Ok(Matter {
        name: field("name", head.name, LONGEST_NAME)?
            .ok_or_else(|| "missing field `name`".to_owned())?,
        description: field("description", head.description, LONGEST_DESCRIPTION)?
            .ok_or_else(|| "missing field `description`".to_owned())?,
        short_description: field(
            "metadata.short-description",
            head.metadata.and_then(|metadata| metadata.short_description),
            LONGEST_DESCRIPTION,
        )?,
    })
}

/// What stands between the first line and the next, both of three dashes.
fn head(text: &str) -> Option<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines();
    if lines.next()?.trim_end() != "---" {
        return None;
    }
    let mut head = String::new();
    for line in lines {
        if line.trim_end() == "---" {
            return Some(head);
        }
        head.push_str(line);
        head.push('\n');
    }
    None
}

/// A value as one line. It is shown to people and told to models, so it has no control characters.
fn field(name: &str, value: Option<String>, most: usize) -> Result<Option<String>, String> {
    let Some(value) = value else { return Ok(None) };
    let words: Vec<&str> = value.split(|c: char| c.is_whitespace() || c.is_control()).collect();
    let line = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    match line.chars().count() {
        0 => Ok(None),
        n if n > most => {
            Err(format!("invalid {name}: exceeds maximum length of {most} characters"))
        }
        _ => Ok(Some(line)),
    }
}
