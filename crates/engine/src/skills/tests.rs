use std::fs;

use proptest::prelude::*;

use super::*;

struct Fixture {
    dir: tempfile::TempDir,
    places: Places,
}

impl Fixture {
    /// A home, a configuration, a machine's directory, and a project `p` in one directory.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let places = Places {
            home: Some(dir.path().join("home")),
            config: Some(dir.path().join("config")),
            admin: dir.path().join("etc"),
            ..Places::default()
        };
        let fixture = Self { dir, places };
        fixture.write("p/.git/HEAD", "");
        fixture
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn skill(&self, dir: &str, name: &str) {
        self.write(
            &format!("{dir}/SKILL.md"),
            &format!("---\nname: {name}\ndescription: Does {name}\n---\nBody of {name}.\n"),
        );
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(path)
    }

    fn discover(&self, cwd: &str) -> SkillsAt {
        discover(&self.dir.path().join(cwd), &self.places)
    }

    fn listed(&self, cwd: &str) -> String {
        let found = self.discover(cwd);
        let names = found.skills.iter().map(|skill| format!("{}:{}", skill.scope, skill.name));
        names.collect::<Vec<_>>().join(" ")
    }
}

#[test]
fn every_place_is_looked_at() {
    let it = Fixture::new();
    it.skill("etc/z", "admin");
    it.skill("home/.agents/skills/b", "user-b");
    it.skill("config/skills/a", "user-a");
    it.skill("p/.agents/skills/r", "repo-r");
    it.skill("p/.codex/skills/q", "repo-q");
    it.skill("p/.tieline/skills/p", "repo-p");
    it.skill("p/sub/.agents/skills/s", "repo-s");
    it.skill("p/other/.agents/skills/o", "not this");
    it.skill("p/skills/n", "nor this");
    it.skill("p/.agents/skills/.hidden", "nor this");
    assert_eq!(
        it.listed("p/sub"),
        "repo:repo-p repo:repo-q repo:repo-r repo:repo-s user:user-a user:user-b admin:admin"
    );
    assert_eq!(it.discover("p/sub").errors, []);
    assert_eq!(discover(Path::new("/nowhere"), &Places::default()).skills, []);
}

#[test]
fn the_head_of_a_file_is_yaml() {
    let parse = |text: &str| matter::parse(text).map(|it| (it.name, it.description));
    let ok = |name: &str, description: &str| Ok((name.to_owned(), description.to_owned()));
    let err = |words: &str| Err(words.to_owned());
    for (text, expected) in [
        ("---\nname: a\ndescription: b\n---\n", ok("a", "b")),
        ("---\r\nname: a\r\ndescription: b\r\n---\r\nbody", ok("a", "b")),
        ("\u{feff}---\nname: a\ndescription: b\n---", ok("a", "b")),
        ("---\nname: 'a'\ndescription: \"b: \\\"c\\\"\"\n---\n", ok("a", "b: \"c\"")),
        ("---\nname: a\ndescription: >\n  b\n  c\n---\n", ok("a", "b c")),
        ("---\nname: a\ndescription: |\n  b\n  c\n---\n", ok("a", "b c")),
        ("---\nname: a\ndescription: b # not this\n---\n", ok("a", "b")),
        ("---\nname: a\ndescription: b\n  c\n---\n", ok("a", "b c")),
        (
            "---\nname: a\ndescription: b\nallowed-tools: [x, y]\nlicense: {a: 1}\n---\n",
            ok("a", "b"),
        ),
        ("", err("missing YAML frontmatter delimited by ---")),
        ("name: a\n", err("missing YAML frontmatter delimited by ---")),
        ("---\nname: a\n", err("missing YAML frontmatter delimited by ---")),
        ("\n---\nname: a\n---\n", err("missing YAML frontmatter delimited by ---")),
        ("---\nname: a\n---\n", err("missing field `description`")),
        ("---\ndescription: a\n---\n", err("missing field `name`")),
        ("---\nname: ''\ndescription: a\n---\n", err("missing field `name`")),
        ("---\nname:\ndescription: a\n---\n", err("missing field `name`")),
    ] {
        assert_eq!(parse(text), expected, "{text:?}");
    }
    for text in [
        "---\nname: [a\n---\n",
        "---\nname: a\ndescription: b: c: d\n---\n",
        "---\n- a\n---\n",
        "---\nname: {a: b}\ndescription: c\n---\n",
        "---\nname: &a [*a]\n---\n",
    ] {
        let message = parse(text).unwrap_err();
        assert!(message.starts_with("invalid YAML: "), "{text:?}: {message}");
        assert!(!message.contains('\n'), "{message}");
    }
}

