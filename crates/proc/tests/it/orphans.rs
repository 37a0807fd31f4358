//! Whatever an agent leaves behind and however it ends, nobody is alive afterwards.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use tieline_proc::spawn;

use crate::probe::{LIMIT, Mark, Supervisor, kill, parent, ready, until};

/// What the agent does before it says `ready`, and how many processes there are then.
const AGENTS: [(&str, usize); 10] = [
    ("fork", 2),
    ("double-fork", 2),
    ("setsid", 2),
    ("daemon", 2),
    ("nohup", 2),
    ("ignore-term", 1),
    ("ignore-term fork setsid daemon nohup", 5),
    ("fork-on-term setsid", 2),
    ("setsid stop-parent", 2),
    ("fork fork fork fork setsid setsid setsid double-fork double-fork daemon", 11),
];

const ROUNDS: usize = 3;

fn agents() -> impl Iterator<Item = (String, usize)> {
    let agents = AGENTS.iter().map(|(verbs, n)| (format!("{verbs} ready sleep"), *n));
    agents.flat_map(|agent| std::iter::repeat_n(agent, ROUNDS))
}

#[tokio::test]
async fn nobody_is_alive_after_close() {
    for (verbs, n_alive) in agents() {
        let mark = Mark::new();
        let child = spawn(mark.spec(&verbs)).await.unwrap();
        ready(&child).await;
        mark.assert_alive(n_alive);
        let closed = child.close(Duration::from_millis(200)).await;
        // Not `assert_gone`: close promises that they are gone when it returns.
        assert_eq!(mark.living(), [], "{verbs}");
        assert_eq!(closed.left, 0, "{verbs}");
        assert!(closed.exit.is_some(), "{verbs}");
    }
}

#[tokio::test]
async fn nobody_is_alive_after_drop() {
    for (verbs, n_alive) in agents() {
        let mark = Mark::new();
        let child = spawn(mark.spec(&verbs)).await.unwrap();
        ready(&child).await;
        mark.assert_alive(n_alive);
        let host = parent(child.pid);
        drop(child);
        mark.assert_gone(&verbs);
        let reaped = until(LIMIT, || !std::fs::exists(format!("/proc/{host}")).unwrap());
        assert!(reaped, "{verbs}: the host is still there");
    }
}

#[tokio::test]
async fn nobody_is_alive_after_the_agent_crashed_and_was_closed() {
    for (verbs, n_alive) in agents() {
        let mark = Mark::new();
        let child = spawn(mark.spec(&verbs)).await.unwrap();
        ready(&child).await;
        mark.assert_alive(n_alive);
        child.signal(libc::SIGKILL);
        let exit = tokio::time::timeout(Duration::from_secs(1), child.exited()).await.unwrap();
        assert_eq!((exit.code, exit.signal), (None, Some(libc::SIGKILL)), "{verbs}");
        let closed = child.close(Duration::from_millis(200)).await;
        assert_eq!(mark.living(), [], "{verbs}");
        assert_eq!(closed.exit, Some(exit), "{verbs}");
        assert_eq!(closed.killed as usize, n_alive - 1, "{verbs}");
    }
}

#[test]
fn nobody_is_alive_after_the_supervisor_was_killed() {
    for (verbs, n_alive) in agents() {
        let mark = Mark::new();
        let mut supervisor = Supervisor::of(&mark, &verbs);
        assert_eq!(supervisor.line(), "ready");
        mark.assert_alive(n_alive);
        supervisor.kill();
        mark.assert_gone(&verbs);
    }
}

#[test]
fn nobody_is_alive_after_the_host_was_killed() {
    for (verbs, n_alive) in agents() {
        let mark = Mark::new();
        let mut supervisor = Supervisor::of(&mark, &verbs);
        assert_eq!(supervisor.line(), "ready");
        mark.assert_alive(n_alive);
        let [host] = supervisor.children()[..] else { panic!("not one host") };
        kill(host, Signal::KILL);
        let said = supervisor.line();
        assert!(said.starts_with("ended: signal 9;"), "{verbs}: {said}");
        mark.assert_gone(&verbs);
        let reaped = until(LIMIT, || supervisor.children().is_empty());
        assert!(reaped, "{verbs}: {:?} are not reaped", supervisor.children());
    }
}

