//! Which skills somebody means.

use tieline_event::{SkillInfo, SkillsAt};

/// The skill that a client names, by its file or, where that is not given, by its name.
pub fn find<'a>(skills: &'a SkillsAt, name: &str, path: &str) -> Option<&'a SkillInfo> {
    let mut enabled = skills.skills.iter().filter(|skill| skill.enabled);
    if path.is_empty() {
        return only(enabled.filter(|skill| skill.name == name));
    }
    let real = std::path::Path::new(path).canonicalize().ok();
    enabled.find(|skill| {
        skill.path == path
            || real.as_ref().is_some_and(|real| std::path::Path::new(&skill.path) == real)
    })
}

/// The skills that a message mentions as `$name` or `[$name](path)`, in order and each once. A name
/// that two skills have means neither, unless it comes with a path.
pub fn mentioned<'a>(skills: &'a SkillsAt, message: &str) -> Vec<&'a SkillInfo> {
    let mut found: Vec<&SkillInfo> = Vec::new();
    let mut before = None;
    let mut rest = message;
    while let Some((text, after)) = rest.split_once('$') {
        let last = text.chars().next_back().or(before);
        before = Some('$');
        rest = after;
        // `a$name` and `$$name` are something else.
        if last.is_some_and(|c| c.is_alphanumeric() || matches!(c, '$' | '_' | '\\')) {
            continue;
        }
        let end = after.find(|c| !is_part_of_name(c)).unwrap_or(after.len());
        let Some((name, tail)) = after.split_at_checked(end) else { continue };
        let linked = (last == Some('['))
            .then(|| tail.strip_prefix("](")?.split_once(')'))
            .flatten()
            .map(|(path, _)| path.trim());
        let skill = match linked {
            Some(path) => find(skills, name, path),
            // A name at the end of a sentence has its dot.
            None => find(skills, name, "")
                .or_else(|| find(skills, name.trim_end_matches(['.', ':', '-']), "")),
        };
        if let Some(skill) = skill
            && !found.iter().any(|it| it.path == skill.path)
        {
            found.push(skill);
        }
    }
    found
}

fn is_part_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '.')
}

/// The only one, if there is exactly one.
fn only<T>(mut found: impl Iterator<Item = T>) -> Option<T> {
    let first = found.next()?;
    found.next().is_none().then_some(first)
}
