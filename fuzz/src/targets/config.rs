//! The configuration file: what is wrong with one is said in a line that names the place.

pub(super) fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let Err(message) = tieline::check_config("config.toml", &text) else { return };
    let place = message.strip_prefix("config.toml:").and_then(|rest| rest.split_once(": "));
    let line = place.and_then(|(line, _)| line.parse::<usize>().ok());
    let n_lines = text.matches('\n').count() + 1;
    assert!(line.is_some_and(|line| (1..=n_lines).contains(&line)), "{message}");
    assert!(place.is_some_and(|(_, why)| !why.is_empty()), "{message}");
}
