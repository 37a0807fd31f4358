use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use expect_test::{Expect, expect};
use tempfile::TempDir;
use tieline_wire::markers;

use super::*;

/// A directory that is changed and measured.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        Place(TempDir::new().unwrap())
    }

    /// Where git rules: `ignore` looks for no more than the directory.
    fn with_git() -> Place {
        let place = Place::new();
        fs::create_dir(place.at(".git")).unwrap();
        place
    }

    fn root(&self) -> &Path {
        self.0.path()
    }

    fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root().join(path)
    }

    fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> &Place {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    fn delete(&self, path: &str) -> &Place {
        fs::remove_file(self.at(path)).unwrap();
        self
    }

    fn rename(&self, from: &str, to: &str) -> &Place {
        fs::create_dir_all(self.at(to).parent().unwrap()).unwrap();
        fs::rename(self.at(from), self.at(to)).unwrap();
        self
    }

    fn touch(&self, path: &str, seconds: u64) -> &Place {
        let file = fs::File::options().append(true).open(self.at(path)).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
        self
    }

    fn take(&self) -> Baseline {
        Baseline::take(self.root()).unwrap()
    }

    fn measure(&self, baseline: &Baseline) -> Measured {
        baseline.measure(self.root()).unwrap()
    }

    #[track_caller]
    fn check(&self, baseline: &Baseline, expected: Expect) {
        let measured = self.measure(baseline);
        expected.assert_eq(&told(&measured.files));
        assert!(!measured.is_partial, "partial");
    }
}

fn told(files: &[Changed]) -> String {
    let told = files.iter().map(|file| match &file.change {
        Change::Created => format!("+ {:?}\n", file.path),
        Change::Modified => format!("~ {:?}\n", file.path),
        Change::Deleted => format!("- {:?}\n", file.path),
        Change::Renamed { from } => format!("{from:?} -> {:?}\n", file.path),
    });
    told.collect()
}

#[test]
fn nothing_changes_by_itself() {
    let place = Place::with_git();
    place.write("a.txt", "a").write("src/b.rs", "b").write("empty", "").write(".env", "x");
    let baseline = place.take();
    assert_eq!(baseline.n_files(), 4);
    place.check(&baseline, expect![""]);
}

