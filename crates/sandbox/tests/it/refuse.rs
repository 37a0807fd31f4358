//! A system that cannot keep the promise does not run the command.

use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixStream};

use tieline_sandbox::{Feature, Policy, Report};

use crate::stage::{Said, Stage, is_off, users};

const NO_PERMISSION: i32 = libc::EPERM;
const NO_SUCH_CALL: i32 = libc::ENOSYS;

/// Which policies need a feature.
fn needs(feature: Feature, policy: &Policy, stage: &Stage) -> bool {
    match feature {
        Feature::NetworkNamespace => !policy.network,
        Feature::SeccompNotify => policy.files == stage.workspace().files,
        _ => true,
    }
}

fn policies(stage: &Stage) -> Vec<Policy> {
    let closed = [Policy::read_only(), stage.workspace()];
    let open = closed.clone().map(|policy| Policy { network: true, ..policy });
    closed.into_iter().chain(open).collect()
}

#[test]
fn a_missing_feature_is_named_and_nothing_is_run() {
    if is_off() {
        return;
    }
    let stage = Stage::new(users()[0]);
    for feature in Feature::ALL {
        let name = serde_json::to_value(feature).unwrap();
        for policy in policies(&stage) {
            let mut helper = stage.helper(&policy, &["sh", "-c", "echo ran"]);
            helper.env("SANDBOX_PROBE_MISSING", name.as_str().unwrap());
            let said = Said::from(helper.output().unwrap());
            if needs(feature, &policy, &stage) {
                assert_eq!(said.out, "");
                assert!(said.refused().contains(feature.name()), "{feature:?}");
            } else {
                assert_eq!(said.succeeds().out, "ran\n");
            }
        }
    }
}

/// The same with a kernel that really says no: the helper is started under a filter.
#[test]
fn a_kernel_that_says_no_is_believed() {
    if is_off() {
        return;
    }
    let calls = [
        (libc::SYS_clone, NO_PERMISSION, "namespaces"),
        (libc::SYS_mount_setattr, NO_SUCH_CALL, "mount namespaces"),
        (libc::SYS_open_tree, NO_SUCH_CALL, "mount namespaces"),
        (libc::SYS_move_mount, NO_SUCH_CALL, "mount namespaces"),
        (libc::SYS_mount, NO_PERMISSION, "namespaces"),
        (libc::SYS_landlock_create_ruleset, NO_SUCH_CALL, "Landlock"),
        (libc::SYS_landlock_create_ruleset, libc::EOPNOTSUPP, "Landlock"),
        (libc::SYS_landlock_add_rule, NO_PERMISSION, "Landlock"),
        (libc::SYS_landlock_restrict_self, NO_PERMISSION, "Landlock"),
        (libc::SYS_capset, NO_PERMISSION, "namespaces"),
        (libc::SYS_seccomp, NO_SUCH_CALL, "seccomp"),
    ];
    for user in users() {
        let stage = Stage::new(user);
        for (call, errno, name) in calls {
            for policy in policies(&stage) {
                let json = serde_json::to_string(&policy).unwrap();
                let mut probe = stage.command(stage.path("probe"));
                probe.args(["blind", &call.to_string(), &errno.to_string(), &json]);
                probe.args(["sh", "-c", "echo ran"]).current_dir(stage.work());
                let said = Said::from(probe.output().unwrap());
                assert_eq!(said.out, "", "{call} {said:?}");
                assert!(said.refused().contains(name), "{call}");
            }
        }
    }
}

#[test]
fn what_is_not_a_policy_runs_nothing() {
    if is_off() {
        return;
    }
    let stage = Stage::new(users()[0]);
    let first = tieline_sandbox::FIRST_ARGUMENT;
    let cases: [&[&str]; 6] = [
        &[first],
        &[first, "nonsense", "--", "sh", "-c", "echo ran"],
        &[first, "{\"files\":\"read_only\",\"more\":1}", "--", "sh", "-c", "echo ran"],
        &[first, "{\"files\":\"read_only\"}", "sh", "-c", "echo ran"],
        &[first, "{\"files\":\"read_only\"}", "--"],
        &[first, "{\"files\":\"danger_full_access\"}", "--", "sh", "-c", "echo ran"],
    ];
    for args in cases {
        let said = Said::from(stage.command(stage.path("probe")).args(args).output().unwrap());
        assert_eq!(said.out, "", "{args:?}");
        said.refused();
    }
}

#[test]
fn a_stream_that_leads_further_is_refused() {
    if is_off() {
        return;
    }
    let stage = Stage::new(users()[0]);
    let with = |network: bool, stdin: OwnedFd| {
        let policy = Policy { network, ..Policy::read_only() };
        let mut helper = stage.helper(&policy, &["cat", "/dev/null"]);
        Said::from(helper.stdin(stdin).output().unwrap())
    };
    let tcp = || {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap()
    };
    let (stream, _other) = UnixStream::pair().unwrap();
    let (datagram, _another) = UnixDatagram::pair().unwrap();
    let lone = rustix::net::socket(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::STREAM,
        None,
    );
    for network in [false, true] {
        let directory = std::fs::File::open("/").unwrap();
        assert!(with(network, directory.into()).refused().contains("stream"));
        with(network, datagram.try_clone().unwrap().into()).refused();
        with(network, lone.as_ref().unwrap().try_clone().unwrap()).refused();
        with(network, stream.try_clone().unwrap().into()).succeeds();
    }
    with(false, tcp().into()).refused();
    with(true, tcp().into()).succeeds();
}

#[test]
fn the_report_says_what_is_enforced() {
    if is_off() {
        return;
    }
    for user in users() {
        let stage = Stage::new(user);
        let report = |missing: Option<Feature>, blind: Option<i64>| {
            let mut probe = stage.command(stage.path("probe"));
            if let Some(call) = blind {
                probe.args(["blind-report", &call.to_string(), &libc::ENOSYS.to_string()]);
            } else {
                probe.arg(tieline_sandbox::REPORT_ARGUMENT);
            }
            if let Some(feature) = missing {
                let name = serde_json::to_value(feature).unwrap();
                probe.env("SANDBOX_PROBE_MISSING", name.as_str().unwrap());
            }
            let said = Said::from(probe.output().unwrap()).succeeds();
            Report::parse(said.out.as_bytes()).unwrap()
        };
        let whole = report(None, None);
        assert!(whole.is_complete() && whole.landlock_abi > 0, "{whole:?}");
        assert!(whole.layers.iter().all(|layer| layer.problem.is_none()), "{whole:?}");
        for feature in Feature::ALL {
            let less = report(Some(feature), None);
            assert!(!less.is_complete(), "{less:?}");
            let missing: Vec<Feature> = less
                .layers
                .iter()
                .filter(|layer| layer.problem.is_some())
                .map(|layer| layer.feature)
                .collect();
            assert_eq!(missing, [feature]);
        }
        let less = report(None, Some(libc::SYS_landlock_create_ruleset));
        assert!(less.landlock_abi == 0 && less.read_only.is_some(), "{less:?}");
    }
}

#[test]
fn a_sandbox_in_a_sandbox_is_refused() {
    if is_off() {
        return;
    }
    let stage = Stage::new(users()[0]);
    let probe = stage.path("probe");
    let inner = [probe.to_str().unwrap(), "run", "read-only", "sh", "-c", "echo ran"];
    for policy in policies(&stage) {
        let said = stage.run(&policy, &inner);
        assert_eq!(said.out, "");
        assert!(said.refused().contains("namespace"));
    }
}
