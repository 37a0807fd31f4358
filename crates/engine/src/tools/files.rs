//! Looking at files. They run within this process, so they keep to what a command in the sandbox
//! could read: nothing that is hidden.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use serde::Deserialize;
use tieline_wire::responses::{Content, ImageUrl, Output, Part};
use tieline_wire::sqeq::{EventMsg, ViewImageToolCall};
use tieline_wire::text::Str;
use tieline_workspace::beneath::Links;
use tieline_workspace::walk::{Choice, Options, Walk};
use tieline_workspace::{Error, Seen, Sort, Tree, without_links};

use super::{Outcome, Scene};
use crate::calls::Call;

/// Lines that are shown if the model does not say how many.
const LINES: usize = 2000;

/// The longest line that is shown whole.
const WIDE: usize = 500;

/// The largest picture.
const LARGEST_IMAGE: usize = 20 << 20;

/// Entries of a directory, and hits of a search, at most.
const ENTRIES: usize = 1000;

#[derive(Debug, Deserialize)]
pub(super) struct ReadArgs {
    #[serde(alias = "file_path")]
    path: PathBuf,
    #[serde(default)]
    offset: Option<usize>,
    #[serde(default)]
    limit: Option<usize>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ListArgs {
    #[serde(alias = "dir_path", default)]
    path: PathBuf,
    #[serde(default)]
    depth: Option<usize>,
}

#[derive(Debug, Deserialize)]
pub(super) struct GrepArgs {
    pattern: String,
    #[serde(default)]
    path: Option<PathBuf>,
    #[serde(default)]
    include: Option<String>,
    #[serde(default)]
    limit: Option<usize>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ImageArgs {
    path: PathBuf,
}

/// `read_file`: numbered lines.
pub(super) async fn read_file(scene: &Scene, args: ReadArgs) -> Outcome {
    look(scene, args.path.clone(), move |path| {
        let first = args.offset.unwrap_or(1).max(1);
        let most = args.limit.unwrap_or(LINES).clamp(1, LINES);
        let file = open(path)?;
        let mut text = String::new();
        let mut reader = BufReader::new(file);
        let mut line = Vec::new();
        let mut number = 0;
        let mut shown = 0;
        loop {
            line.clear();
            let n = (&mut reader).take(1 << 20).read_until(b'\n', &mut line);
            let n = n.map_err(|error| cannot(path, &error.into()))?;
            if n == 0 {
                break;
            }
            number += 1;
            if number < first {
                continue;
            }
            if shown == most {
                text.push_str(&format!("… more from line {number}\n"));
                break;
            }
            shown += 1;
            let whole = String::from_utf8_lossy(&line);
            let whole = whole.trim_end_matches(['\n', '\r']);
            let cut = whole.floor_char_boundary(WIDE);
            let (head, rest) = whole.split_at(cut);
            let more = if rest.is_empty() { "" } else { "…" };
            text.push_str(&format!("L{number}: {head}{more}\n"));
        }
        match (shown, number) {
            (0, 0) => Ok("the file is empty".to_owned()),
            (0, n) => Err(format!("the file has {n} lines; offset {first} is beyond them")),
            _ => Ok(text),
        }
    })
    .await
}

/// `list_dir`: what is below a directory, as git would see it.
pub(super) async fn list_dir(scene: &Scene, args: ListArgs) -> Outcome {
    let hidden = scene.shared.settings.hidden.clone();
    look(scene, args.path.clone(), move |path| {
        let tree = directory(path)?;
        let deepest = Some(args.depth.unwrap_or(2).clamp(1, 8));
        let options = Options { deepest, rules_without_git: true, ..Options::default() };
        let choose = not_hidden(&tree, hidden);
        let choose = move |path: &Path, seen: &Seen| match path.ends_with(".git") {
            true => Choice::PassOver,
            false => choose(path, seen),
        };
        let mut text = String::new();
        for (n_entries, found) in Walk::new(&tree, options, choose).enumerate() {
            if n_entries == ENTRIES {
                text.push_str("… and more; list a directory below\n");
                break;
            }
            let sign = match found.seen.sort {
                Sort::Directory => "/",
                Sort::Link => "@",
                _ => "",
            };
            text.push_str(&format!("{}{sign}\n", found.path.display()));
        }
        Ok(if text.is_empty() { "the directory is empty".to_owned() } else { text })
    })
    .await
}

/// `grep_files`: lines that match a regular expression.
pub(super) async fn grep(scene: &Scene, args: GrepArgs) -> Outcome {
    let start = args.path.clone().unwrap_or_default();
    let hidden = scene.shared.settings.hidden.clone();
    look(scene, start, move |path| {
        let pattern = regex::bytes::RegexBuilder::new(&args.pattern)
            .size_limit(1 << 20)
            .build()
            .map_err(|error| format!("the pattern is not understood: {error}"))?;
        let most = args.limit.unwrap_or(100).clamp(1, ENTRIES);
        let mut hits = Hits { pattern, most, n_hits: 0, text: String::new() };
        if !path.is_dir() {
            return match hits.search(open(path)?, path) {
                ControlFlow::Continue(()) | ControlFlow::Break(()) => Ok(hits.told()),
            };
        }
        let tree = directory(path)?;
        let only = args.include.as_deref().map(|include| only(&tree, include)).transpose()?;
        let choose = not_hidden(&tree, hidden);
        let root = tree.path().to_owned();
        let choose = move |path: &Path, seen: &Seen| match choose(path, seen) {
            Choice::Rules => included(only.as_ref(), &root.join(path), seen),
            choice => choice,
        };
        let options =
            Options { rules_without_git: true, passes_over_dots: true, ..Options::default() };
        for found in Walk::new(&tree, options, choose) {
            if found.seen.sort == Sort::File
                && let Ok(file) = tree.file(&found.path, Links::None)
                && hits.search(file, &found.path).is_break()
            {
                break;
            }
        }
        Ok(hits.told())
    })
    .await
}

/// Lines that match, up to a bound.
struct Hits {
    pattern: regex::bytes::Regex,
    most: usize,
    n_hits: usize,
    text: String,
}

impl Hits {
    /// Looks through a file. It breaks off when there are enough.
    fn search(&mut self, file: File, shown: &Path) -> ControlFlow<()> {
        let mut reader = BufReader::new(file.take(16 << 20));
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            // A line has a bound too: what is longer goes on as the next one.
            let read = (&mut reader).take(1 << 20).read_until(b'\n', &mut line);
            if !read.is_ok_and(|n| n > 0) || line.contains(&0) {
                break;
            }
            let line = line.strip_suffix(b"\n").unwrap_or(&line);
            if self.pattern.is_match(line) {
                if self.n_hits == self.most {
                    self.text.push_str("… and more\n");
                    return ControlFlow::Break(());
                }
                self.n_hits += 1;
                let line = String::from_utf8_lossy(line);
                let (head, _) = line.split_at(line.floor_char_boundary(WIDE));
                self.text.push_str(&format!("{}:{number}: {head}\n", shown.display()));
            }
        }
        ControlFlow::Continue(())
    }

