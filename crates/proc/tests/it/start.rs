//! What an agent finds when it starts, and what we are told when it does not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use tieline_proc::{Error, RunLimits, Spec, resolve, run, spawn};

use crate::probe::{LIMIT, Mark, Supervisor, field, parent, ready, spec};

async fn output(spec: Spec) -> String {
    let output = run(spec, b"", RunLimits::default()).await.unwrap();
    assert!(output.exit.unwrap().is_success(), "{output:?}");
    output.stdout.to_text()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_agents_started_at_once_see_three_descriptors_each() {
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..50 {
        running.spawn(output(spec("print-fds")));
    }
    assert_eq!(running.join_all().await, vec!["0 1 2\n"; 50]);
}

#[test]
fn an_agent_has_no_terminal_even_if_we_have_one() {
    let mut supervisor = Supervisor::of_tty("print-tty");
    assert_eq!(supervisor.line(), "no tty");
}

#[tokio::test]
async fn an_agent_starts_with_its_directory_and_its_environment_only() {
    let directory = tempfile::tempdir().unwrap();
    let cwd = directory.path().canonicalize().unwrap();
    let mut spec = spec("print-cwd print-env");
    spec.cwd = cwd.clone();
    spec.env.set("ONLY", "this");
    let expected = format!("{}\nONLY=this\n", cwd.display());
    assert_eq!(output(spec).await, expected);
}

#[tokio::test]
async fn an_agent_starts_with_no_signal_blocked_or_ignored() {
    spec("");
    let path = std::env::var_os("PATH");
    let grep = resolve("grep", Path::new("/nowhere"), path.as_deref()).unwrap();
    let spec = Spec::new(grep, "/").arg("-E").arg("SigBlk|SigIgn").arg("/proc/self/status");
    for line in output(spec).await.lines() {
        let (_, set) = line.split_once('\t').unwrap();
        // The C library keeps 32 and 33 for its threads, ignores them in what it spawns and lets
        // nobody change that.
        let set = u64::from_str_radix(set, 16).unwrap() & !(0b11 << 31);
        assert_eq!(set, 0, "{line}");
    }
}

#[tokio::test]
async fn neither_arguments_nor_environment_show_at_the_host() {
    let mark = Mark::new();
    let child = spawn(mark.spec("ready sleep")).await.unwrap();
    ready(&child).await;
    let host = parent(child.pid);
    assert_eq!(fs::read(format!("/proc/{host}/cmdline")).unwrap(), b"tieline\0__tieline-host\0");
    assert_eq!(field(host, "Name:"), "tieline-host");
    assert_eq!(mark.living(), [child.pid]);
    child.close(Duration::ZERO).await;
}

#[tokio::test]
async fn a_spec_larger_than_any_socket_buffer_arrives() {
    let mut spec = spec("exit 7");
    for index in 0..20 {
        spec.env.set(format!("BIG{index}"), "x".repeat(60_000));
    }
    let output = run(spec, b"", RunLimits::default()).await.unwrap();
    assert_eq!(output.exit.unwrap().code, Some(7));
}

#[tokio::test]
async fn programs_that_cannot_be_executed_are_typed_errors() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let start = |program| spawn(Spec { program, ..spec("") });

    let missing = start(at("missing")).await.unwrap_err();
    assert!(matches!(missing, Error::NotFound { .. }), "{missing:?}");

    fs::write(at("text"), "no program").unwrap();
    let denied = start(at("text")).await.unwrap_err();
    let Error::Spawn { source, .. } = denied else { panic!("{denied:?}") };
    assert_eq!(source.raw_os_error(), Some(libc::EACCES));

    let denied = start(directory.path().to_owned()).await.unwrap_err();
    let Error::Spawn { source, .. } = denied else { panic!("{denied:?}") };
    assert_eq!(source.raw_os_error(), Some(libc::EACCES));

    fs::write(at("script"), "#!/nonexistent\n").unwrap();
    fs::set_permissions(at("script"), fs::Permissions::from_mode(0o755)).unwrap();
    let broken = start(at("script")).await.unwrap_err();
    let Error::Spawn { source, .. } = broken else { panic!("{broken:?}") };
    assert_eq!(source.raw_os_error(), Some(libc::ENOENT));

    let lost = spawn(Spec::new(crate::probe::program(), at("missing"))).await.unwrap_err();
    assert!(matches!(lost, Error::Directory { .. }), "{lost:?}");

    let nul = spawn(spec("").arg("a\0b")).await.unwrap_err();
    assert!(matches!(nul, Error::Nul { .. }), "{nul:?}");
}

#[tokio::test]
async fn the_exit_is_known_at_once_and_stays_known() {
    let child = spawn(spec("exit 3")).await.unwrap();
    for _ in 0..2 {
        let exit = tokio::time::timeout(Duration::from_secs(1), child.exited()).await.unwrap();
        assert_eq!((exit.code, exit.signal), (Some(3), None));
    }
    let closed = child.close(LIMIT).await;
    assert_eq!(closed.exit.unwrap().code, Some(3));
    assert_eq!((closed.killed, closed.left), (0, 0));
}
