//! How a command begins, lives and ends in a sandbox.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tieline_sandbox::Policy;

use crate::stage::{Said, Stage, is_off, users};

fn policies(stage: &Stage) -> [Policy; 3] {
    [Policy::read_only(), stage.workspace(), Policy::danger_full_access()]
}

#[test]
fn exit_codes_and_signals_come_through() {
    if is_off() {
        return;
    }
    for user in users() {
        let stage = Stage::new(user);
        for policy in policies(&stage) {
            for code in [0, 1, 2, 42, 125, 126, 127, 255] {
                let said = stage.shell(&policy, &format!("exit {code}"));
                assert_eq!(said.output.status.code(), Some(code));
                assert!(!said.is_refused());
            }
            for signal in [1, 2, 3, 6, 9, 11, 13, 14, 15] {
                let said = stage.shell(&policy, &format!("kill -{signal} $$"));
                assert_eq!(said.output.status.signal(), Some(signal), "{policy:?}");
            }
            let said = stage.run(&policy, &["no-such-program"]);
            assert_eq!(said.output.status.code(), Some(127), "{said:?}");
            let said = stage.run(&policy, &["/etc/passwd"]);
            assert_eq!(said.output.status.code(), Some(126), "{said:?}");
        }
    }
}

#[test]
fn signals_reach_the_command_once() {
    if is_off() {
        return;
    }
    let stage = Stage::new(users()[0]);
    for whole_group in [false, true] {
        let script = "trap 'echo TERM' TERM; trap 'echo USR1; exit 5' USR1; echo ready; \
                      while :; do sleep 0.05; done";
        let mut helper = stage.helper(&Policy::read_only(), &["bash", "-c", script]);
        std::os::unix::process::CommandExt::process_group(&mut helper, 0);
        let mut child = helper.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut next = || lines.next().unwrap().unwrap();
        assert_eq!(next(), "ready");
        let pid = Pid::from_raw(child.id() as i32).unwrap();
        let send = |signal| match whole_group {
            true => kill_process_group(pid, signal).unwrap(),
            false => kill_process(pid, signal).unwrap(),
        };
        send(Signal::TERM);
        assert_eq!(next(), "TERM");
        send(Signal::USR1);
        assert_eq!(next(), "USR1");
        assert_eq!(child.wait().unwrap().code(), Some(5));
    }
}

#[test]
fn streams_and_environment_are_as_given() {
    if is_off() {
        return;
    }
    let stage = Stage::new(users()[0]);
    for policy in policies(&stage) {
        let mut helper = stage.helper(&policy, &["sh", "-c", "env; cat; cat nowhere"]);
        helper.env_clear().env("A", "b c").env("API_KEY", "x").env("PATH", "/usr/bin:/bin");
        helper.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = helper.spawn().unwrap();
        let big = vec![b'x'; 300_000];
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn({
            let big = big.clone();
            move || stdin.write_all(&big).unwrap()
        });
        let said = Said::from(child.wait_with_output().unwrap());
        writer.join().unwrap();
        let (env, input) = said.out.split_at(said.out.len() - big.len());
        let mut env: Vec<&str> = env.lines().filter(|line| !line.starts_with("_=")).collect();
        env.sort_unstable();
        let pwd = format!("PWD={}", stage.work().canonicalize().unwrap().display());
        assert_eq!(env, ["A=b c", "API_KEY=x", "PATH=/usr/bin:/bin", &pwd]);
        assert!(input.bytes().all(|byte| byte == b'x'));
        assert!(said.err.contains("nowhere"));
    }
}

#[test]
fn a_command_has_three_descriptors() {
    if is_off() {
        return;
    }
    let stage = Stage::new(users()[0]);
    let probe = stage.path("probe");
    for policy in policies(&stage) {
        let helper = stage.helper(&policy, &[probe.to_str().unwrap(), "fds"]);
        let mut shell = stage.command("bash");
        shell.arg("-c").arg(r#"exec 5</etc/passwd 9<&0 200>/dev/null; exec "$@""#).arg("bash");
        shell.arg(helper.get_program()).args(helper.get_args());
        assert_eq!(Said::from(shell.output().unwrap()).succeeds().out, "0 1 2\n");
    }
}

#[test]
fn a_command_has_no_privileges_and_sees_only_itself() {
    if is_off() {
        return;
    }
    for user in users() {
        let stage = Stage::new(user);
        for policy in [Policy::read_only(), stage.workspace()] {
            let said = stage.shell(&policy, "cat /proc/self/status").succeeds();
            for line in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
                let set = said.out.lines().find(|it| it.starts_with(line)).unwrap();
                assert!(set.ends_with("\t0000000000000000"), "{set}");
            }
            assert!(said.out.contains("NoNewPrivs:\t1") && said.out.contains("Seccomp:\t2"));
            let said = stage.shell(&policy, "echo /proc/[0-9]*").succeeds();
            assert!(said.out.split_whitespace().count() <= 3, "{}", said.out);
            let said = stage.shell(&policy, "id -u").succeeds();
            let uid = std::os::unix::fs::MetadataExt::uid(&stage.work().metadata().unwrap());
            assert_eq!(said.out.trim(), uid.to_string());
        }
    }
}

