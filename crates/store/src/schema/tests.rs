use tieline_event::BlobRef;

use super::MIGRATIONS;

/// A database in the field was made by exactly these bytes. A change is a new step.
#[test]
fn released_steps_are_never_changed() {
    let hashes: Vec<_> =
        MIGRATIONS.iter().map(|step| BlobRef::of(step.as_bytes()).sha256).collect();
    assert_eq!(
        hashes,
        [
            "088089eacc51c299a80cb68c02883ee09aa86b6dd4c81c0a4fb723acb4984034",
            "e207d3dc8e60c401f86d17f3440a4219adfb540270aad2b608232f88483dd527",
            "98ba440d969c48ebe0a80d9221f7d9e785d22175e5b12e07b3f1239b286581d6",
            "c1c7f49ed78cfe019774b532fa8182a539ab64aa81d4342627bf18305be8dbe3",
            "bc2712490d70288d8d880fe59874b14eaedd1dc93391d0373b5f83212e39c815",
            "65b0125507f352f4eb30f6d5964ae8d3fbc4496afb5fd097c9da845e723547a8",
            "f9e4c35238cc539f7900a01e7aabbb5c02642f9ffad51b01c210c992693c97bc",
        ]
    );
}
