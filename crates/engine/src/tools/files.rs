//! Looking at files. They run within this process, so they keep to what a command in the sandbox
//! could read: nothing that is hidden.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use rustix::fs::OFlags;
use serde::Deserialize;
use tieline_wire::responses::{Content, ImageUrl, Output, Part};
use tieline_wire::sqeq::{EventMsg, ViewImageToolCall};
use tieline_wire::text::Str;

use super::{Outcome, Scene};
use crate::calls::Call;

/// Lines that are shown if the model does not say how many.
const LINES: usize = 2000;

/// The longest line that is shown whole.
const WIDE: usize = 500;

/// The largest picture.
const LARGEST_IMAGE: u64 = 20 << 20;

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
            let n = n.map_err(|error| cannot(path, &error))?;
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
        if !path.is_dir() {
            return Err(format!("{} is no directory", path.display()));
        }
        let depth = args.depth.unwrap_or(2).clamp(1, 8);
        let walk = ignore::WalkBuilder::new(path)
            .max_depth(Some(depth))
            .hidden(false)
            .require_git(false)
            .filter_entry(move |entry| {
                entry.file_name() != ".git" && !is_hidden(&hidden, entry.path())
            })
            .sort_by_file_name(Ord::cmp)
            .build();
        let mut text = String::new();
        for (n_entries, entry) in walk.flatten().skip(1).enumerate() {
            if n_entries == ENTRIES {
                text.push_str("… and more; list a directory below\n");
                break;
            }
            let shown = entry.path().strip_prefix(path).unwrap_or(entry.path());
            let sign = match entry.file_type() {
                Some(kind) if kind.is_dir() => "/",
                Some(kind) if kind.is_symlink() => "@",
                _ => "",
            };
            text.push_str(&format!("{}{sign}\n", shown.display()));
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
        let mut walk = ignore::WalkBuilder::new(path);
        walk.require_git(false).sort_by_file_name(Ord::cmp);
        if let Some(include) = &args.include {
            let mut only = ignore::overrides::OverrideBuilder::new(path);
            let only = only.add(include).and_then(|only| only.build());
            walk.overrides(only.map_err(|error| format!("include: {error}"))?);
        }
        let most = args.limit.unwrap_or(100).clamp(1, ENTRIES);
        let mut text = String::new();
        let mut n_hits = 0;
        for entry in walk.build().flatten() {
            let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
            if !is_file || is_hidden(&hidden, entry.path()) {
                continue;
            }
            let Ok(file) = open(entry.path()) else { continue };
            let shown = entry.path().strip_prefix(path).unwrap_or(entry.path());
            let shown = if shown.as_os_str().is_empty() { entry.path() } else { shown };
            for (number, line) in BufReader::new(file.take(16 << 20)).split(b'\n').enumerate() {
                let Ok(line) = line else { break };
                if line.contains(&0) {
                    break;
                }
                if pattern.is_match(&line) {
                    if n_hits == most {
                        text.push_str("… and more\n");
                        return Ok(text);
                    }
                    n_hits += 1;
                    let line = String::from_utf8_lossy(&line);
                    let (head, _) = line.split_at(line.floor_char_boundary(WIDE));
                    text.push_str(&format!("{}:{}: {head}\n", shown.display(), number + 1));
                }
            }
        }
        Ok(if n_hits == 0 { "no line matches".to_owned() } else { text })
    })
    .await
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
    if is_hidden(hidden, path) {
        return Err(format!("{} is hidden", path.display()));
    }
    let file = open(path)?;
    let mut bytes = Vec::new();
    let read = file.take(LARGEST_IMAGE + 1).read_to_end(&mut bytes);
    read.map_err(|error| cannot(path, &error))?;
    if bytes.len() as u64 > LARGEST_IMAGE {
        return Err(format!("{} is larger than 20 MiB", path.display()));
    }
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
    let done = tokio::task::spawn_blocking(move || match is_hidden(&hidden, &path) {
        true => Err(format!("{} is hidden", path.display())),
        false => work(&path),
    });
    match done.await {
        Ok(Ok(text)) => Outcome::said(text),
        Ok(Err(why)) => Outcome::failed(why),
        Err(_) => Outcome::failed("it cannot be read"),
    }
}

fn open(path: &Path) -> Result<File, String> {
    // A pipe without a writer would hold us for ever.
    let mut how = File::options();
    how.read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let file = how.open(path).map_err(|error| cannot(path, &error))?;
    let meta = file.metadata().map_err(|error| cannot(path, &error))?;
    match meta.is_file() {
        true => Ok(file),
        false => Err(format!("{} is no file", path.display())),
    }
}

fn cannot(path: &Path, error: &std::io::Error) -> String {
    format!("cannot read {}: {error}", path.display())
}

/// Whether a path leads to what commands may not read either.
fn is_hidden(hidden: &[PathBuf], path: &Path) -> bool {
    let real = path.canonicalize();
    let real = real.as_deref().unwrap_or(path);
    hidden.iter().any(|hidden| {
        let hidden = hidden.canonicalize();
        hidden.is_ok_and(|hidden| real.starts_with(hidden))
    })
}
