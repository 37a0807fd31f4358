//! A workspace that wants something of whoever works in it. The agent is a script.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use crate::tieline::{Outcome, Tieline};

/// A user whose agent plays this script.
fn with_script(script: &str) -> Tieline {
    let tieline = Tieline::new();
    let path = tieline.path("hostile.script");
    fs::write(&path, script).unwrap();
    let config = format!("[defaults]\nagent = \"demo\"\n[agents.demo]\nscript = {path:?}\n");
    tieline.with_config(&config)
}

fn git(dir: &Path, words: &[&str]) {
    let output = try_git(dir, words);
    assert!(output.status.success(), "{words:?}: {output:?}");
}

#[allow(clippy::disallowed_methods)] // a test makes its repository
fn try_git(dir: &Path, words: &[&str]) -> std::process::Output {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]);
    git.args(words).current_dir(dir).env_remove("GIT_DIR").output().unwrap()
}

fn pipe(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

/// Runs it with so little memory and time that what has no end ends it.
fn held(tieline: &Tieline, args: &[&str]) -> Outcome {
    let inner = tieline.command(args);
    let words = std::iter::once(inner.get_program()).chain(inner.get_args());
    #[allow(clippy::disallowed_methods)] // a test starts what it tests
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 3000000; exec timeout -k 1 60 \"$@\"", "sh"]).args(words);
    command.env_clear();
    for (name, value) in inner.get_envs() {
        value.map(|value| command.env(name, value));
    }
    command.current_dir(inner.get_current_dir().unwrap());
    command.stdin(std::process::Stdio::null()).output().unwrap().into()
}

#[test]
fn a_task_tells_its_agent_nothing_from_outside_of_the_project() {
    let tieline = with_script("say done\n").with("PLANTED", "ghp_PLANTED");
    git(&tieline.work(), &["init", "-q"]);
    symlink("/proc/self/environ", tieline.work().join("AGENTS.md")).unwrap();
    fs::create_dir(tieline.work().join(".claude")).unwrap();
    symlink("/proc/self/environ", tieline.work().join(".claude/CLAUDE.md")).unwrap();
    tieline.run(&["task", "run", "t", "go"]).succeeds();
    let history = tieline.run(&["export", "t"]).succeeds();
    assert!(
        history.out.contains("AGENTS.md: it is a link that leads elsewhere"),
        "{}",
        history.out
    );
    assert!(!history.out.contains("ghp_PLANTED"));
}

#[test]
fn a_task_neither_hangs_nor_eats_memory_over_what_it_finds() {
    let script = "call list_dir {\"path\": \".\"}\nsay done\n";
    for make in [&pipe as &dyn Fn(&Path), &|path| symlink("/dev/zero", path).unwrap()] {
        let tieline = with_script(script);
        let work = tieline.work();
        git(&work, &["init", "-q"]);
        fs::create_dir_all(work.join("sub")).unwrap();
        fs::remove_file(work.join(".git/info/exclude")).ok();
        fs::create_dir_all(work.join(".git/info")).unwrap();
        for name in [
            "AGENTS.md",
            "CLAUDE.md",
            ".gitignore",
            ".ignore",
            "sub/.gitignore",
            ".git/info/exclude",
        ] {
            make(&work.join(name));
        }
        held(&tieline, &["task", "run", "t", "go"]).succeeds();
    }
}

#[test]
fn rules_of_git_cost_only_so_much() {
    let tieline = with_script("call list_dir {\"path\": \".\", \"depth\": 8}\nsay done\n");
    let mut place = tieline.work();
    git(&place, &["init", "-q"]);
    for n in 0..6 {
        let rules: String = (0..5000).map(|m| format!("*{n}*a*{m}*[b-y]*\n")).collect();
        fs::write(place.join(".gitignore"), rules).unwrap();
        place.push("deeper");
        fs::create_dir(&place).unwrap();
    }
    held(&tieline, &["task", "run", "t", "go"]).succeeds();
}

#[test]
fn a_repository_that_is_no_repository_holds_up_no_command() {
    for make in [&pipe as &dyn Fn(&Path), &|path| symlink("/dev/zero", path).unwrap(), &|path| {
        fs::File::create(path).unwrap().set_len(1 << 40).unwrap()
    }] {
        let tieline = with_script("run touch made\nsay done\n");
        make(&tieline.work().join(".git"));
        held(&tieline, &["run", "--mode", "acceptEdits", "go"]).succeeds();
        assert!(tieline.work().join("made").exists());
    }
}

#[test]
fn a_workspace_that_is_the_home_keeps_tielines_own_rules() {
    let rules = "printf '[[rule]]\\nprefix = [\"touch\"]\\ndecision = \"allow\"\\n' > ";
    let script = format!(
        "run mkdir -p ~/.config/tieline; {rules} ~/.config/tieline/rules.toml\n\
         run {rules} \"$XDG_CONFIG_HOME/tieline/rules.toml\"\n\
         run mv ~/.config ~/elsewhere\nsay done\n"
    );
    let tieline = with_script(&script);
    let home = tieline.work();
    for settings in ["own", ".config"] {
        let config = home.join(settings);
        let tieline = with_script(&script)
            .with("HOME", home.to_str().unwrap())
            .with("XDG_CONFIG_HOME", config.to_str().unwrap());
        fs::create_dir_all(config.join("tieline")).unwrap();
        let config_file = config.join("tieline/config.toml");
        let path = tieline.path("hostile.script");
        fs::write(&config_file, format!("[agents.demo]\nscript = {path:?}\n")).unwrap();
        let home = home.to_str().unwrap();
        let args = ["run", "--agent", "demo", "--mode", "acceptEdits", "--cwd", home, "go"];
        tieline.run(&args).succeeds();
        assert!(!config.join("tieline/rules.toml").exists(), "{settings}");
        assert!(config_file.exists() && !tieline.work().join("elsewhere").exists());
    }
}