#[tokio::test]
async fn a_host_that_is_kept_stopped_is_killed_and_so_is_its_agent() {
    let mark = Mark::new();
    let child = spawn(mark.spec("ignore-term ready keep-parent-stopped")).await.unwrap();
    ready(&child).await;
    child.begin_stop(Duration::ZERO);
    let exit = tokio::time::timeout(LIMIT, child.exited()).await.unwrap();
    assert_eq!(exit.signal, Some(libc::SIGKILL));
    mark.assert_gone("a host that is kept stopped");
}

#[test]
fn children_that_the_program_started_itself_survive_the_loss_of_a_host() {
    let mark = Mark::new();
    let mut supervisor =
        Supervisor::start(&format!("fork supervise {} setsid ready sleep", mark.name()));
    assert_eq!(supervisor.line(), "ready");
    let is_host = |pid: &u32| {
        let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
        command.contains("__tieline-host")
    };
    let (hosts, own): (Vec<u32>, Vec<u32>) = supervisor.children().into_iter().partition(is_host);
    assert_eq!((hosts.len(), own.len()), (1, 1));
    kill(hosts[0], Signal::KILL);
    assert!(supervisor.line().starts_with("ended: signal 9;"));
    mark.assert_gone("the orphans");
    let reaped = until(LIMIT, || supervisor.children() == own);
    assert!(reaped, "{:?} are its children", supervisor.children());
    assert_ne!(crate::probe::field(own[0], "State:").chars().next(), Some('Z'));
}

#[tokio::test]
async fn one_that_forks_faster_than_it_is_looked_at_is_caught() {
    let mark = Mark::new();
    let child = spawn(mark.spec("hop ready sleep")).await.unwrap();
    ready(&child).await;
    let closed = child.close(Duration::ZERO).await;
    assert_eq!(closed.left, 0);
    mark.assert_gone("hop");
}

#[tokio::test]
async fn a_start_that_is_given_up_halfway_leaves_nobody() {
    let mark = Mark::new();
    for step in 0..40 {
        let given_up_after = Duration::from_micros(step * 200);
        let start = spawn(mark.spec("setsid fork sleep"));
        drop(tokio::time::timeout(given_up_after, start).await);
    }
    mark.assert_gone("given up");
}

#[test]
fn a_supervisor_killed_at_any_moment_of_a_start_leaves_nobody() {
    let mark = Mark::new();
    for step in 0..40 {
        let mut supervisor = Supervisor::of(&mark, "setsid fork sleep");
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_micros(step * 200) {
            std::thread::yield_now();
        }
        supervisor.kill();
    }
    mark.assert_gone("killed at start");
}

#[tokio::test]
async fn a_stopped_agent_is_asked_before_it_is_killed() {
    let mark = Mark::new();
    let child = spawn(mark.spec("ready sleep")).await.unwrap();
    ready(&child).await;
    child.signal(libc::SIGSTOP);
    let closed = child.close(LIMIT).await;
    assert_eq!(closed.exit.and_then(|exit| exit.signal), Some(libc::SIGTERM));
    assert_eq!(closed.killed, 0);
}

#[tokio::test]
async fn signals_that_end_other_processes_do_not_end_the_host() {
    let mark = Mark::new();
    let child = spawn(mark.spec("ready cat")).await.unwrap();
    ready(&child).await;
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1] {
        kill(parent(child.pid), signal);
    }
    drop(child);
    mark.assert_gone("signalled host");
}

#[test]
fn an_agent_outlives_the_thread_that_asked_for_it() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let handle = runtime.handle().clone();
    let thread =
        std::thread::spawn(move || handle.block_on(spawn(crate::probe::spec("ready cat"))));
    let mut child = thread.join().unwrap().unwrap();
    runtime.block_on(async {
        ready(&child).await;
        drop(child.stdin.take());
        assert_eq!(child.exited().await.code, Some(0));
    });
}

#[test]
fn a_hundred_short_commands_leave_neither_zombies_nor_descriptors() {
    let mut supervisor = Supervisor::start("churn 100");
    assert_eq!(supervisor.line(), "same fds");
    let reaped = until(LIMIT, || supervisor.children().is_empty());
    assert!(reaped, "{:?} are not reaped", supervisor.children());
}
