//! The same agents on the same model, seen through the reference adapters and through tieline.
//!
//! Every scenario is played twice and folded into features. Where they differ, a verdict has to say
//! who is better off; `docs/acp-differences.md` is written from the run, so it cannot drift.

mod features;
mod run;
mod verdicts;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use self::features::{Feature, shown};
use self::run::{Back, Bridge, SCENARIOS, Scenario, observe};
use self::verdicts::{VERDICTS, Verdict};

/// A feature that is not the same.
struct Difference {
    back: Back,
    scenario: &'static str,
    feature: String,
    reference: Vec<String>,
    tieline: Vec<String>,
}

const PAGE: &str = "\
# ACP: tieline beside the reference adapters

The pinned Claude Code and Codex, each driven through its reference adapter (claude-agent-acp 0.99.1,
codex-acp 2.6.0) and through `tieline acp`, on the same scripted model and by the same client. Each
scenario is folded into features: what is shown, in which order, what is asked, what is offered. Only
what differs is listed, with what it means for the person at the editor; a long list shows only what
the other side lacks. A difference without a verdict fails the suite, and so does one for the worse.

`UPDATE_EXPECT=1 cargo xtask test --real differences` writes this page anew from a run.
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_difference_from_the_reference_adapters_has_a_verdict() {
    let mut page = PAGE.to_owned();
    let (mut without, mut missing) = (Vec::new(), Vec::new());
    let mut used = BTreeSet::new();
    for back in Back::ALL {
        let mut n_features = 0;
        let mut differences = Vec::new();
        for scenario in SCENARIOS.iter().filter(|it| it.of.is_none_or(|of| of == back)) {
            let (n_observed, different) = play(back, scenario).await;
            n_features += n_observed;
            differences.extend(different);
        }
        let same = n_features - differences.len();
        writeln!(page, "\n## {} and {}\n", back.title(), back.adapter()).unwrap();
        writeln!(page, "{same} of {n_features} features are the same. The others:\n").unwrap();
        writeln!(page, "| scenario | feature | {} | tieline | |", back.adapter()).unwrap();
        writeln!(page, "|---|---|---|---|---|").unwrap();
        for difference in differences {
            let Difference { scenario, feature, reference, tieline, .. } = &difference;
            let (left, right) = shown(reference, tieline);
            let told = format!("{} {scenario} {feature}: {left} / {right}", back.title());
            let Some(place) = VERDICTS.iter().position(|row| row.is_about(&difference)) else {
                without.push(told);
                continue;
            };
            used.insert(place);
            let row = &VERDICTS[place];
            if row.verdict == Verdict::Missing {
                missing.push(format!("{told}\n    {}", row.why));
            }
            let verdict = format!("{}: {}", row.verdict.word(), row.why);
            writeln!(page, "| {scenario} | {feature} | {left} | {right} | {verdict} |").unwrap();
        }
    }
    assert!(without.is_empty(), "without a verdict:\n{}", without.join("\n"));
    let idle: Vec<_> = VERDICTS.iter().enumerate().filter(|(it, _)| !used.contains(it)).collect();
    assert!(idle.is_empty(), "nothing differs any more: {idle:#?}");
    expect_test::expect_file!["../../../../../docs/acp-differences.md"].assert_eq(&page);
    assert!(missing.is_empty(), "missing:\n{}", missing.join("\n"));
}

/// How many features a scenario has, and which of them differ. An adapter that tells something late
/// on a busy machine gets another chance.
async fn play(back: Back, scenario: &Scenario) -> (usize, Vec<Difference>) {
    let mut tries = 3;
    loop {
        let (reference, tieline) = tokio::join!(
            observe(back, Bridge::Reference, scenario),
            observe(back, Bridge::Tieline, scenario),
        );
        let differences = compare(back, scenario, &reference, &tieline);
        tries -= 1;
        let is_judged = |it: &Difference| VERDICTS.iter().any(|row| row.is_about(it));
        if tries == 0 || differences.iter().all(is_judged) {
            return (reference.len().max(tieline.len()), differences);
        }
    }
}

fn compare(
    back: Back,
    scenario: &Scenario,
    reference: &[Feature],
    tieline: &[Feature],
) -> Vec<Difference> {
    let find = |features: &[Feature], name: &str| {
        let found = features.iter().find(|(it, _)| it == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let mut names: Vec<&String> = reference.iter().map(|(name, _)| name).collect();
    names.extend(
        tieline
            .iter()
            .map(|(name, _)| name)
            .filter(|it| reference.iter().all(|(name, _)| name != *it)),
    );
    let both = names.into_iter().map(|name| (name, find(reference, name), find(tieline, name)));
    both.filter(|(_, reference, tieline)| reference != tieline)
        .map(|(feature, reference, tieline)| Difference {
            back,
            scenario: scenario.name,
            feature: feature.clone(),
            reference,
            tieline,
        })
        .collect()
}