#[test]
fn fields_have_a_longest_form() {
    let file = |name: usize, description: usize, short: usize| {
        matter::parse(&format!(
            "---\nname: {}\ndescription: {}\nmetadata:\n  short-description: {}\n---\n",
            "é".repeat(name),
            "b".repeat(description),
            "c".repeat(short)
        ))
    };
    let matter = file(64, 1024, 1024).unwrap();
    assert_eq!(matter.short_description.unwrap().len(), 1024);
    for (found, field, most) in [
        (file(65, 1, 1), "name", 64),
        (file(1, 1025, 1), "description", 1024),
        (file(1, 1, 1025), "metadata.short-description", 1024),
    ] {
        assert_eq!(
            found.unwrap_err(),
            format!("invalid {field}: exceeds maximum length of {most} characters")
        );
    }
    let odd = matter::parse("---\nname: \"a\\e[2J\\nb\"\ndescription: \"\\u0007\"\n---\n");
    assert_eq!(odd.unwrap_err(), "missing field `description`");
}

#[test]
fn a_deep_or_folded_head_is_refused_not_followed() {
    let deep = format!("---\nname: a\nx: {}\n---\n", "[".repeat(100_000));
    assert!(matter::parse(&deep).unwrap_err().starts_with("invalid YAML"));
    let mut bomb = String::from("---\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for n in 1..12 {
        let before = format!("*a{}, ", n - 1).repeat(10);
        bomb += &format!("a{n}: &a{n} [{}]\n", before.trim_end_matches(", "));
    }
    bomb += "name: a\ndescription: *a11\n---\n";
    assert!(matter::parse(&bomb).unwrap_err().starts_with("invalid YAML"));
}

#[test]
fn a_file_that_is_no_skill_is_told() {
    let it = Fixture::new();
    it.write("p/.agents/skills/a/SKILL.md", "nothing");
    it.write("p/.agents/skills/b/SKILL.md", &"x".repeat(300 * 1024));
    it.write("p/.agents/skills/c/skill.md", "another name");
    fs::create_dir_all(it.path("p/.agents/skills/d/SKILL.md")).unwrap();
    fs::create_dir_all(it.path("p/.agents/skills/e")).unwrap();
    fs::write(it.path("p/.agents/skills/e/SKILL.md"), b"\xff").unwrap();
    it.skill("p/.agents/skills/f", "good");
    let found = it.discover("p");
    assert_eq!(found.skills.len(), 1);
    let errors: Vec<_> = found
        .errors
        .iter()
        .map(|(path, message)| (path.rsplit('/').nth(1).unwrap(), message.as_str()))
        .collect();
    assert_eq!(
        errors,
        [
            ("a", "missing YAML frontmatter delimited by ---"),
            ("b", "larger than 262144 bytes"),
            ("e", "stream did not contain valid UTF-8"),
        ]
    );
}

#[test]
fn the_search_has_bounds() {
    let it = Fixture::new();
    it.skill("p/.agents/skills/1/2/3/4/5/6", "deep");
    it.skill("p/.agents/skills/1/2/3/4/5/6/7", "too deep");
    assert_eq!(it.listed("p"), "repo:deep");

    let root = it.path("many");
    for n in 0..12 {
        it.skill(&format!("many/{n:02}"), "any");
    }
    let found = |most_dirs, most_entries| {
        let mut notes = Vec::new();
        let bounds = walk::Bounds { deepest: 6, most_dirs, most_entries };
        let note = &mut |_: &Path, message| notes.push(message);
        let found = walk::skill_files(&root, None, bounds, note).len();
        (found, notes.join("; "))
    };
    assert_eq!(found(13, 25), (12, String::new()));
    assert_eq!(found(12, 25), (11, "only the first 12 directories are looked at".to_owned()));
    assert_eq!(found(13, 15), (3, "only the first 15 entries are looked at".to_owned()));
}

#[cfg(unix)]
#[test]
fn links_are_followed_within_bounds() {
    use std::os::unix::fs::symlink;
    let it = Fixture::new();
    it.skill("p/.agents/skills/a", "a");
    it.skill("p/shared/b", "b");
    it.skill("elsewhere/c", "c");
    let link = |to: &str, at: &str| symlink(it.path(to), it.path(at)).unwrap();
    // Round and round.
    link("p/.agents/skills", "p/.agents/skills/a/loop");
    // Twice the same, and within the project.
    link("p/shared/b", "p/.agents/skills/b");
    link("p/shared/b", "p/.agents/skills/b2");
    // Out of it.
    link("elsewhere/c", "p/.agents/skills/c");
    fs::create_dir(it.path("p/.agents/skills/d")).unwrap();
    link("elsewhere/c/SKILL.md", "p/.agents/skills/d/SKILL.md");
    assert_eq!(it.listed("p"), "repo:a repo:b");
    let errors = it.discover("p").errors;
    assert_eq!(errors.len(), 2);
    assert!(errors.iter().all(|(_, message)| message.contains("leads out of the project")));
    // The user's own links lead where they lead; the project's skill is still the project's.
    fs::create_dir_all(it.path("home/.agents/skills")).unwrap();
    link("elsewhere", "home/.agents/skills/x");
    link("p/.agents/skills/a", "home/.agents/skills/y");
    assert_eq!(it.listed("p"), "repo:a repo:b user:c");
    // A whole root that leads out.
    fs::create_dir(it.path("p/.codex")).unwrap();
    link("elsewhere", "p/.codex/skills");
    assert_eq!(it.discover("p").errors.len(), 3);
}

