//! What the settings of a repository may not have git do.
//!
//! A repository's own settings name programs: filters that are run for each file, hooks, monitors. They
//! are somebody else's words, so each of them is set to what the user's own settings say, or to nothing.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// Settings by their names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Overrides(Vec<(Vec<u8>, Vec<u8>)>);

impl Overrides {
    /// What has to be said against the settings of a repository, from what
    /// `git config --list --show-scope -z` printed.
    pub(super) fn against(listed: &[u8]) -> Self {
        let mut of_user: BTreeMap<&[u8], &[u8]> = BTreeMap::new();
        let mut of_repository: BTreeMap<&[u8], ()> = BTreeMap::new();
        let mut fields = listed.split(|byte| *byte == 0);
        while let (Some(scope), Some(entry)) = (fields.next(), fields.next()) {
            // A setting without a value has no line for one.
            let end = entry.iter().position(|byte| *byte == b'\n').unwrap_or(entry.len());
            let (name, value) = entry.split_at(end);
            if !names_a_program(name) {
                continue;
            }
            match scope {
                b"system" | b"global" => {
                    of_user.insert(name, value.strip_prefix(b"\n").unwrap_or(b"true"));
                }
                b"command" => {}
                _ => {
                    of_repository.insert(name, ());
                }
            }
        }
        let value = |name: &[u8]| match (of_user.get(name), name.ends_with(b".required")) {
            (Some(value), _) => value.to_vec(),
            // What is not there cannot be required.
            (None, true) => b"false".to_vec(),
            (None, false) => Vec::new(),
        };
        let mut overrides: Vec<_> =
            of_repository.keys().map(|name| (name.to_vec(), value(name))).collect();
        for (name, ()) in of_repository {
            if let Some(hook) = name.strip_suffix(b".command")
                && name.starts_with(b"hook.")
            {
                overrides.push(([hook, b".enabled"].concat(), b"false".to_vec()));
            }
        }
        Self(overrides)
    }

    /// As variables that git reads. (On a command line a name could not have `=` in it.)
    pub(super) fn variables(&self) -> Vec<(String, OsString)> {
        let mut variables = vec![("GIT_CONFIG_COUNT".to_owned(), self.0.len().to_string().into())];
        for (at, (name, value)) in self.0.iter().enumerate() {
            variables.push((format!("GIT_CONFIG_KEY_{at}"), OsString::from_vec(name.clone())));
            variables.push((format!("GIT_CONFIG_VALUE_{at}"), OsString::from_vec(value.clone())));
        }
        variables
    }
}

/// Whether a setting names a program, or has to do with one. Helpers of filters such as git-lfs obey
/// more of them than git does here.
fn names_a_program(name: &[u8]) -> bool {
    const SECTIONS: [&[u8]; 4] = [b"credential.", b"filter.", b"hook.", b"lfs."];
    const LAST: [&[u8]; 11] = [
        b"alternaterefscommand",
        b"askpass",
        b"command",
        b"driver",
        b"editor",
        b"external",
        b"gitproxy",
        b"pager",
        b"program",
        b"sshcommand",
        b"textconv",
    ];
    let last = name.rsplit(|byte| *byte == b'.').next().unwrap_or(name);
    SECTIONS.iter().any(|section| name.starts_with(section)) || LAST.contains(&last)
}

#[test]
fn a_repositorys_programs_are_replaced_by_the_users_own_or_by_nothing() {
    let listed = b"global\0filter.lfs.clean\ngit-lfs clean\0global\0user.name\nme\0\
        local\0filter.lfs.clean\nevil\0local\0filter.a=b.smudge\nevil\0\
        worktree\0filter.x.required\0local\0hook.h.command\nevil\0local\0core.bare\0";
    let overrides = Overrides::against(listed);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let told: Vec<_> =
        overrides.0.iter().map(|(a, b)| format!("{}={}", text(a), text(b))).collect();
    assert_eq!(
        told,
        [
            "filter.a=b.smudge=",
            "filter.lfs.clean=git-lfs clean",
            "filter.x.required=false",
            "hook.h.command=",
            "hook.h.enabled=false",
        ]
    );
    assert_eq!(overrides.variables().len(), 11);
    assert_eq!(Overrides::against(b""), Overrides::default());
}
