use super::*;

fn prompt(text: &str) -> SavedPrompt {
    SavedPrompt::parse("p".to_owned(), text)
}

#[test]
fn places_are_filled_in() {
    let expand = |text: &str, arguments: &str| prompt(text).expand(arguments).unwrap();
    assert_eq!(expand("$1 and $2, not $3.", "a 'b c'"), "a and b c, not .");
    assert_eq!(expand("all: $ARGUMENTS", "a 'b c'"), "all: a 'b c'");
    assert_eq!(expand("$FILE by $WHO_2", "WHO_2=me FILE=\"x y\""), "x y by me");
    assert_eq!(expand("$$1 costs $5, a $, a $small", ""), "$1 costs , a $, a $small");
    assert_eq!(expand("$1", "it's"), "it's");
    assert_eq!(expand("$0 $é", "a"), "$0 $é");
}

#[test]
fn what_is_put_in_is_not_expanded_again() {
    assert_eq!(prompt("$1").expand("'$2' x").unwrap(), "$2");
}

#[test]
fn a_name_without_a_value_is_told() {
    assert_eq!(prompt("$B $A $B").expand("C=1").unwrap_err(), ["A", "B"]);
}

#[test]
fn the_head_of_a_file_describes_it() {
    let full = prompt("---\ndescription: \"Do it\"\nargument-hint: FILE=path\n---\nGo $FILE\n");
    assert_eq!(full.text, "Go $FILE\n");
    let command = full.command();
    assert_eq!(command.name, "prompts:p");
    assert_eq!(command.description.as_deref(), Some("Do it"));
    assert_eq!(command.hint.as_deref(), Some("FILE=path"));
    assert_eq!(prompt("---\nno end").text, "---\nno end");
    assert_eq!(prompt("plain").text, "plain");
}

#[test]
fn only_small_files_of_the_directory_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("b.md", "two");
    write("a.md", "one");
    write("c.txt", "none");
    write("large.md", &"x".repeat(LARGEST as usize + 1));
    std::fs::create_dir(directory.path().join("d.md")).unwrap();
    std::fs::write(directory.path().join("e.md"), b"\xff").unwrap();
    let prompts = SavedPrompt::read_all(directory.path());
    let names: Vec<_> = prompts.iter().map(|prompt| prompt.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(SavedPrompt::find(&prompts, "prompts:b").unwrap().text, "two");
    assert_eq!(SavedPrompt::find(&prompts, "b"), None);
    assert_eq!(SavedPrompt::read_all(&directory.path().join("nowhere")), []);
}
