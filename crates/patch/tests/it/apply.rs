//! What a patch does to files.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use tieline_patch::{
    Error, Kind, Options, Prepared, Refusal, apply, apply_in_order, from_command, parse,
};

use crate::yard::{QUICK, Yard};

#[track_caller]
fn fails(yard: &Yard, hunks: &str, said: &str) {
    let before = yard.all();
    let err = yard.apply(hunks).unwrap_err();
    assert_eq!(err.to_string(), said);
    assert_eq!(yard.all(), before, "nothing changed");
}

#[test]
fn every_kind_of_hunk_is_carried_out_and_summed_up() {
    let yard = Yard::new().with("m", "old\n").with("d", "x\n").with("from", "1\n2\n");
    let applied = yard
        .apply(
            "*** Delete File: d\n*** Update File: m\n-old\n+new\n*** Add File: deep/er/a\n+hi\n\
             *** Update File: from\n*** Move to: to/there\n-2\n+two",
        )
        .unwrap();
    let said = "Success. Updated the following files:\nA deep/er/a\nM m\nM to/there\nD d\n";
    assert_eq!(applied.summary(), said);
    assert_eq!(yard.read("deep/er/a"), "hi\n");
    assert_eq!((yard.read("m"), yard.read("to/there")), ("new\n".into(), "1\ntwo\n".into()));
    assert!(!yard.path("d").exists() && !yard.path("from").exists());
    let diffs: Vec<&str> = applied.changes.iter().map(|it| it.unified_diff.as_str()).collect();
    assert_eq!(diffs[0], "@@ -1 +0,0 @@\n-x\n");
    assert_eq!(diffs[1], "@@ -1 +1 @@\n-old\n+new\n");
    assert_eq!(diffs[2], "@@ -0,0 +1 @@\n+hi\n");
    assert_eq!(diffs[3], "@@ -1,2 +1,2 @@\n 1\n-2\n+two\n");
    let Kind::Move { to, replaced: None } = &applied.changes[3].kind else { panic!() };
    assert_eq!(to.path, fs::canonicalize(yard.work()).unwrap().join("to/there"));
}

#[test]
fn hunks_see_what_the_ones_before_them_did() {
    let yard = Yard::new().with("f", "a\nb\n");
    let said = |hunks| yard.apply(hunks).unwrap().summary();
    let twice = said("*** Update File: f\n-b\n+X\n*** Update File: ./f\n-X\n+Y");
    assert_eq!(twice, "Success. Updated the following files:\nM f\nM ./f\n");
    assert_eq!(yard.read("f"), "a\nY\n");
    said("*** Add File: x\n+1\n*** Update File: x\n-1\n+2\n*** Update File: x\n*** Move to: y\n 2");
    assert!(!yard.path("x").exists());
    assert_eq!(yard.read("y"), "2\n");
    said("*** Delete File: y\n*** Add File: y\n+3");
    assert_eq!(yard.read("y"), "3\n");
    said("*** Add File: z\n+1\n*** Delete File: z");
    assert!(!yard.path("z").exists());
    fails(&yard, "*** Delete File: y\n*** Delete File: y", "Failed to delete file y");
}

#[test]
fn what_does_not_apply_changes_nothing_and_says_why() {
    let yard = Yard::new().with("f", "a\nb\n").with("bin", b"\xff\n").with("dir/x", "");
    let add = "*** Add File: new/file\n+1\n";
    let tries = [
        ("*** Update File: f\n-q", "Failed to find expected lines in f:\nq"),
        ("*** Update File: f\n@@ zz\n-a", "Failed to find context 'zz' in f"),
        ("*** Delete File: nope", "Failed to delete file nope"),
        ("*** Delete File: dir", "Failed to delete file dir"),
        ("*** Add File: dir\n+1", "Failed to write file dir"),
        ("*** Add File: f/x\n+1", "Failed to write file f/x"),
        (
            "*** Update File: nope\n-a",
            "Failed to read file to update nope: No such file or directory (os error 2)",
        ),
        (
            "*** Update File: dir\n-a",
            "Failed to read file to update dir: Is a directory (os error 21)",
        ),
        (
            "*** Update File: bin\n+a",
            "Failed to read file to update bin: invalid utf-8 sequence of 1 bytes from index 0",
        ),
        (
            "*** Delete File: ../outside/secret",
            "patch rejected: ../outside/secret is outside of \
         the directories that may be written",
        ),
        ("*** Update File: f\n*** Move to: .git/x\n-a", "patch rejected: .git/x is protected"),
    ];
    for (hunk, said) in tries {
        fails(&yard, hunk, said);
        fails(&yard, &format!("{add}{hunk}"), said);
        fails(&yard, &format!("*** Delete File: f\n*** Add File: f\n+a\n+b\n{hunk}"), said);
    }
    fails(
        &yard,
        "",
        "Invalid patch hunk on line 2: '' is not a valid hunk header. Valid hunk \
        headers: '*** Add File: {path}', '*** Delete File: {path}', '*** Update File: {path}'",
    );
    let empty = parse("*** Begin Patch\n*** End Patch").unwrap();
    let err = apply(&empty, &yard.roots(), QUICK).unwrap_err();
    assert_eq!(err.to_string(), "No files were modified.");
}