    fn told(self) -> String {
        if self.n_hits == 0 { "no line matches".to_owned() } else { self.text }
    }
}

/// The files that a search is for.
fn only(tree: &Tree, include: &str) -> Result<ignore::overrides::Override, String> {
    let mut only = ignore::overrides::OverrideBuilder::new(tree.path());
    let only = only.add(include).and_then(|only| only.build());
    only.map_err(|error| format!("include: {error}"))
}

fn included(only: Option<&ignore::overrides::Override>, path: &Path, seen: &Seen) -> Choice {
    let matched = only.map(|only| only.matched(path, seen.sort == Sort::Directory));
    match matched {
        Some(matched) if matched.is_whitelist() => Choice::Show,
        Some(matched) if matched.is_ignore() => Choice::PassOver,
        _ => Choice::Rules,
    }
}

fn directory(path: &Path) -> Result<Tree, String> {
    match Tree::open(path) {
        Ok(tree) => Ok(tree),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
            Err(format!("{} is no directory", path.display()))
        }
        Err(error) => Err(cannot(path, &error.into())),
    }
}

/// Passes over what commands may not read either.
fn not_hidden(tree: &Tree, hidden: Vec<PathBuf>) -> impl Fn(&Path, &Seen) -> Choice + Send + use<> {
    let root = tree.path().to_owned();
    let hidden: Vec<PathBuf> =
        hidden.iter().filter_map(|hidden| hidden.canonicalize().ok()).collect();
    // No link is followed on the way, so the path is the real one.
    move |path, _| match hidden.iter().any(|hidden| root.join(path).starts_with(hidden)) {
        true => Choice::PassOver,
        false => Choice::Rules,
    }
}