/// Processes of the stage that are still there.
fn alive(mark: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap();
    entries
        .filter_map(|entry| {
            let path = entry.unwrap().path();
            path.file_name()?.to_str()?.parse::<u32>().ok()?;
            let line = std::fs::read(path.join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).into_owned();
            line.contains(mark).then_some(line)
        })
        .collect()
}

/// What a test waits for happens, or the test runner ends it.
fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        std::thread::yield_now();
    }
}

#[test]
fn nothing_outlives_the_command() {
    if is_off() {
        return;
    }
    for user in users() {
        let stage = Stage::new(user);
        for policy in [Policy::read_only(), stage.workspace()] {
            // The mark is an argument that nothing but these processes has.
            let mark = stage.path("mark").display().to_string();
            let script = r#"for i in 1 2 3; do setsid sh -c 'sleep 1000; :' "$0" & done; (sh -c 'sleep 1000; :' "$0" &) ; exit 3"#;
            let said = stage.run(&policy, &["bash", "-c", script, &mark]);
            assert_eq!(said.output.status.code(), Some(3));
            assert_eq!(alive(&mark), Vec::<String>::new());
        }
    }
}

#[test]
fn everything_dies_with_the_helper_or_its_parent() {
    if is_off() {
        return;
    }
    for user in users() {
        let stage = Stage::new(user);
        for kill_parent in [false, true] {
            let mark = stage.path("mark").display().to_string();
            let script = r#"setsid sh -c 'trap "" TERM HUP; sleep 1000; :' "$0" & echo $PPID ready; sleep 1000; :"#;
            let helper = stage.helper(&stage.workspace(), &["bash", "-c", script, &mark]);
            // A parent in between, whose child the helper is.
            let mut parent = stage.command("bash");
            parent.arg("-c").arg(r#""$@" & echo $!; wait"#).arg("bash");
            parent.arg(helper.get_program()).args(helper.get_args());
            let mut parent = parent.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
            let mut lines = BufReader::new(parent.stdout.take().unwrap()).lines();
            let helper: i32 = lines.next().unwrap().unwrap().parse().unwrap();
            assert!(lines.next().unwrap().unwrap().ends_with("ready"));
            assert!(!alive(&mark).is_empty());
            let victim = if kill_parent { parent.id() as i32 } else { helper };
            kill_process(Pid::from_raw(victim).unwrap(), Signal::KILL).unwrap();
            until(|| alive(&mark).is_empty());
            parent.wait().unwrap();
            assert_eq!(std::fs::read_dir(stage.work()).unwrap().count(), 0);
        }
    }
}

#[test]
fn a_file_mode_mask_changed_in_the_command_is_respected() {
    if is_off() {
        return;
    }
    let stage = Stage::new(users()[0]);
    let script = "for m in 000 022 027 077 777; do umask $m; touch f$m; mkdir d$m; done; \
                  stat -c %a f* d* | tr '\\n' ' '";
    let inside = stage.run(&stage.workspace(), &["bash", "-c", script]).succeeds().out;
    assert_eq!(inside, "666 644 640 600 0 777 755 750 700 0 ");
}

#[test]
fn no_program_is_made_that_runs_as_its_owner() {
    if is_off() {
        return;
    }
    let stage = Stage::new(users()[0]);
    let probe = stage.path("probe");
    let said = stage.run(&stage.workspace(), &[probe.to_str().unwrap(), "set-user"]).succeeds();
    assert_eq!(said.out.lines().filter(|line| *line == "done").count(), 0, "{}", said.out);
    assert_eq!(said.out.lines().count(), 6);
    let outside = Said::from(
        stage.command(&probe).arg("set-user").current_dir(stage.work()).output().unwrap(),
    );
    assert_eq!(outside.out, "done\n".repeat(6));
}
