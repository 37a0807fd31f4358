//! Writable roots, temporary directories, hidden paths.

use std::path::{Path, PathBuf};

use tieline_sandbox::{Files, Policy};

use crate::stage::{Said, Stage, User, is_off, users};

#[test]
fn ordinary_work_works() {
    if is_off() {
        return;
    }
    for user in users() {
        let stage = Stage::new(user);
        let script = r#"
            set -e
            mkdir -p a/b/c; echo one > a/b/c/file; echo two >> a/b/c/file; cp -r a copy
            mv copy/b copy/renamed; ln copy/renamed/c/file hard; ln -s hard soft; echo three >> soft
            [ "$(cat hard | wc -l)" = 3 ]
            (umask 077; touch private; mkdir private.d); [ "$(stat -c %a private)" = 600 ]
            [ "$(stat -c %a private.d)" = 700 ]
            chmod 755 hard; touch -d 2001-01-01 hard; mkfifo pipe; truncate -s 100 hard
            ln -s missing dangling; echo made > dangling; [ "$(cat missing)" = made ]
            echo null > /dev/null; echo x > /dev/full && exit 1
            cd a; echo x > ../b; mv ../b ./c; rm c; cd ..
            rm -r a copy private.d; rm private pipe soft dangling missing
            cat /etc/passwd > hard; tar cf t.tar hard; rm hard; tar xf t.tar; [ -s hard ]
            sed -i s/root/toor/ hard; rm hard t.tar
            mktemp --tmpdir=/dev/shm > made; [ -e "$(cat made)" ]; rm made
            [ -z "$(ls -A)" ]
        "#;
        let said = stage.shell(&stage.workspace(), script).succeeds();
        assert!(said.err.contains("error"), "{said:?}");
        if user == User::Self_ {
            // Of others' pipes nobody can open the other end.
            let said =
                stage.shell(&stage.workspace(), "echo out > /dev/stdout; echo err >/dev/stderr");
            assert_eq!((said.out.as_str(), said.err.as_str()), ("out\n", "err\n"));
        }
        let mut git = stage.helper(
            &stage.workspace(),
            &["sh", "-c", "git init -q sub && cd sub && echo x > f && git add f && git -c user.name=a -c user.email=a@b commit -qm x && git status --short"],
        );
        Said::from(git.output().unwrap()).succeeds();
    }
}

#[test]
fn a_deep_tree_can_be_made_and_removed() {
    if is_off() {
        return;
    }
    let stage = Stage::new(users()[0]);
    // Deeper than a path can be long.
    let script = "i=0; while [ $i -lt 500 ]; do mkdir a_rather_long_name || exit 1; \
                  cd a_rather_long_name || exit 2; i=$((i+1)); done; touch end && test -e end";
    stage.run(&stage.workspace(), &["bash", "-c", script]).succeeds();
    stage.shell(&stage.workspace(), "rm -r a_rather_long_name").succeeds();
    assert_eq!(std::fs::read_dir(stage.work()).unwrap().count(), 0);
}

#[test]
fn a_root_may_be_reached_through_a_link() {
    if is_off() {
        return;
    }
    let stage = Stage::new(users()[0]);
    let link = stage.path("link");
    std::os::unix::fs::symlink("work", &link).unwrap();
    let policy = stage.workspace_of(vec![link.clone()]);
    let mut helper = stage.helper(&policy, &["sh", "-c", "touch here; mkdir .git || touch ../no"]);
    Said::from(helper.current_dir(&link).output().unwrap()).fails();
    assert!(stage.path("work/here").exists() && !stage.path("work/.git").exists());
    assert!(!stage.path("no").exists() && link.is_symlink());
}

#[test]
fn a_root_inside_another_is_a_root_of_its_own() {
    if is_off() {
        return;
    }
    for user in users() {
        let stage = Stage::new(user);
        stage.make_dir("work/deep/inner");
        let inner = stage.path("work/deep/inner");
        for roots in [[stage.work(), inner.clone()], [inner.clone(), stage.work()]] {
            let policy = stage.workspace_of(roots.to_vec());
            stage
                .shell(&policy, "touch a deep/b deep/inner/c && rm a deep/b deep/inner/c")
                .succeeds();
            for script in ["mkdir .git", "mkdir deep/inner/.git", "mv deep x", "mv deep/inner x"] {
                stage.shell(&policy, script).fails();
            }
        }
        // Named on purpose, what is protected otherwise is a root.
        stage.make_dir("work/.git/objects");
        let policy = stage.workspace_of(vec![stage.work(), stage.path("work/.git/objects")]);
        stage.shell(&policy, "touch .git/objects/x").succeeds();
        stage.shell(&policy, "touch .git/x").fails();
    }
}

