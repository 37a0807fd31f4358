//! Where the lines of a chunk are in a file.
//!
//! Models copy lines almost, not quite: spaces at the end get lost, an indentation is off, a dash was
//! a longer one. So there are four passes, each over all the rest of the file, from the strictest to
//! the mildest, and the first hit counts.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cell::OnceCell;

/// How many lines may be compared for one patch. A scan is linear in the file, so this is reached
/// only by thousands of chunks that each need several scans of a very long file.
pub(crate) const MOST_STEPS: u64 = 1 << 27;

/// What is left of the comparisons that a patch may cost.
#[derive(Debug)]
pub(crate) struct Budget(u64);

/// The comparisons are used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exhausted;

impl Budget {
    pub(crate) fn new(n_steps: u64) -> Self {
        Self(n_steps)
    }

    fn spend(&mut self, n_steps: u64) -> Result<(), Exhausted> {
        self.0 = self.0.checked_sub(n_steps).ok_or(Exhausted)?;
        Ok(())
    }
}

/// Where to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// Anywhere from this line on.
    Line(usize),
    /// At the end of the file, and not before this line.
    End(usize),
}

/// The lines of a file in the forms of the four passes, made when they are first needed.
pub(crate) struct Lines<'a> {
    /// Without their ends.
    bare: Vec<&'a str>,
    right: OnceCell<Vec<&'a str>>,
    both: OnceCell<Vec<&'a str>>,
    plain: OnceCell<Vec<Cow<'a, str>>>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(bare: Vec<&'a str>) -> Self {
        Self { bare, right: OnceCell::new(), both: OnceCell::new(), plain: OnceCell::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.bare.len()
    }

    /// The first place of these lines.
    pub(crate) fn seek(
        &self,
        wanted: &[&str],
        from: From,
        budget: &mut Budget,
    ) -> Result<Option<usize>, Exhausted> {
        if wanted.len() > self.bare.len() {
            return Ok(None);
        }
        if let found @ Some(_) = find(&self.bare, wanted, from, budget)? {
            return Ok(found);
        }
        let trimmed = |trim: fn(&str) -> &str| wanted.iter().map(|it| trim(it)).collect::<Vec<_>>();
        let right = self.right.get_or_init(|| self.bare.iter().map(|it| it.trim_end()).collect());
        if let found @ Some(_) = find(right, &trimmed(str::trim_end), from, budget)? {
            return Ok(found);
        }
        let both = self.both.get_or_init(|| self.bare.iter().map(|it| it.trim()).collect());
        if let found @ Some(_) = find(both, &trimmed(str::trim), from, budget)? {
            return Ok(found);
        }
        let plain = self.plain.get_or_init(|| self.bare.iter().map(|it| plain(it)).collect());
        let wanted: Vec<Cow<'_, str>> = wanted.iter().map(|it| self::plain(it)).collect();
        find(plain, &wanted, from, budget)
    }
}

fn find<T, U>(
    lines: &[T],
    wanted: &[U],
    from: From,
    budget: &mut Budget,
) -> Result<Option<usize>, Exhausted>
where
    T: PartialEq<U>,
    U: PartialEq,
{
    match from {
        From::Line(cursor) => scan(lines, wanted, cursor, budget),
        From::End(cursor) => {
            budget.spend(wanted.len() as u64)?;
            let at = lines.len().saturating_sub(wanted.len());
            let is_there = at >= cursor && lines.get(at..).is_some_and(|end| end == wanted);
            Ok(is_there.then_some(at))
        }
    }
}

/// Finds a sequence in one pass over the lines, however much it repeats itself (Knuth, Morris and
/// Pratt): a naive search would compare each line with every line that is wanted.
fn scan<T, U>(
    lines: &[T],
    wanted: &[U],
    cursor: usize,
    budget: &mut Budget,
) -> Result<Option<usize>, Exhausted>
where
    T: PartialEq<U>,
    U: PartialEq,
{
    let Some(first) = wanted.first() else { return Ok(Some(cursor)) };
    let rest = lines.get(cursor..).unwrap_or_default();
    // Mostly the first line is nowhere else, and then there is nothing to prepare.
    let Some(skipped) = rest.iter().position(|line| line == first) else {
        budget.spend(rest.len() as u64)?;
        return Ok(None);
    };
    budget.spend(skipped as u64 + 2 * wanted.len() as u64)?;
    let borders = borders(wanted);
    let mut n_same = 0;
    for (index, line) in lines.iter().enumerate().skip(cursor + skipped) {
        budget.spend(1)?;
        while n_same > 0 && wanted.get(n_same).is_none_or(|it| line != it) {
            budget.spend(1)?;
            n_same = borders.get(n_same - 1).copied().unwrap_or(0);
        }
        if wanted.get(n_same).is_some_and(|it| line == it) {
            n_same += 1;
        }
        if n_same == wanted.len() {
            return Ok(Some(index + 1 - n_same));
        }
    }
    Ok(None)
}

/// For each beginning of a sequence, how long its longest proper beginning is that is also its end.
fn borders<U: PartialEq>(wanted: &[U]) -> Vec<usize> {
    let mut borders = Vec::with_capacity(wanted.len());
    let mut length: usize = 0;
    for (index, item) in wanted.iter().enumerate() {
        if index > 0 {
            while length > 0 && wanted.get(length) != Some(item) {
                length = borders.get(length - 1).copied().unwrap_or(0);
            }
            if wanted.get(length) == Some(item) {
                length += 1;
            }
        }
        borders.push(length);
    }
    borders
}

/// A line with plain dashes, quotes and spaces.
fn plain(line: &str) -> Cow<'_, str> {
    let line = line.trim();
    match line.is_ascii() {
        true => Cow::Borrowed(line),
        false => Cow::Owned(line.chars().map(plain_char).collect()),
    }
}

fn plain_char(it: char) -> char {
    match it {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}
