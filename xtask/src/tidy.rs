//! What must not be there, checked.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::command;

/// Which crate may use which. Everything else is a mistake in the architecture.
const EDGES: &[(&str, &[&str])] = &[
    ("event", &[]),
    ("wire", &[]),
    ("proc", &[]),
    ("workspace", &[]),
    ("patch", &["workspace"]),
    ("sandbox", &["workspace"]),
    ("store", &["event"]),
    ("agent", &["event", "wire", "proc"]),
    ("engine", &["event", "wire", "proc", "workspace", "sandbox", "patch", "agent"]),
    ("hub", &["event", "agent", "proc", "workspace", "store"]),
    ("front", &["event", "wire", "proc", "workspace", "hub"]),
    (
        "cli",
        &[
            "event",
            "agent",
            "proc",
            "workspace",
            "sandbox",
            "patch",
            "store",
            "engine",
            "hub",
            "front",
        ],
    ),
    ("testkit", &["proc", "wire"]),
    ("fuzz", &["event", "wire", "patch", "agent", "cli"]),
    ("xtask", &["event", "wire", "proc", "store", "agent", "engine", "hub", "testkit"]),
];

fn packages() -> Vec<Value> {
    let output = command(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// `tieline-event` lives in `event`; the binary is `tieline` in `cli`.
fn folder(package: &str) -> &str {
    match package {
        "tieline" => "cli",
        other => other.strip_prefix("tieline-").unwrap_or(other),
    }
}

#[test]
fn crates_use_only_what_the_table_allows() {
    let allowed: BTreeMap<&str, &[&str]> = EDGES.iter().copied().collect();
    for package in packages() {
        let name = folder(package["name"].as_str().unwrap()).to_owned();
        let may = allowed.get(name.as_str()).unwrap_or_else(|| panic!("{name} is in no row"));
        for dependency in package["dependencies"].as_array().unwrap() {
            let used = dependency["name"].as_str().unwrap();
            let is_ours = dependency["path"].is_string();
            // Tests and benches may use the testkit and whatever they compare with.
            if is_ours && dependency["kind"].is_null() {
                let used = folder(used);
                assert!(may.contains(&used), "{name} may not use {used}");
            }
        }
    }
}

#[test]
fn folders_are_named_like_their_crates() {
    for package in packages() {
        let manifest = package["manifest_path"].as_str().unwrap().to_owned();
        let name = folder(package["name"].as_str().unwrap()).to_owned();
        assert!(manifest.ends_with(&format!("/{name}/Cargo.toml")), "{name} is at {manifest}");
    }
}
