//! A corpus and what can be made of it.

mod change;
mod scene;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::{fs, io};

use crate::scan;

/// No input is longer than this, in bytes.
pub const LONGEST: usize = 48 * 1024;

/// Words of a corpus that are longer are text, not words of the protocol.
const LONGEST_WORD: usize = 40;

/// The files of a corpus and the words in them.
#[derive(Debug)]
pub struct Stock {
    /// Each with its name.
    seeds: Vec<(String, Vec<u8>)>,
    words: Vec<Vec<u8>>,
    /// They are scenes of a driver, which are changed line by line besides.
    are_scenes: bool,
}

impl Stock {
    /// Where the corpus of a target is.
    pub fn folder(target: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
    }

    /// Reads the corpus of a target.
    ///
    /// # Errors
    /// When it cannot be read or has no file.
    pub fn load(target: &str) -> io::Result<Self> {
        let mut seeds = Vec::new();
        for file in fs::read_dir(Self::folder(target))? {
            let path = file?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            seeds.push((name, fs::read(path)?));
        }
        // What a directory lists first is chance.
        seeds.sort();
        if seeds.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the corpus is empty"));
        }
        Ok(Self { are_scenes: target.ends_with("_driver"), ..Self::new(seeds) })
    }

    fn new(seeds: Vec<(String, Vec<u8>)>) -> Self {
        let mut words = BTreeSet::new();
        for (_, seed) in &seeds {
            let found = scan::tokens(seed).into_iter().filter_map(|range| seed.get(range));
            words.extend(found.filter(|word| word.len() <= LONGEST_WORD).map(<[u8]>::to_vec));
        }
        Self { seeds, words: words.into_iter().collect(), are_scenes: false }
    }

    /// The files, each with its name.
    pub fn seeds(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.seeds.iter().map(|(name, seed)| (name.as_str(), seed.as_slice()))
    }

    /// The input of an iteration.
    pub fn input(&self, seed: u64, iteration: u64) -> Vec<u8> {
        // Neighbouring numbers must not give similar inputs.
        let mixed = (seed << 40 ^ iteration).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut rng = fastrand::Rng::with_seed(mixed ^ (mixed >> 29));
        let mut input = self.any_seed(&mut rng).to_vec();
        // One change in half of the inputs, two in a quarter, and so on.
        let n_changes = 1 + rng.u16(1..).trailing_zeros();
        (0..n_changes).for_each(|_| self.change(&mut input, &mut rng));
        input
    }

    /// Changes an input in one way.
    pub fn change(&self, input: &mut Vec<u8>, rng: &mut fastrand::Rng) {
        match self.are_scenes && rng.bool() {
            true => scene::change(input, rng),
            false => self.change_bytes(input, rng),
        }
        input.truncate(LONGEST);
    }

    fn any_seed(&self, rng: &mut fastrand::Rng) -> &[u8] {
        rng.choice(&self.seeds).map_or(&[], |(_, seed)| seed.as_slice())
    }
}