/// `view_image`: a picture for the model.
pub(super) async fn view_image(scene: &Scene, call: &Call, args: ImageArgs) -> Outcome {
    if !scene.shared.settings.sees(&scene.context.model) {
        return Outcome::failed("this model takes no pictures");
    }
    let path = scene.context.path(&args.path);
    let event = ViewImageToolCall {
        call_id: Str::Borrowed(&call.id),
        path: Str::Owned(path.display().to_string()),
    };
    scene.shared.out.send(&scene.task, EventMsg::ViewImageToolCall(event)).await;
    let hidden = scene.shared.settings.hidden.clone();
    let read = tokio::task::spawn_blocking(move || image(&path, &hidden)).await;
    match read {
        Ok(Ok(url)) => Outcome {
            output: Output::Parts(vec![
                Part::InputText(Content { text: Str::Borrowed("the picture:") }),
                Part::InputImage(ImageUrl { image_url: Str::Owned(url), detail: None }),
            ]),
            aborts: false,
        },
        Ok(Err(why)) => Outcome::failed(why),
        Err(_) => Outcome::failed("the picture cannot be read"),
    }
}

/// A picture in a file, as a `data:` URL.
pub(crate) fn image(path: &Path, hidden: &[PathBuf]) -> Result<String, String> {
    let file = open(&not_hidden_path(path, hidden)?)?;
    let content = tieline_workspace::Content::of(&file, LARGEST_IMAGE);
    let content = content.map_err(|error| cannot(path, &error))?;
    if content.is_cut {
        return Err(format!("{} is larger than 20 MiB", path.display()));
    }
    let bytes = content.bytes;
    let mime = match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        _ => return Err(format!("{} is no PNG, JPEG, GIF or WebP", path.display())),
    };
    let data = base64::engine::general_purpose::STANDARD.encode(&bytes);
    Ok(format!("data:{mime};base64,{data}"))
}

async fn look(
    scene: &Scene,
    path: PathBuf,
    work: impl FnOnce(&Path) -> Result<String, String> + Send + 'static,
) -> Outcome {
    let path = scene.context.path(path);
    let hidden = scene.shared.settings.hidden.clone();
    let done = tokio::task::spawn_blocking(move || work(&not_hidden_path(&path, &hidden)?));
    match done.await {
        Ok(Ok(text)) => Outcome::said(text),
        Ok(Err(why)) => Outcome::failed(why),
        Err(_) => Outcome::failed("it cannot be read"),
    }
}

/// Opens a file by its real path.
fn open(path: &Path) -> Result<File, String> {
    without_links(path).map_err(|error| match error {
        Error::NotAFile => format!("{} is no file", path.display()),
        error => cannot(path, &error),
    })
}

fn cannot(path: &Path, error: &Error) -> String {
    format!("cannot read {}: {error}", path.display())
}

/// Where a path leads, if that is not what commands may not read either. It is looked up once, and what
/// is opened by it is opened without following a link: what was judged is what is read.
fn not_hidden_path(path: &Path, hidden: &[PathBuf]) -> Result<PathBuf, String> {
    let real = path.canonicalize().map_err(|error| cannot(path, &error.into()))?;
    let mut hidden = hidden.iter().filter_map(|hidden| hidden.canonicalize().ok());
    match hidden.any(|hidden| real.starts_with(hidden)) {
        true => Err(format!("{} is hidden", path.display())),
        false => Ok(real),
    }
}
