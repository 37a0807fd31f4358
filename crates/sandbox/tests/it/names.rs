//! Names that stay as they are, and names that never come into being.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tieline_sandbox::Policy;
use tieline_workspace::Obeyed;
use tieline_workspace::protected::{AT_HOME, IN_WORKSPACE};

use crate::stage::{Said, Stage, differences, is_off, snapshot, users};

/// The names of a table that stand directly in their directory.
fn single(table: &[(&'static str, Obeyed)]) -> Vec<&'static str> {
    table.iter().map(|(name, _)| *name).filter(|name| !name.contains('/')).collect()
}

/// What the attempts use in the workspace, without the names themselves.
fn furnish(stage: &Stage, dir: &str, names: &[&str]) {
    stage.make_dir(&format!("{dir}/sub"));
    stage.make_file("names", &names.join("\n"));
}

fn attack(stage: &Stage, policy: Option<&Policy>, dir: &Path, how: &str) -> Said {
    let (probe, root) = (stage.path("probe"), stage.path(""));
    let words = [probe.to_str().unwrap(), "names", root.to_str().unwrap(), how];
    let mut command = match policy {
        Some(policy) => stage.helper(policy, &words),
        None => {
            let mut command = stage.command(words[0]);
            command.args(&words[1..]);
            command
        }
    };
    Said::from(command.current_dir(dir).output().unwrap()).succeeds()
}

/// The names in a directory that are not the attempts' own.
fn left_in(dir: &Path) -> BTreeSet<String> {
    let own = ["sub", "own", "own-dir", "way", "linked", "away"];
    let names = std::fs::read_dir(dir).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| !own.contains(&name.as_str())).collect()
}

#[track_caller]
fn all_fail(said: &Said, n_names: usize, n_ways: usize) {
    let rows = said.rows();
    let worked: Vec<_> = rows.iter().filter(|(_, _, said)| said == "done").collect();
    assert!(worked.is_empty(), "{worked:?}");
    assert_eq!(rows.len(), n_names * n_ways, "{}", said.out);
}

#[test]
fn a_protected_name_cannot_come_into_being() {
    if is_off() {
        return;
    }
    let names = single(IN_WORKSPACE);
    for user in users() {
        let stage = Stage::new(user);
        furnish(&stage, "work", &names);
        let said = attack(&stage, Some(&stage.workspace()), &stage.work(), "missing");
        all_fail(&said, names.len(), 18);
        assert!(left_in(&stage.work()).is_empty(), "{:?}", left_in(&stage.work()));
        // The same without a sandbox.
        let said = attack(&stage, None, &stage.work(), "missing");
        let failed: Vec<_> = said.rows().into_iter().filter(|row| row.2 != "done").collect();
        assert!(failed.is_empty(), "{failed:?}");
    }
}

#[test]
fn a_protected_name_that_exists_stays_as_it_is() {
    if is_off() {
        return;
    }
    let names = single(IN_WORKSPACE);
    for user in users() {
        let stage = Stage::new(user);
        furnish(&stage, "work", &names);
        let before = fill(&stage, "work", &names);
        let said = attack(&stage, Some(&stage.workspace()), &stage.work(), "existing");
        all_fail(&said, names.len(), 9);
        let after = seen(&stage.work(), &names);
        assert_eq!(differences(&before, &after), Vec::<String>::new());
    }
}

#[test]
fn a_home_directory_keeps_its_start_up_files() {
    if is_off() {
        return;
    }
    for user in users() {
        let stage = Stage::new(user);
        let home = stage.make_dir("home");
        let top = single(AT_HOME);
        furnish(&stage, "home", &top);
        let policy = stage.workspace_of(vec![home.clone()]);
        all_fail(&attack(&stage, Some(&policy), &home, "missing"), top.len(), 18);
        assert!(left_in(&home).is_empty(), "{:?}", left_in(&home));
        // What is below a directory of its own: it can be made, they cannot.
        stage.make_dir("home/.config");
        let script = "cd .config && mkdir git || mkdir systemd || mv ../sub fish || \
                      mv ../.config ../.other || (mkdir other && rmdir other && exit 7)";
        let mut helper = stage.helper(&policy, &["sh", "-c", script]);
        let said = Said::from(helper.current_dir(&home).output().unwrap());
        assert_eq!(said.output.status.code(), Some(7), "{said:?}");
        // The files that exist stay as they are too.
        let before = fill(&stage, "home", &top);
        all_fail(&attack(&stage, Some(&policy), &home, "existing"), top.len(), 9);
        assert_eq!(differences(&before, &seen(&home, &top)), Vec::<String>::new());
    }
}

#[test]
fn a_home_below_a_root_is_a_home_too() {
    if is_off() {
        return;
    }
    for user in users() {
        let stage = Stage::new(user);
        stage.make_dir("home/.config");
        let policy = stage.workspace_of(vec![stage.path("")]);
        let said = stage.shell(
            &policy,
            "cd ../home; touch .bashrc; mkdir .config/git; mv .config x; cd ..; mv home x; true",
        );
        assert_eq!(said.succeeds().err.lines().count(), 4);
        let home = snapshot(&stage.path("home"));
        assert_eq!(home.keys().collect::<Vec<_>>(), [Path::new(""), Path::new(".config")]);
    }
}

/// Makes half of the names directories and half of them files.
fn fill(stage: &Stage, dir: &str, names: &[&str]) -> std::collections::BTreeMap<PathBuf, String> {
    for (at, name) in names.iter().enumerate() {
        match at % 2 {
            0 => {
                stage.make_dir(&format!("{dir}/{name}"));
                stage.make_file(&format!("{dir}/{name}/config"), "untouched");
                stage.make_file(&format!("{dir}/{name}/HEAD"), "untouched");
            }
            _ => drop(stage.make_file(&format!("{dir}/{name}"), "untouched")),
        }
    }
    seen(&stage.path(dir), names)
}

fn seen(dir: &Path, names: &[&str]) -> std::collections::BTreeMap<PathBuf, String> {
    let mut all = snapshot(dir);
    all.retain(|path, _| names.iter().any(|name| path.starts_with(name)));
    all
}

#[test]
fn a_protected_link_is_neither_removed_nor_followed() {
    if is_off() {
        return;
    }
    for user in users() {
        let stage = Stage::new(user);
        stage.make_dir("work/real");
        stage.make_file("work/real/config", "untouched");
        std::os::unix::fs::symlink("real", stage.path("work/.git")).unwrap();
        std::os::unix::fs::symlink("nowhere", stage.path("work/.claude")).unwrap();
        stage.make_file("work/other", "");
        let before = snapshot(&stage.path("work/real"));
        for script in [
            "rm .git",
            "unlink .claude",
            "mv .git away",
            "ln -sfn other .git",
            "echo x > .git/config",
            "echo x > real/config",
            "touch real/hook",
            "mv real away",
            "rm -r real",
            "echo x > .claude",
            "mkdir .claude",
            "touch nowhere",
        ] {
            stage.shell(&stage.workspace(), script).fails();
        }
        // Removing something else still works, through the clerk.
        stage.shell(&stage.workspace(), "rm other && mkdir d && rmdir d").succeeds();
        assert_eq!(differences(&before, &snapshot(&stage.path("work/real"))), Vec::<String>::new());
        assert_eq!(std::fs::read_link(stage.path("work/.git")).unwrap(), Path::new("real"));
        assert_eq!(std::fs::read_link(stage.path("work/.claude")).unwrap(), Path::new("nowhere"));
    }
}

#[test]
fn the_repository_of_a_worktree_is_protected_where_it_lies() {
    if is_off() {
        return;
    }
    for user in users() {
        let stage = Stage::new(user);
        // Both lie in one root; the worktree's `.git` is a file.
        stage.make_dir("work/main/repo/worktrees/tree");
        stage.make_dir("work/main/repo/hooks");
        stage.make_file("work/main/repo/config", "untouched");
        stage.make_file("work/main/repo/worktrees/tree/commondir", "../..\n");
        stage.make_dir("work/tree");
        stage.make_file("work/tree/.git", "gitdir: ../main/repo/worktrees/tree\n");
        let policy = stage.workspace_of(vec![stage.work(), stage.path("work/tree")]);
        let before = snapshot(&stage.path("work/main"));
        for script in [
            "echo x > main/repo/config",
            "touch main/repo/hooks/pre-commit",
            "touch main/repo/worktrees/tree/index",
            "mv main other",
            "mv main/repo main/other",
            "mv tree other",
            "echo x > tree/.git",
            "rm tree/.git",
        ] {
            stage.shell(&policy, script).fails();
        }
        stage.shell(&policy, "touch tree/file main/file && rm main/file").succeeds();
        let changed = differences(&before, &snapshot(&stage.path("work/main")));
        // Only the time of the directory in which a file came and went.
        assert!(changed.len() == 1 && changed[0].starts_with(": "), "{changed:?}");
    }
}

#[test]
fn paths_of_the_caller_are_protected_too() {
    if is_off() {
        return;
    }
    let stage = Stage::new(users()[0]);
    stage.make_dir("work/data");
    stage.make_file("work/data/store", "untouched");
    let mut policy = stage.workspace();
    policy.protected = vec![stage.path("work/data"), stage.path("work/not/yet/there")];
    for script in ["echo x > data/store", "touch data/new", "mv data x", "mkdir not", "mv data not"]
    {
        stage.shell(&policy, script).fails();
    }
    stage.shell(&policy, "mkdir note").succeeds();
}

#[test]
fn making_a_protected_directory_that_is_there_is_no_mistake() {
    if is_off() {
        return;
    }
    let stage = Stage::new(users()[0]);
    stage.make_dir("work/.vscode");
    stage.shell(&stage.workspace(), "mkdir -p .vscode && cd .vscode && ls").succeeds();
    stage.shell(&stage.workspace(), "mkdir -p .vscode/new").fails();
    stage.shell(&stage.workspace(), "mkdir -p .idea").fails();
}

#[test]
fn a_name_that_changes_while_it_is_looked_at_fools_nobody() {
    if is_off() {
        return;
    }
    let stage = Stage::new(users()[0]);
    let probe = stage.path("probe");
    let words = [probe.to_str().unwrap(), "race", "5000"];
    let inside = stage.run(&stage.workspace(), &words).succeeds();
    assert_eq!(inside.out.trim(), "0");
    assert!(stage.path("work/own").exists() && !stage.path("work/.git").exists());
    // Without a sandbox it happens, sooner or later.
    let mut outside = stage.command(words[0]);
    let outside = outside.args(["race", "0"]).current_dir(stage.work()).output();
    assert_eq!(Said::from(outside.unwrap()).succeeds().out.trim(), "1");
}
