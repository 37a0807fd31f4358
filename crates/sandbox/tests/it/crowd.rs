//! Many sandboxes in one workspace.

use std::process::Stdio;

use crate::stage::{Said, Stage, is_off, users};

#[test]
fn twenty_at_once_leave_no_debris_and_disturb_nobody() {
    if is_off() {
        return;
    }
    for user in users() {
        let stage = Stage::new(user);
        let script = r#"set -e
            mkdir work-$0; cd work-$0
            for i in 1 2 3 4 5 6 7 8 9 10; do echo x > $i; mv $i moved-$i; done
            cd ..; rm -r work-$0
            mkdir .git && exit 8; mkdir .claude && exit 9; exit 0"#;
        let children: Vec<_> = (0..20)
            .map(|at| {
                let at = at.to_string();
                let mut helper = stage.helper(&stage.workspace(), &["sh", "-c", script, &at]);
                helper.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
            })
            .collect();
        for child in children {
            Said::from(child.wait_with_output().unwrap()).succeeds();
        }
        assert_eq!(std::fs::read_dir(stage.work()).unwrap().count(), 0);
    }
}

#[test]
fn killed_at_any_moment_a_sandbox_leaves_nothing() {
    if is_off() {
        return;
    }
    let stage = Stage::new(users()[0]);
    for round in 0..60u32 {
        let mut helper = stage.helper(&stage.workspace(), &["sleep", "1000"]);
        let mut child = helper.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // No time is waited for: the work done here moves the moment of the kill.
        for _ in 0..round * 20 {
            std::hint::black_box(std::fs::metadata("/proc/self/status").unwrap());
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(std::fs::read_dir(stage.work()).unwrap().count(), 0);
    }
}

#[test]
fn threads_that_make_files_together_all_get_theirs() {
    if is_off() {
        return;
    }
    let stage = Stage::new(users()[0]);
    let script = r#"for job in 1 2 3 4 5 6 7 8; do
            (for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
                mkdir $job-$i && echo $i > $job-$i/file || exit 1; done) &
        done; wait; ls | wc -l"#;
    let said = stage.run(&stage.workspace(), &["bash", "-c", script]).succeeds();
    assert_eq!(said.out.trim(), "160");
}
