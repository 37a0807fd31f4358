//! Every target with its corpus and 100,000 inputs made of it, the same ones everywhere.
//!
//! One that fails names its file and how to try it again; the way there is in CONTRIBUTING.md.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy knows tests by their attribute, not the helpers they call"
)]

use std::collections::BTreeSet;

use tieline_fuzz::{Campaign, Stock, TARGETS, Target, for_each_target};

#[track_caller]
fn holds(name: &str) {
    let target = Target::find(name).unwrap();
    let campaign = Campaign { target, seed: 1, from: 0, runs: 100_000 };
    let report = campaign.run().unwrap_or_else(|failed| panic!("{failed}"));
    assert!(report.n_inputs > 100_000);
}

macro_rules! tests {
    ($($name:ident: $check:path,)*) => {
        $(
            #[test]
            fn $name() {
                holds(stringify!($name));
            }
        )*
    };
}
for_each_target!(tests);

#[test]
fn every_folder_of_the_corpus_is_a_target() {
    let folders = std::fs::read_dir(Stock::folder("")).unwrap();
    let folders: BTreeSet<String> =
        folders.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(folders, TARGETS.iter().map(|it| it.name.to_owned()).collect());
}

#[test]
fn inputs_are_the_same_for_the_same_seed_and_others_for_another() {
    let stock = Stock::load("claude").unwrap();
    let inputs = |seed| (0..200).map(|n| stock.input(seed, n)).collect::<Vec<_>>();
    assert_eq!(inputs(1), inputs(1));
    let (one, two) = (inputs(1), inputs(2));
    let n_same = one.iter().zip(&two).filter(|(a, b)| a == b).count();
    assert!(n_same < 10, "{n_same} of 200");
    let distinct: BTreeSet<&Vec<u8>> = one.iter().collect();
    assert!(distinct.len() > 150, "{}", distinct.len());
}
