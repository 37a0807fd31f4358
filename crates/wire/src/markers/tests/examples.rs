//! The examples of the document the markers come from.

use super::*;

#[test]
fn steps_are_progress() {
    check(
        "[PROGRESS] Analyzed existing LoginForm.tsx pattern\n\
         [PROGRESS] Created src/components/UserAuth.tsx with basic structure\n\
         [PROGRESS] Implementing JWT validation in src/lib/jwt.ts\n\
         [PROGRESS] Integration with App.tsx complete\n",
        &[
            progress("Analyzed existing LoginForm.tsx pattern"),
            progress("Created src/components/UserAuth.tsx with basic structure"),
            progress("Implementing JWT validation in src/lib/jwt.ts"),
            progress("Integration with App.tsx complete"),
        ],
    );
}

#[test]
fn a_question_has_the_paragraph_behind_its_options() {
    check(
        "[QUESTION] Should JWT tokens be stored in localStorage or sessionStorage?\n\
         Options:\n\
         1. localStorage - Persists across browser sessions\n\
         2. sessionStorage - Cleared when browser closes\n\
         \n\
         This affects logout behavior and security posture.\n",
        &[question(
            "Should JWT tokens be stored in localStorage or sessionStorage?",
            &[
                (1, "localStorage", Some("Persists across browser sessions")),
                (2, "sessionStorage", Some("Cleared when browser closes")),
            ],
            &["This affects logout behavior and security posture."],
        )],
    );
    check(
        "[QUESTION] Where should I place the error message component?\n\
         Options:\n\
         1. Inline in form - Below each input field\n\
         2. Top of form - Single error banner\n\
         3. Toast notification - Floating alert\n\
         \n\
         LoginForm uses option 1, but this form is more complex.\n\
         \n\
         Not its context any more.\n",
        &[
            question(
                "Where should I place the error message component?",
                &[
                    (1, "Inline in form", Some("Below each input field")),
                    (2, "Top of form", Some("Single error banner")),
                    (3, "Toast notification", Some("Floating alert")),
                ],
                &["LoginForm uses option 1, but this form is more complex."],
            ),
            text("Not its context any more."),
        ],
    );
}

#[test]
fn the_form_of_a_question_has_its_context_in_brackets() {
    check(
        "[QUESTION] The question with context?\n\
         Options:\n\
         1. First option - Description\n\
         2. Second option - Description\n\
         [Additional context about why asking]\n",
        &[question(
            "The question with context?",
            &[(1, "First option", Some("Description")), (2, "Second option", Some("Description"))],
            &["[Additional context about why asking]"],
        )],
    );
}

#[test]
fn a_block_has_its_lines() {
    check(
        "[BLOCKED] Cannot find API base URL\n\
         The plan references API_BASE_URL but it's not defined in:\n\
         - .env file\n\
         - src/config.ts\n\
         - Environment variables\n\
         Please specify the API endpoint.\n",
        &[blocked(
            "Cannot find API base URL",
            &[
                "The plan references API_BASE_URL but it's not defined in:",
                "- .env file",
                "- src/config.ts",
                "- Environment variables",
                "Please specify the API endpoint.",
            ],
        )],
    );
    check(
        "[BLOCKED] Missing dependency: axios\n\
         The plan requires making HTTP requests but axios is not installed.\n\
         Should I:\n\
         - Use native fetch instead?\n\
         - Add axios to package.json?\n",
        &[blocked(
            "Missing dependency: axios",
            &[
                "The plan requires making HTTP requests but axios is not installed.",
                "Should I:",
                "- Use native fetch instead?",
                "- Add axios to package.json?",
            ],
        )],
    );
    check(
        "[BLOCKED] Clear description of what blocks progress\n\
         [Specific information needed or issue to resolve]\n",
        &[blocked(
            "Clear description of what blocks progress",
            &["[Specific information needed or issue to resolve]"],
        )],
    );
}

#[test]
fn files_are_listed_before_the_end() {
    let input = "[FILES_MODIFIED]\n\
                 - src/components/UserAuth.tsx (created)\n\
                 - src/lib/jwt.ts (created)\n\
                 - src/App.tsx (modified)\n\
                 - src/types/user.ts (modified)\n\
                 - tests/auth.test.tsx (created)\n\
                 [CODEX_COMPLETE] Task completed in 8 iterations\n\
                 [CODEX_COMPLETE] Task completed in 23 iterations\n";
    check(
        input,
        &[
            files(&[
                ("src/components/UserAuth.tsx", Change::Created),
                ("src/lib/jwt.ts", Change::Created),
                ("src/App.tsx", Change::Modified),
                ("src/types/user.ts", Change::Modified),
                ("tests/auth.test.tsx", Change::Created),
            ]),
            complete("Task completed in 8 iterations"),
            complete("Task completed in 23 iterations"),
        ],
    );
    // The form itself: its words in brackets are none of those that are known.
    check(
        "[FILES_MODIFIED]\n- path/to/file1.ext (created|modified|deleted)\n",
        &[files(&[("path/to/file1.ext (created|modified|deleted)", Change::Unknown)])],
    );
}

#[test]
fn markers_of_the_future_have_several_lines() {
    for name in ["TEST_RESULTS", "LINT_WARNINGS", "DEPENDENCY_NEEDED", "GIT_COMMIT_SUGGESTION"] {
        check(
            &format!("[{name}] first\n  second\n\nafter\n[{name}]\nonly\n"),
            &[other(name, &["first", "  second"]), text("after"), other(name, &["only"])],
        );
    }
}

#[test]
fn iterations_are_a_number() {
    let complete = |text: &str| Marker::Complete { text: text.to_owned() };
    assert_eq!(complete("Task completed in 8 iterations").iterations(), Some(8));
    assert_eq!(complete("Task completed in 1 iteration").iterations(), Some(1));
    for text in ["", "done", "Task completed in +8 iterations", "Task completed in 8 minutes"] {
        assert_eq!(complete(text).iterations(), None, "{text}");
    }
    assert_eq!(Marker::Progress("Task completed in 8 iterations".into()).iterations(), None);
}
