//! libFuzzer chooses the inputs. Which target it tries is in the environment, so that one build is
//! enough for all.

use std::sync::LazyLock;

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use tieline_fuzz::{Stock, Target};

static TARGET: LazyLock<(&Target, Stock)> = LazyLock::new(|| {
    let name = std::env::var("TIELINE_FUZZ_TARGET").expect("`cargo xtask fuzz` sets it");
    let target = Target::find(&name).expect("`cargo xtask fuzz` knows the targets");
    (target, Stock::load(&name).expect("every target has a corpus"))
});

fuzz_target!(|input: &[u8]| {
    (TARGET.0.check)(input);
});

// Its own changes know nothing of words and lines, ours nothing of what it has seen compared.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed % 2 == 0 {
        return fuzzer_mutate(data, size, max_size);
    }
    let mut input = data.get(..size).unwrap_or_default().to_vec();
    TARGET.1.change(&mut input, &mut fastrand::Rng::with_seed(seed.into()));
    input.truncate(max_size);
    if let Some(place) = data.get_mut(..input.len()) {
        place.copy_from_slice(&input);
    }
    input.len()
});
