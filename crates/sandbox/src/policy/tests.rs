use super::*;

#[test]
fn a_policy_survives_its_way_through_a_command_line() {
    let mut policy = Policy::workspace_write(["/a", "/b c"]);
    policy.hidden = vec!["/k".into()];
    policy.protected = vec!["/a/p".into()];
    for policy in [policy, Policy::read_only(), Policy::danger_full_access()] {
        let json = serde_json::to_string(&policy).unwrap();
        assert_eq!(serde_json::from_str::<Policy>(&json).unwrap(), policy, "{json}");
    }
}

#[test]
fn a_field_nobody_knows_is_not_taken_for_granted() {
    let json = r#"{"files":"read_only","network":false,"no_gpu":true}"#;
    assert!(serde_json::from_str::<Policy>(json).is_err());
}

#[test]
fn contradictions_are_refused() {
    let offline = Policy { network: false, ..Policy::danger_full_access() };
    let hiding = Policy { hidden: vec!["/k".into()], ..Policy::danger_full_access() };
    let relative = Policy::workspace_write(["src"]);
    for policy in [offline, hiding, relative] {
        assert!(policy.check().is_err(), "{policy:?}");
    }
    Policy::danger_full_access().check().unwrap();
    Policy::workspace_write(["/src"]).check().unwrap();
}
