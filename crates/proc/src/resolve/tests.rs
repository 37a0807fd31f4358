use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

/// A workspace and two directories outside it.
struct Place {
    root: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place { root: tempfile::tempdir().unwrap() };
        for directory in ["ws/bin", "usr", "opt"] {
            fs::create_dir_all(place.at(directory)).unwrap();
        }
        place
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(path)
    }

    fn program(&self, path: &str) {
        fs::write(self.at(path), "#!/bin/sh\n").unwrap();
        fs::set_permissions(self.at(path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn link(&self, path: &str, target: &str) {
        symlink(self.at(target), self.at(path)).unwrap();
    }

    fn search(&self, path_entries: &[&str]) -> Result<PathBuf, Error> {
        let entries = path_entries.iter().map(|entry| match entry.strip_prefix("./") {
            Some(_) => PathBuf::from(entry),
            None => self.at(entry),
        });
        let path_var: OsString = std::env::join_paths(entries).unwrap();
        resolve("tool", &self.at("ws"), Some(&path_var))
    }

    #[track_caller]
    fn refuses(&self, result: &Result<PathBuf, Error>) {
        assert!(matches!(result, Err(Error::InsideWorkspace { .. })), "{result:?}");
    }
}

#[test]
fn a_bare_name_is_found_in_the_search_path() {
    let place = Place::new();
    place.program("usr/tool");
    assert_eq!(place.search(&["opt", "usr"]).unwrap(), place.at("usr/tool"));
    assert!(matches!(place.search(&["opt"]), Err(Error::NotFound { .. })));
    assert!(matches!(resolve("tool", &place.at("ws"), None), Err(Error::NotFound { .. })));
    assert!(matches!(resolve("", &place.at("ws"), None), Err(Error::NotFound { .. })));
}

#[test]
fn what_cannot_be_executed_is_passed_over() {
    let place = Place::new();
    fs::write(place.at("opt/tool"), "text").unwrap();
    assert!(matches!(place.search(&["opt"]), Err(Error::NotFound { .. })));
    let explicit = resolve_explicit(place.at("opt/tool").to_str().unwrap());
    assert!(matches!(explicit, Err(Error::NotExecutable { .. })), "{explicit:?}");
    let directory = resolve_explicit(place.at("opt").to_str().unwrap());
    assert!(matches!(directory, Err(Error::NotExecutable { .. })), "{directory:?}");
}

#[test]
fn a_planted_program_is_refused_and_a_later_one_used() {
    let place = Place::new();
    place.program("ws/bin/tool");
    place.refuses(&place.search(&["ws/bin"]));
    place.program("usr/tool");
    assert_eq!(place.search(&["ws/bin", "usr"]).unwrap(), place.at("usr/tool"));
}

#[test]
fn links_into_through_and_out_of_the_workspace_are_refused() {
    let place = Place::new();
    place.program("ws/bin/tool");
    place.program("opt/real");
    place.link("usr/tool", "ws/bin/tool");
    place.refuses(&place.search(&["usr"]));

    fs::remove_file(place.at("ws/bin/tool")).unwrap();
    place.link("ws/bin/tool", "opt/real");
    place.refuses(&place.search(&["ws/bin"]));
    place.refuses(&place.search(&["usr"]));

    place.link("linked", "ws/bin");
    place.refuses(&place.search(&["linked"]));
    place.refuses(&place.search(&["ws/../ws/bin"]));
}

#[test]
fn links_that_stay_outside_are_followed_but_not_replaced() {
    let place = Place::new();
    place.program("opt/real");
    place.link("usr/tool", "opt/real");
    assert_eq!(place.search(&["usr"]).unwrap(), place.at("usr/tool"));
}

#[test]
fn relative_entries_are_refused_by_name() {
    let place = Place::new();
    let here = std::env::current_dir().unwrap();
    let up: PathBuf = here.components().skip(1).map(|_| "..").collect();
    let entry = up.join(place.at("usr").strip_prefix("/").unwrap());
    place.program("usr/tool");
    let path_var = std::env::join_paths([entry]).unwrap();
    let result = resolve("tool", &place.at("ws"), Some(&path_var));
    assert!(matches!(result, Err(Error::RelativePathEntry { .. })), "{result:?}");
}

#[test]
fn an_absolute_path_inside_the_workspace_needs_to_be_explicit() {
    let place = Place::new();
    place.program("ws/bin/tool");
    let path = place.at("ws/bin/tool");
    let text = path.to_str().unwrap();
    place.refuses(&resolve(text, &place.at("ws"), None));
    assert_eq!(resolve_explicit(text).unwrap(), path);
    let relative = resolve("bin/tool", &place.at("ws"), None);
    assert!(matches!(relative, Err(Error::NotAbsolute { .. })), "{relative:?}");
}
