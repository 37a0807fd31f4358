//! The states of a process's conversations, without waiting: a table and its rules.
//!
//! ```text
//! (none) ── begin(Opening) ──► Opening ── opened ──► Open ── closing ──► Closing ── ended ──► (none)
//! (none) ── begin(Reserved) ─► Reserved ─────────────────────────────────────────── ended ──► (none)
//! ```
//!
//! Whoever begins a state gets its [`Tenure`], and only with that it can be changed. A tenure that has
//! ended changes nothing any more.

use std::collections::HashMap;
use std::hash::Hash;

/// What a process has of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State<T> {
    /// Its lease is being taken.
    Opening,
    /// It has an owner; this speaks with it.
    Open(T),
    /// Its owner is ending.
    Closing,
    /// It is made or deleted, which needs no owner.
    Reserved,
}

/// From the beginning of a conversation's state to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tenure(u64);

/// How a tenure begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beginning {
    Opening,
    Reserved,
}

/// What somebody finds who wants to begin.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found<T> {
    /// Nobody: this tenure has begun.
    Nobody(Tenure),
    /// It is open.
    Open(T),
    /// Somebody else is about to open, close, make or delete it.
    Busy,
}

/// The state of each conversation that has one.
#[derive(Debug)]
pub(crate) struct States<K, T> {
    states: HashMap<K, (Tenure, State<T>)>,
    n_tenures: u64,
}

impl<K, T> Default for States<K, T> {
    fn default() -> Self {
        Self { states: HashMap::new(), n_tenures: 0 }
    }
}

impl<K: Eq + Hash + Clone, T: Clone> States<K, T> {
    /// Begins a tenure where there is none.
    pub(crate) fn begin(&mut self, key: &K, how: Beginning) -> Found<T> {
        match self.states.get(key) {
            Some((_, State::Open(open))) => Found::Open(open.clone()),
            Some(_) => Found::Busy,
            None => {
                self.n_tenures += 1;
                let tenure = Tenure(self.n_tenures);
                let state = match how {
                    Beginning::Opening => State::Opening,
                    Beginning::Reserved => State::Reserved,
                };
                self.states.insert(key.clone(), (tenure, state));
                Found::Nobody(tenure)
            }
        }
    }

    /// What was being opened has an owner.
    pub(crate) fn opened(&mut self, key: &K, tenure: Tenure, open: T) -> bool {
        let is_next = |state: &State<T>| matches!(state, State::Opening);
        self.change(key, tenure, is_next, State::Open(open))
    }

    /// The owner is ending.
    pub(crate) fn closing(&mut self, key: &K, tenure: Tenure) -> bool {
        let is_next = |state: &State<T>| matches!(state, State::Opening | State::Open(_));
        self.change(key, tenure, is_next, State::Closing)
    }

    /// The tenure is over, in whatever state it was.
    pub(crate) fn ended(&mut self, key: &K, tenure: Tenure) -> bool {
        let is_this = self.states.get(key).is_some_and(|(of, _)| *of == tenure);
        is_this && self.states.remove(key).is_some()
    }

    /// The state of a tenure; none once it is over.
    pub(crate) fn of(&self, key: &K, tenure: Tenure) -> Option<&State<T>> {
        self.states.get(key).filter(|(of, _)| *of == tenure).map(|(_, state)| state)
    }

    /// Everything that has a state.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&K, Tenure, &State<T>)> {
        self.states.iter().map(|(key, (tenure, state))| (key, *tenure, state))
    }

    fn change(
        &mut self,
        key: &K,
        tenure: Tenure,
        is_next: impl FnOnce(&State<T>) -> bool,
        next: State<T>,
    ) -> bool {
        match self.states.get_mut(key) {
            Some((of, state)) if *of == tenure && is_next(state) => {
                *state = next;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone, Copy)]
    enum Step {
        Begin(u8, bool),
        Opened(usize),
        Closing(usize),
        Ended(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..3u8, any::<bool>()).prop_map(|(key, opens)| Step::Begin(key, opens)),
            any::<usize>().prop_map(Step::Opened),
            any::<usize>().prop_map(Step::Closing),
            any::<usize>().prop_map(Step::Ended),
        ]
    }

    /// What a tenure may become, as a list of words instead of a table.
    fn follows(before: &str, after: &str) -> bool {
        matches!(
            (before, after),
            ("opening", "open") | ("opening" | "open", "closing") | (_, "ended")
        ) && before != "ended"
    }

    fn word(state: Option<&State<usize>>) -> &'static str {
        match state {
            Some(State::Opening) => "opening",
            Some(State::Open(_)) => "open",
            Some(State::Closing) => "closing",
            Some(State::Reserved) => "reserved",
            None => "ended",
        }
    }

    proptest! {
        #[test]
        fn a_key_has_one_tenure_at_a_time_and_it_only_moves_on(
            steps in proptest::collection::vec(step(), 1..200),
        ) {
            let mut states: States<u8, usize> = States::default();
            // Every tenure there ever was, and its word.
            let mut model: Vec<(u8, Tenure, &str)> = Vec::new();
            for step in steps {
                let (at, wanted) = match step {
                    Step::Begin(key, opens) => {
                        let how = if opens { Beginning::Opening } else { Beginning::Reserved };
                        let holder = model.iter().find(|(of, _, it)| *of == key && *it != "ended");
                        let holder = holder.map(|(.., word)| *word);
                        match states.begin(&key, how) {
                            Found::Nobody(tenure) => {
                                prop_assert_eq!(holder, None);
                                prop_assert!(model.iter().all(|(_, it, _)| *it != tenure));
                                let word = if opens { "opening" } else { "reserved" };
                                model.push((key, tenure, word));
                            }
                            Found::Open(which) => {
                                prop_assert_eq!(holder, Some("open"));
                                prop_assert_eq!((model[which].0, model[which].2), (key, "open"));
                            }
                            Found::Busy => prop_assert!(holder.is_some_and(|it| it != "open")),
                        }
                        continue;
                    }
                    Step::Opened(at) => (at, "open"),
                    Step::Closing(at) => (at, "closing"),
                    Step::Ended(at) => (at, "ended"),
                };
                if model.is_empty() {
                    continue;
                }
                let at = at % model.len();
                let (key, tenure, word) = model[at];
                let changed = match wanted {
                    "open" => states.opened(&key, tenure, at),
                    "closing" => states.closing(&key, tenure),
                    _ => states.ended(&key, tenure),
                };
                prop_assert_eq!(changed, follows(word, wanted));
                if changed {
                    model[at].2 = wanted;
                }
                for (key, tenure, expected) in &model {
                    prop_assert_eq!(word_of(&states, *key, *tenure), *expected);
                }
            }
        }
    }

    fn word_of(states: &States<u8, usize>, key: u8, tenure: Tenure) -> &'static str {
        word(states.of(&key, tenure))
    }
}
