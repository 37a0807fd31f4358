//! The reference adapter in a comparison, which may not be there.

use super::bridge::adapter_of;
use crate::bench::driver::Driver;
use crate::bench::scene::progress;
use crate::bench::table::{Beside, Quantity};

/// What an adapter did, or why it did nothing more.
pub(super) struct Peer<T> {
    driver: Driver,
    pub(super) measured: Vec<T>,
    trouble: Option<String>,
}

impl<T> Peer<T> {
    pub(super) fn new(driver: Driver) -> Self {
        Self { driver, measured: Vec::new(), trouble: None }
    }

    /// Measures once more, unless it failed before.
    pub(super) fn add(&mut self, measure: impl FnOnce() -> anyhow::Result<T>) {
        if self.trouble.is_some() {
            return;
        }
        match measure() {
            Ok(measured) => self.measured.push(measured),
            Err(err) => {
                let trouble = format!("{} is missing: {err:#}", self.name());
                progress(&trouble);
                self.trouble = Some(trouble);
            }
        }
    }

    fn name(&self) -> &'static str {
        adapter_of(self.driver).name()
    }

    /// Its number beside ours.
    pub(super) fn beside(&self, quantity: impl FnOnce(&[T]) -> Quantity) -> Beside {
        let value = match &self.trouble {
            None => quantity(&self.measured),
            Some(_) => Quantity::Missing,
        };
        Beside { what: self.name(), value }
    }

    /// What a reader must know of it, as the end of a note.
    pub(super) fn note(&self) -> String {
        self.trouble.as_ref().map_or_else(String::new, |trouble| format!("; {trouble}"))
    }
}