#[test]
fn the_configuration_is_read_by_no_command() {
    let script = "run cat \"$CONFIG\" || true\ncall read_file {\"path\": \"CONFIG\"}\nsay done\n";
    for mode in ["plan", "default", "acceptEdits", "bypassPermissions"] {
        let tieline = Tieline::new();
        let path = tieline.path("hostile.script");
        let file = tieline.path("named.toml");
        let script = script.replace("$CONFIG", file.to_str().unwrap());
        fs::write(&path, script.replace("CONFIG", file.to_str().unwrap())).unwrap();
        let config = format!(
            "[agents.demo]\nscript = {path:?}\n[engine.mcp_servers.x]\nurl = \"http://127.0.0.1:9/\"\n\
             headers = {{ Authorization = \"Bearer PLANTED\" }}\n"
        );
        fs::write(&file, config).unwrap();
        let file = file.to_str().unwrap();
        let args = ["run", "-c", "k", "--config", file, "--agent", "demo", "--mode", mode, "go"];
        tieline.run(&args).succeeds();
        let history = tieline.run(&["export", "k"]).succeeds();
        assert!(!history.out.contains("Bearer PLANTED"), "{mode}: {}", history.out);
    }
}

#[test]
fn a_patch_writes_what_others_obey_only_with_leave() {
    for name in [
        ".claude/settings.json",
        ".cursor/mcp.json",
        ".mcp.json",
        ".vscode/tasks.json",
        "sub/.git/hooks/pre-commit",
        ".envrc",
        "docs/tasks.json",
    ] {
        let tieline = with_script(&format!("write {name} <<END\nevil\nEND\nsay done\n"));
        fs::create_dir(tieline.work().join(".vscode")).unwrap();
        symlink(".vscode", tieline.work().join("docs")).unwrap();
        let args = ["run", "-c", "k", "--mode", "acceptEdits", "go"];
        tieline.run(&args).succeeds();
        assert!(!tieline.work().join(name).exists(), "{name}");
        let history = tieline.run(&["export", "k"]).succeeds();
        let named = name.replace("docs", ".vscode");
        let reason = format!("it changes what other programs run or obey: {named} (");
        assert!(history.out.contains(&reason), "{}", history.out);
        let args = ["run", "--mode", "acceptEdits", "--on-request", "allow", "go"];
        tieline.run(&args).succeeds();
        assert!(tieline.work().join(name).exists(), "{name}");
    }
}

#[test]
fn no_program_that_a_repository_names_runs_for_a_worktree() {
    let tieline = with_script("write new.txt <<END\nx\nEND\nsay done\n");
    let work = tieline.work();
    git(&work, &["init", "-q"]);
    let filters = ["one", "a=b", "branch", "\u{fc}"];
    let attributes: String =
        filters.iter().map(|name| format!("*.{name} filter={name}\n")).collect();
    fs::write(work.join(".gitattributes"), attributes).unwrap();
    for name in filters {
        fs::write(work.join(format!("file.{name}")), "text").unwrap();
    }
    git(&work, &["add", "."]);
    git(&work, &["commit", "-qm", "x"]);
    let ran = tieline.path("ran");
    let evil = tieline.path("evil");
    fs::write(&evil, format!("#!/bin/sh\necho \"$@\" >> {}\ncat\n", ran.display())).unwrap();
    fs::set_permissions(&evil, fs::Permissions::from_mode(0o755)).unwrap();
    let program = evil.to_str().unwrap();
    let of_filter = |name: &str| {
        format!(
            "[filter \"{name}\"]\nsmudge = {program} smudge\nclean = {program} clean\n\
             process = {program} process\nrequired = true\n"
        )
    };
    fs::write(work.join(".git/more"), of_filter("a=b") + &of_filter("\u{fc}")).unwrap();
    fs::write(work.join(".git/branch"), of_filter("branch")).unwrap();
    let mut config = fs::read_to_string(work.join(".git/config")).unwrap();
    config += &of_filter("one");
    config += &format!(
        "[include]\npath = more\n[includeIf \"onbranch:tieline/**\"]\npath = branch\n\
         [core]\nfsmonitor = {program}\nhooksPath = {0}\n[hook \"h\"]\nevent = post-checkout\n\
         command = {program} hook\n",
        tieline.path("hooks").display()
    );
    fs::write(work.join(".git/config"), config).unwrap();
    fs::create_dir(tieline.path("hooks")).unwrap();
    for place in [work.join(".git/hooks"), tieline.path("hooks")] {
        fs::create_dir_all(&place).unwrap();
        for hook in ["post-checkout", "post-index-change", "reference-transaction"] {
            fs::copy(&evil, place.join(hook)).unwrap();
        }
    }
    tieline.run(&["task", "run", "t", "go", "--worktree"]).succeeds();
    tieline.run(&["task", "show", "t"]).succeeds();
    tieline.run(&["task", "remove", "t", "--force"]).succeeds();
    assert!(!ran.exists(), "{}", fs::read_to_string(&ran).unwrap());
    // They would have.
    try_git(&work, &["worktree", "add", "-b", "tieline/u", tieline.path("u").to_str().unwrap()]);
    let ran = fs::read_to_string(&ran).unwrap();
    assert!(ran.contains("process"), "{ran}");
}
