//! Ids that nobody used before.

use std::hash::{BuildHasher, RandomState};

/// Numbers that look random, from a seed.
#[derive(Debug)]
pub(super) struct Ids(u64);

impl Ids {
    /// A seed from the system: the keys of every [`RandomState`] come from its random numbers.
    pub(super) fn random() -> Self {
        Self(RandomState::new().hash_one(std::process::id()))
    }

    #[cfg(test)]
    pub(super) fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number (splitmix64).
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// `msg_…`, `toolu_…`
    pub(super) fn name(&mut self, prefix: &str) -> String {
        format!("{prefix}_{:016x}", self.next())
    }

    /// A UUID of version 4.
    pub(super) fn uuid(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | ((low >> 48) & 0x3fff),
            low & 0xffff_ffff_ffff,
        )
    }
}