#[test]
fn a_skill_can_be_turned_off() {
    let mut it = Fixture::new();
    it.skill("p/.agents/skills/a", "a");
    it.skill("p/.agents/skills/b", "b");
    it.places.disabled = vec![it.path("p/.agents/skills/../skills/a/SKILL.md")];
    let found = it.discover("p");
    let enabled: Vec<bool> = found.skills.iter().map(|skill| skill.enabled).collect();
    assert_eq!(enabled, [false, true]);
    let text = section(&found).unwrap();
    assert!(!text.contains("Does a") && text.contains("- b: Does b (file: "), "{text}");
    assert_eq!(mentioned(&found, "$a"), Vec::<&SkillInfo>::new());
}

#[test]
fn the_model_gets_a_list_within_bounds() {
    let skill = |n: usize| SkillInfo {
        name: format!("s{n}"),
        description: "d".repeat(1000),
        short_description: None,
        path: format!("/s{n}/SKILL.md"),
        scope: "user".to_owned(),
        enabled: true,
    };
    let many = SkillsAt { skills: (0..100).map(skill).collect(), ..SkillsAt::default() };
    let text = section(&many).unwrap();
    assert!(text.len() < MOST_LISTED + 2_000);
    assert!(text.contains("- and 77 more that are not listed"), "{text}");
    assert_eq!(section(&SkillsAt::default()), None);
}

#[test]
fn a_skill_is_put_in_whole() {
    let it = Fixture::new();
    it.skill("p/.agents/skills/a", "a");
    let found = it.discover("p");
    let path = it.path("p/.agents/skills/a/SKILL.md");
    assert_eq!(
        inject(&found.skills[0]).unwrap(),
        format!(
            "<skill>\n<name>a</name>\n<path>{}</path>\n---\nname: a\ndescription: Does a\n---\n\
             Body of a.\n</skill>",
            path.display()
        )
    );
    #[cfg(unix)]
    {
        it.write("secret", "s");
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(it.path("secret"), &path).unwrap();
        assert!(inject(&found.skills[0]).unwrap_err().contains("moved"));
    }
    fs::remove_file(&path).unwrap();
    assert!(inject(&found.skills[0]).is_err());
}

#[test]
fn a_mention_is_a_name_after_a_dollar() {
    let it = Fixture::new();
    for name in ["pdf", "pdf-fill", "twice"] {
        it.skill(&format!("p/.agents/skills/{name}"), name);
    }
    it.skill("home/.agents/skills/twice", "twice");
    let found = it.discover("p");
    let second = it.path("home/.agents/skills/twice/SKILL.md").display().to_string();
    let names = |message: &str| {
        let found = mentioned(&found, message);
        found.iter().map(|it| format!("{}:{}", it.scope, it.name)).collect::<Vec<_>>().join(" ")
    };
    for (message, expected) in [
        ("use $pdf please", "repo:pdf"),
        ("$pdf-fill, then $pdf.", "repo:pdf-fill repo:pdf"),
        ("($pdf) $pdf", "repo:pdf"),
        ("$pdf: x", "repo:pdf"),
        ("pdf", ""),
        ("a$pdf $$pdf \\$pdf", ""),
        ("$pdfx $PDF $", ""),
        ("$twice", ""),
        ("é $pdf é", "repo:pdf"),
    ] {
        assert_eq!(names(message), expected, "{message}");
    }
    assert_eq!(names(&format!("[$twice]({second})")), "user:twice");
    assert_eq!(names("[$pdf](/no/such/SKILL.md)"), "");
    assert_eq!(find(&found, "any", &second).unwrap().scope, "user");
    assert_eq!(find(&found, "pdf", "").unwrap().name, "pdf");
    assert_eq!(find(&found, "pdf", "/etc/passwd"), None);
}

proptest! {
    #[test]
    fn no_head_makes_it_fail(text in "(---\n)?[ -~\n\té]{0,80}(\n---\n)?") {
        if let Ok(matter) = matter::parse(&text) {
            prop_assert!(!matter.name.is_empty() && !matter.description.is_empty());
        }
    }

    #[test]
    fn no_message_makes_it_fail(text in "[$a\\[\\]()./é -]{0,40}") {
        prop_assert!(mentioned(&SkillsAt::default(), &text).is_empty());
    }
}