#[test]
fn a_root_that_cannot_be_one_is_refused() {
    if is_off() {
        return;
    }
    let stage = Stage::new(users()[0]);
    let file = stage.make_file("outside/file", "");
    let cases: [(PathBuf, &str); 6] = [
        (stage.path("missing"), "make the directory first"),
        (file, "not a directory"),
        ("/".into(), "full access"),
        ("/proc".into(), "belongs to the system"),
        ("/dev/shm".into(), "belongs to the system"),
        ("relative".into(), "not an absolute path"),
    ];
    for (root, why) in cases {
        let said = stage.shell(&stage.workspace_of(vec![root]), "touch ran").refused();
        assert!(said.contains(why), "{said}");
    }
    assert!(!stage.path("work/ran").exists());
}

#[test]
fn temporary_directories_are_writable_unless_excluded() {
    if is_off() {
        return;
    }
    for user in users() {
        let stage = Stage::new(user);
        let tmpdir = stage.make_dir("tmpdir");
        let marker = format!("/tmp/tieline-sandbox-{}", std::process::id());
        for (exclude_tmp, exclude_tmpdir) in [(true, true), (true, false), (false, true)] {
            let roots = vec![stage.work()];
            let files = Files::WorkspaceWrite { roots, exclude_tmp, exclude_tmpdir };
            let policy = Policy { files, ..Policy::read_only() };
            let try_one = |path: &Path| {
                let script = format!("touch {0} && rm {0}", path.display());
                let mut helper = stage.helper(&policy, &["sh", "-c", &script]);
                Said::from(helper.env("TMPDIR", &tmpdir).output().unwrap()).output.status.success()
            };
            assert_eq!(try_one(marker.as_ref()), !exclude_tmp);
            // The stage lies in /tmp itself.
            assert_eq!(try_one(&tmpdir.join("x")), !exclude_tmpdir || !exclude_tmp);
        }
        // In a read-only sandbox there is none.
        let mut helper = stage.helper(&Policy::read_only(), &["mktemp"]);
        Said::from(helper.env("TMPDIR", &tmpdir).output().unwrap()).fails();
    }
}

#[test]
fn hidden_paths_cannot_be_read() {
    if is_off() {
        return;
    }
    for user in users() {
        let stage = Stage::new(user);
        stage.make_dir("outside/store");
        stage.make_file("outside/store/db", "secret");
        stage.make_file("outside/key", "secret");
        stage.make_file("work/key", "secret");
        std::os::unix::fs::symlink("key", stage.path("outside/link")).unwrap();
        let hidden = ["outside/store", "outside/link", "work/key", "missing"];
        let hidden: Vec<PathBuf> = hidden.iter().map(|name| stage.path(name)).collect();
        for mut policy in [Policy::read_only(), stage.workspace()] {
            policy.hidden = hidden.clone();
            for script in [
                "cat ../outside/key",
                "cat ../outside/link",
                "cat ../outside/store/db",
                "ls ../outside/store",
                "cat key",
                "chmod 644 key; cat key",
                "chmod 755 ../outside/store; ls ../outside/store",
                "cp key copy",
                "mv key away; cat away",
                "ln key away; cat away",
                "rm key",
                "cat /proc/1/root/$PWD/key",
                "umount key; cat key",
            ] {
                let said = stage.shell(&policy, script).fails();
                assert!(!said.out.contains("secret"), "{script}: {said:?}");
            }
        }
        assert_eq!(std::fs::read_to_string(stage.path("work/key")).unwrap(), "secret");
        let mut policy = stage.workspace();
        policy.hidden = vec![stage.path("")];
        assert!(stage.shell(&policy, "true").refused().contains("hidden"));
    }
}

#[test]
fn a_command_begins_where_it_is_started() {
    if is_off() {
        return;
    }
    let stage = Stage::new(User::Self_);
    for policy in [Policy::read_only(), stage.workspace(), Policy::danger_full_access()] {
        let said = stage.shell(&policy, "pwd -P").succeeds();
        assert_eq!(Path::new(said.out.trim()), stage.work().canonicalize().unwrap());
    }
    // In a root the directory is the writable one, also by a relative path.
    stage.shell(&stage.workspace(), "touch ./x").succeeds();
    let mut hidden = Policy::read_only();
    hidden.hidden = vec![stage.work()];
    assert!(stage.shell(&hidden, "true").refused().contains("begin in another"));
}