#[test]
fn created_modified_and_deleted_files_are_told_apart() {
    let place = Place::new();
    place.write("a", "one").write("b", "one").write("c/d", "text");
    let baseline = place.take();
    place.write("a", "two").delete("c/d").write("new/file", "n").write(".hidden", "h");
    place.check(
        &baseline,
        expect![[r#"
            + ".hidden"
            ~ "a"
            - "c/d"
            + "new/file"
        "#]],
    );
}

#[test]
fn a_moved_file_is_renamed_even_if_it_is_empty_or_large() {
    let place = Place::new();
    place.write("a", "text").write("empty", "").write("large", vec![b'x'; 300 * 1024]);
    let baseline = place.take();
    place.rename("a", "b/a").rename("empty", "void").rename("large", "larger");
    place.check(
        &baseline,
        expect![[r#"
            "a" -> "b/a"
            "large" -> "larger"
            "empty" -> "void"
        "#]],
    );
}

#[test]
fn a_moved_directory_is_many_renamed_files() {
    let place = Place::new();
    place.write("src/a", "same").write("src/b", "same").write("src/deep/c", "same");
    let baseline = place.take();
    place.rename("src", "lib");
    place.check(
        &baseline,
        expect![[r#"
            "src/a" -> "lib/a"
            "src/b" -> "lib/b"
            "src/deep/c" -> "lib/deep/c"
        "#]],
    );
}

#[test]
fn a_copied_and_deleted_file_is_renamed() {
    let place = Place::new();
    place.write("one/a", "same").write("one/b", "same").write("empty", "");
    let baseline = place.take();
    place.write("two/b", "same").write("two/c", "same").write("void", "");
    place.delete("one/a").delete("one/b").delete("empty");
    place.check(
        &baseline,
        expect![[r#"
            - "empty"
            "one/b" -> "two/b"
            "one/a" -> "two/c"
            + "void"
        "#]],
    );
}

#[test]
fn a_copy_beside_its_original_is_created() {
    let place = Place::new();
    place.write("a", "same");
    let baseline = place.take();
    place.write("b", "same");
    place.check(
        &baseline,
        expect![[r#"
        + "b"
    "#]],
    );
}

#[test]
fn a_touched_file_and_another_mode_are_no_change() {
    let place = Place::new();
    place.write("a", "a").write("b", "b").write("same", "same");
    let baseline = place.take();
    place.touch("a", 1_000_000_000).delete("same").write("same", "same");
    fs::set_permissions(place.at("b"), fs::Permissions::from_mode(0o755)).unwrap();
    place.check(&baseline, expect![""]);
}

#[test]
fn a_change_that_hides_its_time_is_found_by_content() {
    let place = Place::new();
    place.write("a", "one").touch("a", 1_000_000_000);
    let baseline = place.take();
    place.write("a", "two").touch("a", 1_000_000_000);
    place.check(
        &baseline,
        expect![[r#"
        ~ "a"
    "#]],
    );
}

#[test]
fn a_large_file_is_judged_by_size_and_time() {
    let place = Place::new();
    for name in ["grown", "kept", "touched"] {
        place.write(name, vec![b'x'; 300 * 1024]).touch(name, 1_000_000_000);
    }
    let baseline = place.take();
    assert!(baseline.files.values().all(|stamp| stamp.digest.is_none()));
    place.write("grown", vec![b'x'; 300 * 1024 + 1]).touch("grown", 1_000_000_000);
    place.touch("touched", 1_000_000_001);
    place.check(
        &baseline,
        expect![[r#"
            ~ "grown"
            ~ "touched"
        "#]],
    );
}

#[test]
fn ignored_files_are_not_looked_at() {
    let place = Place::with_git();
    place.write(".gitignore", "target/\n*.log\n!keep.log\n").write("src/.gitignore", "/gen\n");
    place.write(".git/config", "").write(".git/info/exclude", "private\n");
    let baseline = place.take();
    place.write("target/a", "a").write("x.log", "x").write("src/gen/b", "b").write("private", "p");
    place.write("keep.log", "k").write("gen/c", "c").write(".git/HEAD", "ref: refs/heads/main");
    place.check(
        &baseline,
        expect![[r#"
            + "gen/c"
            + "keep.log"
        "#]],
    );
}

#[test]
fn without_a_repository_there_are_no_rules() {
    let place = Place::new();
    place.write(".gitignore", "*.log\n");
    let baseline = place.take();
    place.write("x.log", "x");
    place.check(
        &baseline,
        expect![[r#"
        + "x.log"
    "#]],
    );
}

#[test]
fn files_that_become_ignored_are_not_deleted_and_are_still_looked_at() {
    let place = Place::with_git();
    place.write("data/a", "a").write("data/b", "b").write("data/c", "c");
    let baseline = place.take();
    place.write(".gitignore", "data/\n").write("data/b", "other").delete("data/c");
    place.check(
        &baseline,
        expect![[r#"
            + ".gitignore"
            ~ "data/b"
            - "data/c"
        "#]],
    );
}

#[test]
fn files_that_were_ignored_before_are_not_created() {
    let place = Place::with_git();
    place.write(".gitignore", "data/\n").write("data/a", "a").write("data/b", "b");
    let mut baseline = place.take();
    // As if the files were there for long: the time of their arrival cannot be set.
    baseline.taken = now() + 10 * CLOCK_MARGIN;
    place.delete(".gitignore");
    place.check(
        &baseline,
        expect![[r#"
        - ".gitignore"
    "#]],
    );

    baseline.taken = now() - 10 * CLOCK_MARGIN;
    place.check(
        &baseline,
        expect![[r#"
            - ".gitignore"
            + "data/a"
            + "data/b"
        "#]],
    );
}

#[test]
fn a_repository_around_that_ignores_the_whole_root_has_no_say() {
    let outer = Place::with_git();
    outer.write(".gitignore", "*\n").write("project/a", "a").write("other/a", "a");
    let root = outer.at("project");
    let baseline = Baseline::take(&root).unwrap();
    assert_eq!(baseline.n_files(), 1);
    outer.write("project/b", "b");
    assert_eq!(told(&baseline.measure(&root).unwrap().files), "+ \"b\"\n");
}

#[test]
fn rules_above_the_root_count() {
    let outer = Place::with_git();
    outer.write(".gitignore", "*.log\n/project/out\n").write("project/a", "a");
    let root = outer.at("project");
    let baseline = Baseline::take(&root).unwrap();
    outer.write("project/b", "b").write("project/x.log", "x").write("project/out/c", "c");
    assert_eq!(told(&baseline.measure(&root).unwrap().files), "+ \"b\"\n");
}

#[test]
fn a_repository_within_has_its_own_rules_and_a_private_directory() {
    let place = Place::with_git();
    place.write(".gitignore", "*.log\n").write("sub/.git/HEAD", "x").write("sub/a", "a");
    place.write("tree/.git", "gitdir: elsewhere\n");
    let baseline = place.take();
    place.write("sub/.git/index", "i").write("sub/a", "b").write("sub/x.log", "x");
    place.write("tree/.git", "gitdir: nowhere\n").write("x.log", "x");
    place.check(
        &baseline,
        expect![[r#"
            ~ "sub/a"
            + "sub/x.log"
        "#]],
    );
}

#[test]
fn links_are_files_that_say_where_they_lead() {
    let place = Place::new();
    let elsewhere = Place::new();
    elsewhere.write("secret", "s");
    place.write("a", "a").write("b", "b");
    symlink("a", place.at("link")).unwrap();
    symlink("a", place.at("replaced")).unwrap();
    symlink("nowhere", place.at("broken")).unwrap();
    symlink(elsewhere.root(), place.at("out")).unwrap();
    symlink("..", place.at("loop")).unwrap();
    let baseline = place.take();
    assert_eq!(baseline.n_files(), 7);
    elsewhere.write("secret", "other");
    place.delete("link").delete("replaced").write("replaced", "a");
    symlink("b", place.at("link")).unwrap();
    place.rename("broken", "still-broken");
    place.check(
        &baseline,
        expect![[r#"
            ~ "link"
            ~ "replaced"
            "broken" -> "still-broken"
        "#]],
    );
}

#[test]
fn a_file_may_become_a_directory_and_back() {
    let place = Place::new();
    place.write("a", "text a").write("b/c", "text c");
    let baseline = place.take();
    place.delete("a").write("a/inner", "inner");
    fs::remove_dir_all(place.at("b")).unwrap();
    place.write("b", "outer");
    place.check(
        &baseline,
        expect![[r#"
            - "a"
            + "a/inner"
            + "b"
            - "b/c"
        "#]],
    );
}

#[test]
#[cfg(target_os = "linux")]
fn a_pipe_is_not_waited_for() {
    let place = Place::new();
    place.write("a", "text");
    let baseline = place.take();
    place.delete("a");
    for name in ["a", "b"] {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, place.at(name), rustix::fs::FileType::Fifo, mode, 0)
            .unwrap();
    }
    place.check(
        &baseline,
        expect![[r#"
        - "a"
    "#]],
    );
    assert_eq!(place.take().n_files(), 0);
}

/// The superuser can read it all the same; the sentence holds for both.
#[test]
fn a_file_that_cannot_be_read_is_judged_by_size_and_time() {
    let place = Place::new();
    place.write("a", "a").write("b", "b");
    for name in ["a", "b"] {
        fs::set_permissions(place.at(name), fs::Permissions::from_mode(0o200)).unwrap();
    }
    let baseline = place.take();
    assert_eq!(baseline.n_files(), 2);
    place.check(&baseline, expect![""]);
    place.write("b", "longer");
    place.check(
        &baseline,
        expect![[r#"
        ~ "b"
    "#]],
    );
}

/// The memory of a process is a regular file that nobody can read from its beginning.
#[test]
#[cfg(target_os = "linux")]
fn a_read_that_fails_is_no_digest() {
    let (tree, path) = (Tree::open(Path::new("/proc/self")).unwrap(), Path::new("mem"));
    let seen = tree.look(path).unwrap();
    assert_eq!(seen.sort, Sort::File);
    assert_eq!(Reader::bounded().digest(&tree, path, &seen), None);
}

/// Other systems refuse names that are no text.
#[test]
#[cfg(target_os = "linux")]
fn names_may_be_any_text_or_none() {
    let place = Place::new();
    let odd = PathBuf::from(OsStr::from_bytes(b"dir\xff/\xe9t\xe9"));
    place.write("größe/ñ 名", "a").write("größer", "b").write("two\nlines", "c").write(&odd, "d");
    let baseline = place.take();
    let stored = serde_json::to_string(&baseline).unwrap();
    assert_eq!(serde_json::from_str::<Baseline>(&stored).unwrap(), baseline);
    place.check(&baseline, expect![""]);
    place.write("größe/ñ 名", "x").delete("two\nlines").write(&odd, "y").write("größer", "z");
    place.check(
        &baseline,
        expect![[r#"
            ~ "dir�/�t�"
            ~ "größe/ñ 名"
            ~ "größer"
            - "two\nlines"
        "#]],
    );
}

#[test]
fn more_files_than_are_counted_make_the_measure_partial() {
    let place = Place::new();
    for name in ["a", "b/c", "b.d", "e", "f"] {
        place.write(name, name);
    }
    let baseline = Baseline::take_at_most(place.root(), 3).unwrap();
    assert!(baseline.is_cut());
    assert_eq!(baseline.n_files(), 3);
    assert!(!Baseline::take_at_most(place.root(), 5).unwrap().is_cut());
    // What is behind the cut was there before, for all we know.
    place.write("aa", "new").write("g", "new").delete("b/c");
    let measured = place.measure(&baseline);
    assert!(measured.is_partial);
    assert_eq!(told(&measured.files), "+ \"aa\"\n- \"b/c\"\n");
}

#[test]
fn a_directory_that_cannot_be_listed_makes_the_measure_partial() {
    let place = Place::new();
    place.write("a", "a").write("closed/b", "b");
    let baseline = place.take();
    let mode = |mode| fs::set_permissions(place.at("closed"), fs::Permissions::from_mode(mode));
    mode(0o000).unwrap();
    let measured = place.measure(&baseline);
    let closed = place.take();
    mode(0o700).unwrap();
    // Nothing is closed to the superuser.
    let is_root = rustix::process::geteuid().is_root();
    assert_eq!((measured.is_partial, closed.n_skipped), (!is_root, u64::from(!is_root)));
    assert_eq!(told(&measured.files), "");

    let baseline = Baseline { n_skipped: 1, ..baseline };
    assert!(place.measure(&baseline).is_partial);
}

#[test]
fn a_root_that_is_gone_or_a_file_is_an_error() {
    let place = Place::new();
    place.write("a", "a");
    let baseline = place.take();
    assert!(Baseline::take(&place.at("a")).is_err());
    assert!(baseline.measure(&place.at("nowhere")).is_err());
}

#[test]
fn a_link_to_the_root_is_the_root() {
    let place = Place::new();
    place.write("real/a", "a");
    symlink("real", place.at("link")).unwrap();
    let baseline = Baseline::take(&place.at("link")).unwrap();
    assert_eq!(baseline.n_files(), 1);
    place.write("real/b", "b");
    assert_eq!(told(&baseline.measure(&place.at("link")).unwrap().files), "+ \"b\"\n");
}

#[test]
fn five_thousand_files_are_small_and_survive_being_stored() {
    let place = Place::with_git();
    for n in 0..5000 {
        let path = format!("crates/part-{:02}/src/module_{}/file_{n}.rs", n / 100, n % 7);
        place.write(path, format!("content {n}"));
    }
    let baseline = place.take();
    assert_eq!(baseline.n_files(), 5000);
    let stored = serde_json::to_string(&baseline).unwrap();
    assert!(stored.len() < 5000 * 85, "{} bytes", stored.len());
    let baseline: Baseline = serde_json::from_str(&stored).unwrap();
    place.check(&baseline, expect![""]);
    place
        .rename("crates/part-07", "crates/seven")
        .delete("crates/part-08/src/module_2/file_800.rs");
    let files = place.measure(&baseline).files;
    let is_renamed = |file: &&Changed| matches!(file.change, Change::Renamed { .. });
    assert_eq!((files.len(), files.iter().filter(is_renamed).count()), (101, 100));
}

#[test]
fn a_stored_baseline_that_makes_no_sense_is_refused() {
    let broken = r#"{"taken":1,"in_git":false,"is_cut":false,"n_skipped":0,
        "files":[[4,"a",1,1,1,null]]}"#;
    assert!(serde_json::from_str::<Baseline>(broken).is_err());
    let short = broken.replace("4,", "0,").replace("null", "\"AAAA\"");
    assert!(serde_json::from_str::<Baseline>(&short).is_err());
}

fn said(path: &str, change: markers::Change) -> markers::FileChange {
    markers::FileChange { path: path.to_owned(), change }
}

fn renamed(from: &str) -> markers::Change {
    markers::Change::Renamed { from: from.to_owned() }
}

#[track_caller]
fn check_claims(
    place: &Place,
    baseline: &Baseline,
    claimed: &[markers::FileChange],
    expected: Expect,
) {
    let files = place.measure(baseline).files;
    let sentences = claims(&files, claimed, place.root());
    assert!(sentences.iter().all(|sentence| !sentence.contains(char::is_control)));
    expected.assert_eq(&sentences.iter().map(|it| format!("{it}\n")).collect::<String>());
}

/// One file of each kind, and one that was there and stays.
fn changed_place() -> (Place, Baseline) {
    let place = Place::with_git();
    place.write("kept", "k").write("edited", "e").write("deleted", "d").write("old", "the old one");
    place.write(".gitignore", "*.log\n");
    let baseline = place.take();
    place.write("edited", "other").delete("deleted").rename("old", "new").write("src/a.rs", "a");
    place.write("x.log", "x");
    (place, baseline)
}

#[test]
fn true_claims_need_no_words() {
    use markers::Change::{Created, Deleted, Modified, Unknown};
    let (place, baseline) = changed_place();
    let absolute = place.at("src/a.rs").to_str().unwrap().to_owned();
    let claimed = [
        said(&absolute, Created),
        said("./edited", Modified),
        said("src/../deleted", Deleted),
        said("new", renamed("old")),
        said("x.log", Modified),
        said("y.log", Deleted),
    ];
    check_claims(&place, &baseline, &claimed, expect![""]);
    let loose = [
        said("src/", Created),
        said("`edited` - reads better now", Unknown),
        said("deleted", Unknown),
        said("new", Created),
        said("old", Deleted),
    ];
    check_claims(&place, &baseline, &loose, expect![""]);
    check_claims(&place, &baseline, &[said(".", Unknown)], expect![""]);
}

#[test]
fn claims_that_are_not_true_are_named() {
    use markers::Change::{Created, Deleted, Modified, Unknown};
    let (place, baseline) = changed_place();
    let claimed = [
        said("src/b.rs", Created),
        said("edited", Created),
        said(".gitignore", Created),
        said("kept", Modified),
        said("deleted", Modified),
        said("new", Deleted),
        said("src/a.rs", renamed("kept")),
        said("nothing (really)", Unknown),
        said("gone.log", Created),
        said("../etc/passwd", Modified),
    ];
    check_claims(
        &place,
        &baseline,
        &claimed,
        expect![[r#"
            said it changed ../etc/passwd, which is outside its directory
            said it created .gitignore, which was there before and has not changed
            said it modified deleted, which is not there
            said it created edited, which was there before
            said it created gone.log, which is not there
            said it deleted new, which is still there
            said it changed nothing (really), which is not there
            said it renamed kept to src/a.rs, but kept is still there
            said it created src/b.rs, which is not there
        "#]],
    );
    check_claims(
        &place,
        &baseline,
        &[said("kept", Modified), said("kept", Unknown), said("src", Created)],
        expect![[r#"
            said it changed kept, which has not changed
            deleted deleted and did not say so
            modified edited and did not say so
            renamed old to new and did not say so
        "#]],
    );
}

#[test]
fn the_last_claim_about_a_file_counts() {
    use markers::Change::{Created, Deleted, Modified};
    let (place, baseline) = changed_place();
    let claimed = [
        said("edited", Modified),
        said("scratch", Created),
        said("scratch", Deleted),
        said("deleted", Modified),
        said("deleted", Deleted),
        said("src/a.rs", Created),
        said("src/a.rs", Modified),
        said("old", Modified),
        said("new", renamed("old")),
    ];
    check_claims(&place, &baseline, &claimed, expect![""]);
}

#[test]
fn who_claims_nothing_hides_nothing() {
    let (place, baseline) = changed_place();
    check_claims(&place, &baseline, &[], expect![""]);
}

#[test]
fn a_path_cannot_break_the_line_it_is_in() {
    let place = Place::new();
    let baseline = place.take();
    place.write("two\nlines", "x").write("\u{1b}[31mred", "x").write("\u{202e}txt.exe", "x");
    place.write("ñ", "x");
    let claimed = [said("a\r\nb", markers::Change::Created)];
    check_claims(
        &place,
        &baseline,
        &claimed,
        expect![[r#"
            said it created a\r\nb, which is not there
            created \u{1b}[31mred and did not say so
            created two\nlines and did not say so
            created ñ and did not say so
            created \u{202e}txt.exe and did not say so
        "#]],
    );
}

#[test]
fn many_changes_without_a_word_are_counted() {
    let place = Place::new();
    let baseline = place.take();
    for n in 0..30 {
        place.write(format!("file-{n:02}"), "x");
    }
    let files = place.measure(&baseline).files;
    let claimed = [said("file-00", markers::Change::Created)];
    let sentences = claims(&files, &claimed, place.root());
    assert_eq!(sentences.len(), 21);
    assert_eq!(sentences[0], "created file-01 and did not say so");
    assert_eq!(sentences[20], "changed 9 more files and did not say so");
}
