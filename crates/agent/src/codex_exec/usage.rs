//! From what a process counts to what a turn used.

use tieline_event::Usage;

/// What the figures at the end of a turn count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counting {
    /// The work of the process, which is the turn.
    Process,
    /// The whole thread, earlier turns and those before a branch included.
    Thread,
    /// One or the other: it changed somewhere between these versions.
    Either,
}

/// What is known at the end of a turn.
#[derive(Debug, PartialEq)]
pub(super) struct Counted {
    /// What the turn used.
    pub(super) turn: Option<Usage>,
    /// What the session has used so far.
    pub(super) total: Option<Usage>,
}

/// What the figures mean, given what the session had used `before`. Nobody knows that after a turn
/// that ended without figures and in the first turn of a branch: then the turn's own part of a
/// thread's figures is not told rather than told wrong.
pub(super) fn counted(counting: Counting, before: Option<&Usage>, figures: Usage) -> Counted {
    let Some(before) = before else {
        return match counting {
            Counting::Process => Counted { turn: Some(figures), total: None },
            Counting::Thread => Counted { turn: None, total: Some(figures) },
            Counting::Either => Counted { turn: None, total: None },
        };
    };
    let added = combine(&figures, before, u64::checked_sub);
    let sum = combine(&figures, before, u64::checked_add);
    match counting {
        Counting::Process => Counted { turn: Some(figures), total: sum },
        Counting::Thread => Counted { turn: added, total: Some(figures) },
        // In a new thread both are the same. A figure that fell cannot be the thread's.
        Counting::Either if *before == Usage::default() => {
            Counted { turn: Some(figures.clone()), total: Some(figures) }
        }
        Counting::Either if added.is_none() => Counted { turn: Some(figures), total: sum },
        Counting::Either => Counted { turn: None, total: None },
    }
}

fn combine(
    one: &Usage,
    other: &Usage,
    operation: impl Fn(u64, u64) -> Option<u64>,
) -> Option<Usage> {
    Some(Usage {
        input_tokens: operation(one.input_tokens, other.input_tokens)?,
        cached_input_tokens: operation(one.cached_input_tokens, other.cached_input_tokens)?,
        cache_write_tokens: operation(one.cache_write_tokens, other.cache_write_tokens)?,
        output_tokens: operation(one.output_tokens, other.output_tokens)?,
        reasoning_tokens: operation(one.reasoning_tokens, other.reasoning_tokens)?,
        context_window: one.context_window,
        cost_usd: None,
        context_used: None,
    })
}

#[test]
fn a_figure_is_the_turn_s_only_when_that_is_certain() {
    let of = |n: u64| Usage { input_tokens: n, output_tokens: n, ..Usage::default() };
    let told = |counting, before: Option<u64>, figures| {
        let Counted { turn, total } = counted(counting, before.map(of).as_ref(), of(figures));
        (turn.map(|it| it.input_tokens), total.map(|it| it.input_tokens))
    };
    assert_eq!(told(Counting::Process, Some(3), 5), (Some(5), Some(8)));
    assert_eq!(told(Counting::Process, None, 5), (Some(5), None));
    assert_eq!(told(Counting::Thread, Some(3), 5), (Some(2), Some(5)));
    assert_eq!(told(Counting::Thread, None, 5), (None, Some(5)));
    assert_eq!(told(Counting::Thread, Some(7), 5), (None, Some(5)), "it began anew");
    assert_eq!(told(Counting::Either, Some(0), 5), (Some(5), Some(5)));
    assert_eq!(told(Counting::Either, Some(7), 5), (Some(5), Some(12)));
    assert_eq!(told(Counting::Either, Some(3), 5), (None, None));
}
