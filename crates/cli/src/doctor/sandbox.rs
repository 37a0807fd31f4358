//! What the kernel offers to fence a command in and to clean up after an agent. Tried in a process of
//! its own, not guessed from versions.

use std::time::Duration;

use tieline_proc::{RunLimits, Spec};
use tieline_sandbox::{Feature, Layer, Report};

use super::{Check, State};

const AREA: &str = "sandbox";

pub(super) async fn check(checks: &mut Vec<Check>) {
    match tried().await {
        Ok(report) => show(&report, checks),
        Err(why) => checks.push(Check::new(AREA, "kernel", State::Missing, why)),
    }
    checks.push(subreaper());
}

async fn tried() -> Result<Report, String> {
    let (program, args) = Report::command().map_err(|err| err.to_string())?;
    let spec = args.into_iter().fold(Spec::new(program, "/"), Spec::arg);
    let limits = RunLimits { timeout: Duration::from_secs(10), max_output: 64 * 1024 };
    let output =
        tieline_proc::run(spec, b"", limits).await.map_err(|err| crate::error::chain(&err))?;
    let text = output.stdout.to_text();
    Report::parse(text.as_bytes()).map_err(|err| format!("the trial said nothing useful: {err}"))
}

fn show(report: &Report, checks: &mut Vec<Check>) {
    checks.extend(report.layers.iter().map(|layer| of_layer(layer, report.landlock_abi)));
    let policies = [
        ("read-only", &report.read_only),
        ("workspace-write", &report.workspace_write),
        ("with network", &report.with_network),
    ];
    for (name, problem) in policies {
        checks.push(match problem {
            None => Check::new(AREA, name, State::Good, "can be enforced"),
            Some(problem) => Check::new(AREA, name, State::Missing, problem)
                .advice("a command that asks for it will not be run"),
        });
    }
}

fn of_layer(layer: &Layer, landlock_abi: u32) -> Check {
    let name = layer.feature.name();
    match &layer.problem {
        Some(problem) => {
            Check::new(AREA, name, State::Missing, problem).advice(layer.feature.advice())
        }
        None if layer.feature == Feature::Landlock => {
            Check::new(AREA, name, State::Good, format!("there, ABI {landlock_abi}"))
        }
        None => Check::new(AREA, name, State::Good, "there"),
    }
}

#[cfg(target_os = "linux")]
fn subreaper() -> Check {
    match rustix::process::child_subreaper() {
        Ok(_) => Check::new(AREA, "subreaper", State::Good, "whole process trees can be ended"),
        Err(err) => Check::new(AREA, "subreaper", State::Bad, err.to_string())
            .advice("processes that an agent leaves behind may survive it"),
    }
}

#[cfg(not(target_os = "linux"))]
fn subreaper() -> Check {
    Check::new(AREA, "subreaper", State::Missing, "only on Linux")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_shown_with_what_to_do() {
        let mut checks = Vec::new();
        let layers = vec![
            Layer { feature: Feature::Landlock, problem: None },
            Layer { feature: Feature::UserNamespace, problem: Some("not permitted".to_owned()) },
        ];
        let report = Report {
            layers,
            landlock_abi: 6,
            read_only: None,
            workspace_write: Some("no user namespaces".to_owned()),
            with_network: None,
        };
        show(&report, &mut checks);
        let find = |name: &str| checks.iter().find(|check| check.name == name).unwrap();
        assert_eq!(find("Landlock").detail, "there, ABI 6");
        assert_eq!(find("user namespaces").state, State::Missing);
        assert!(find("user namespaces").advice.as_ref().unwrap().contains("max_user_namespaces"));
        assert_eq!(find("read-only").state, State::Good);
        assert!(find("workspace-write").advice.as_ref().unwrap().contains("not be run"));
    }
}