#[test]
fn a_refused_path_is_the_first_thing_to_be_said() {
    let yard = Yard::new();
    // The first hunk would fail as well, if it were looked at.
    let err = yard.apply("*** Update File: nope\n-a\n*** Add File: .git/x\n+1").unwrap_err();
    assert!(matches!(err, Error::Refused { why: Refusal::Protected, .. }), "{err}");
}

#[test]
fn in_order_what_was_done_before_an_error_stays() {
    let yard = Yard::new().with("f", "a\n");
    let text = "*** Begin Patch\n*** Add File: x\n+1\n*** Update File: x\n-1\n+2\n\
                *** Update File: f\n-q\n*** Delete File: f\n*** End Patch";
    let patch = parse(text).unwrap();
    let (applied, done) = apply_in_order(&patch, &yard.roots(), QUICK);
    assert_eq!(done.unwrap_err().to_string(), "Failed to find expected lines in f:\nq");
    assert_eq!(applied.changes.len(), 2);
    assert_eq!((yard.read("x"), yard.read("f")), ("2\n".into(), "a\n".into()));
    applied.undo(&yard.roots()).unwrap();
    assert!(!yard.path("x").exists());
}

#[test]
fn modes_stay_and_new_files_have_the_users() {
    let yard = Yard::new().with("script", "a\n").with("private", "a\n").with("plain", "");
    let set = |name, mode| {
        fs::set_permissions(yard.path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    let mode = |name| fs::metadata(yard.path(name)).unwrap().permissions().mode() & 0o7777;
    set("script", 0o755);
    set("private", 0o600);
    yard.apply(
        "*** Update File: script\n-a\n+b\n*** Update File: private\n*** Move to: moved\n-a\n+b\n\
         *** Add File: new\n+1\n*** Add File: d/new\n+1",
    )
    .unwrap();
    assert_eq!((mode("script"), mode("moved")), (0o755, 0o600));
    assert_eq!((mode("new"), mode("d/new")), (mode("plain"), mode("plain")));
    set("script", 0o4755);
    yard.apply("*** Update File: script\n-b\n+c").unwrap();
    assert_eq!(mode("script"), 0o755, "another content is not to run as somebody else");
}

#[test]
fn a_link_inside_is_followed_and_stays_a_link() {
    let yard = Yard::new().with("real/f", "a\n");
    symlink("real/f", yard.path("link")).unwrap();
    symlink("real", yard.path("dir")).unwrap();
    yard.apply("*** Update File: link\n-a\n+b\n*** Update File: dir/f\n-b\n+c").unwrap();
    assert!(yard.path("link").is_symlink());
    assert_eq!(yard.read("real/f"), "c\n");
    yard.apply("*** Add File: link\n+d\n*** Add File: dir/new\n+1").unwrap();
    assert_eq!((yard.read("real/f"), yard.read("real/new")), ("d\n".into(), "1\n".into()));
    let link = "patch rejected: link is a link; name the file it leads to, or change the link with \
                a command";
    fails(&yard, "*** Delete File: link", link);
    fails(&yard, "*** Update File: link\n*** Move to: x\n d", link);
    yard.apply("*** Delete File: dir/new").unwrap();
    assert!(!yard.path("real/new").exists());
}

#[test]
fn another_name_of_a_file_outside_is_not_written_through() {
    let yard = Yard::new();
    fs::hard_link(yard.outside().join("secret"), yard.path("hard")).unwrap();
    yard.apply("*** Update File: hard\n-hunter2\n+changed").unwrap();
    assert_eq!(yard.read("hard"), "changed\n");
    assert_eq!(fs::read_to_string(yard.outside().join("secret")).unwrap(), "hunter2\n");
}

#[test]
fn what_is_no_file_is_not_touched() {
    let yard = Yard::new();
    let kind = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, yard.path("pipe"), kind, mode, 0).unwrap();
    for hunk in ["*** Update File: pipe\n-a", "*** Add File: pipe\n+a", "*** Delete File: pipe"] {
        let err = yard.apply(hunk).unwrap_err();
        assert_eq!(err.to_string(), "patch rejected: pipe is not a file");
    }
}

#[test]
fn moving_a_file_onto_itself_or_another_is_safe() {
    let yard = Yard::new().with("f", "a\n").with("g", "g\n");
    yard.apply("*** Update File: f\n*** Move to: ./f\n-a\n+b").unwrap();
    assert_eq!(yard.read("f"), "b\n");
    let applied = yard.apply("*** Update File: f\n*** Move to: g\n-b\n+c").unwrap();
    assert_eq!(yard.read("g"), "c\n");
    assert!(!yard.path("f").exists());
    let Kind::Move { replaced: Some(old), .. } = &applied.changes[0].kind else { panic!() };
    assert_eq!(old.text(), Some("g\n"));
    applied.undo(&yard.roots()).unwrap();
    assert_eq!((yard.read("f"), yard.read("g")), ("b\n".into(), "g\n".into()));
}

#[test]
fn a_file_that_stays_the_same_is_not_written() {
    let yard = Yard::new().with("f", "a\n");
    let inode = || fs::metadata(yard.path("f")).unwrap().ino();
    let before = inode();
    let applied = yard.apply("*** Update File: f\n-a\n+a").unwrap();
    assert_eq!(applied.summary(), "Success. Updated the following files:\nM f\n");
    assert_eq!((inode(), applied.changes[0].unified_diff.as_str()), (before, ""));
    assert!(applied.undo.files.is_empty());
}

#[test]
fn what_changed_since_it_was_read_is_not_overwritten() {
    let yard = Yard::new().with("f", "a\n");
    let (roots, text) =
        (yard.roots(), "*** Begin Patch\n*** Update File: f\n-a\n+b\n*** End Patch");
    let prepared = Prepared::new(&parse(text).unwrap(), &roots, QUICK).unwrap();
    assert_eq!(prepared.changes()[0].unified_diff, "@@ -1 +1 @@\n-a\n+b\n");
    fs::write(yard.path("f"), "a user's edit\n").unwrap();
    let before = yard.all();
    let err = prepared.commit().unwrap_err();
    assert!(matches!(err, Error::Changed { .. }), "{err}");
    assert_eq!(yard.all(), before);
}

#[test]
fn files_have_a_largest_size() {
    let yard = Yard::new().with("big", "x\n".repeat(1 << 20));
    let err = yard.apply("*** Update File: big\n+a").unwrap_err();
    assert_eq!(err.to_string(), "Failed to read file to update big: File too large (os error 27)");
}

#[test]
fn by_default_contents_are_on_disk_before_they_count() {
    let yard = Yard::new().with("f", "a\n");
    let patch = parse("*** Begin Patch\n*** Update File: f\n-a\n+b\n*** End Patch").unwrap();
    assert!(Options::default().is_synced);
    apply(&patch, &yard.roots(), Options::default()).unwrap();
    assert_eq!(yard.read("f"), "b\n");
}

/// What Codex wrote and said for the calls of a recorded conversation.
#[test]
fn recorded_patches_give_the_recorded_diffs_and_words() {
    let yard = Yard::new();
    let read = |text: &str| -> Vec<serde_json::Value> {
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let calls = read(include_str!("../../fixtures/codex-proto-0.42.0-calls.jsonl"));
    let events = read(include_str!("../../fixtures/codex-proto-0.42.0-events.jsonl"));
    assert_eq!((calls.len(), events.len()), (2, 4));
    for (call, said) in calls.iter().zip(events.chunks(2)) {
        let words: Vec<String> = serde_json::from_value(call["command"].clone()).unwrap();
        let found = from_command(&words).unwrap();
        let applied = apply(&parse(found.patch).unwrap(), &yard.roots(), QUICK).unwrap();
        let change = &said[0]["msg"]["changes"]["/workspace/notes.txt"];
        match applied.changes[0].kind {
            Kind::Add => {
                let content = applied.changes[0].new.as_ref().unwrap().text().unwrap();
                assert_eq!(change["add"]["content"], content);
            }
            _ => assert_eq!(change["update"]["unified_diff"], applied.changes[0].unified_diff),
        }
        assert_eq!(said[1]["msg"]["stdout"], applied.summary());
    }
}
