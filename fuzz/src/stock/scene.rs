//! Changes to the scene of a driver that keep its lines readable: agents whose ids, parents, starts and
//! ends are not what one would expect.

use std::ops::Range;

use fastrand::Rng;

use super::LONGEST;
use crate::scan;

#[cfg(test)]
mod tests;

/// Words in the lines that begin or end something, in any of the protocols.
const EDGES: &[&[u8]] = &[
    b"start",
    b"begin",
    b"complet",
    b"_end",
    b"stop",
    b"result",
    b"abort",
    b"notification",
    b"turn",
    b"cancel",
];

/// A field of an object: where its key is, and where its value.
#[derive(Debug, Clone)]
struct Field {
    key: Range<usize>,
    value: Range<usize>,
}

/// Changes a scene in one way.
pub(super) fn change(input: &mut Vec<u8>, rng: &mut Rng) {
    match rng.u8(0..10) {
        0..=1 => alias_one(input, rng),
        2 => alias_all(input, rng),
        3..=4 => other_parent(input, rng),
        5 => chain(input, rng),
        6 => drop_edge(input, rng),
        7 => double_edge(input, rng),
        8 => swap(input, rng),
        _ => shuffle(input, rng),
    }
}

/// One id in the place of another.
fn alias_one(input: &mut Vec<u8>, rng: &mut Rng) {
    let ids = ids(input);
    let (Some(one), Some(other)) = (rng.choice(&ids), rng.choice(&ids)) else { return };
    let other = text(input, &other.value);
    input.splice(one.value.clone(), other);
}

/// One id in the place of another, wherever it stands.
fn alias_all(input: &mut Vec<u8>, rng: &mut Rng) {
    let ids = ids(input);
    let (Some(one), Some(other)) = (rng.choice(&ids), rng.choice(&ids)) else { return };
    let (one, other) = (text(input, &one.value), text(input, &other.value));
    let same = ids.iter().rev().filter(|field| text(input, &field.value) == one);
    for place in same.map(|field| field.value.clone()).collect::<Vec<_>>() {
        input.splice(place, other.iter().copied());
    }
}

/// What a thing is a part of becomes something else, most often the thing itself.
fn other_parent(input: &mut Vec<u8>, rng: &mut Rng) {
    let fields = fields(input, 0..input.len());
    let parents: Vec<&Field> = fields.iter().filter(|field| is_parent(input, field)).collect();
    let Some(parent) = rng.choice(parents) else { return };
    let line = scan::line_at(input, parent.key.start);
    let near = if rng.bool() { line } else { 0..input.len() };
    let ids: Vec<&Field> = fields
        .iter()
        .filter(|it| is_id(input, it) && !is_parent(input, it) && near.contains(&it.key.start))
        .collect();
    let Some(id) = rng.choice(ids) else { return };
    let id = text(input, &id.value);
    input.splice(parent.value.clone(), id);
}

/// A line many times over, each a part of the one before it; some chains are rings.
fn chain(input: &mut Vec<u8>, rng: &mut Rng) {
    let all = fields(input, 0..input.len());
    let parents: Vec<&Field> = all.iter().filter(|field| is_parent(input, field)).collect();
    let Some(parent) = rng.choice(parents).cloned() else { return };
    let line = scan::line_at(input, parent.key.start);
    // A string that has lost its end goes on in other lines.
    let is_within = |it: &Field| line.contains(&it.key.start) && it.value.end <= line.end;
    let own: Vec<&Field> = all
        .iter()
        .filter(|it| is_id(input, it) && !is_parent(input, it) && is_within(it))
        .collect();
    let Some(id) = rng.choice(own).cloned() else { return };
    if !is_within(&parent) {
        return;
    }
    let room = LONGEST.saturating_sub(input.len()) / line.len().max(1);
    let n_links = (1usize << rng.u8(1..10)).min(room);
    let is_ring = rng.bool();
    let mut links = Vec::new();
    for n in 0..n_links {
        let before = if n == 0 && is_ring { n_links } else { n };
        let mut changes = [
            (id.value.clone(), format!("\"link{}\"", n + 1)),
            (parent.value.clone(), format!("\"link{before}\"")),
        ];
        changes.sort_by_key(|(place, _)| std::cmp::Reverse(place.start));
        let mut link = text(input, &line);
        for (place, word) in changes {
            link.splice(place.start - line.start..place.end - line.start, word.bytes());
        }
        if !link.ends_with(b"\n") {
            link.push(b'\n');
        }
        links.extend(link);
    }
    input.splice(line.start..line.start, links);
}

fn drop_edge(input: &mut Vec<u8>, rng: &mut Rng) {
    if let Some(edge) = edge(input, rng) {
        input.drain(edge);
    }
}

/// A start or an end comes twice: at once, or anywhere.
fn double_edge(input: &mut Vec<u8>, rng: &mut Rng) {
    let Some(edge) = edge(input, rng) else { return };
    let line = text(input, &edge);
    let at = if rng.bool() { edge.start } else { any_line(input, rng).start };
    input.splice(at..at, line);
}

fn swap(input: &mut Vec<u8>, rng: &mut Rng) {
    let (one, other) = (any_line(input, rng), any_line(input, rng));
    let (first, second) = if one.start <= other.start { (one, other) } else { (other, one) };
    if first.end > second.start {
        return;
    }
    let (earlier, later) = (text(input, &first), text(input, &second));
    input.splice(second, earlier);
    input.splice(first, later);
}

/// Some lines that follow each other come in another order.
fn shuffle(input: &mut Vec<u8>, rng: &mut Rng) {
    let start = any_line(input, rng).start;
    let rest = input.get(start..).unwrap_or_default();
    let lines: Vec<&[u8]> = rest.split_inclusive(|byte| *byte == b'\n').collect();
    let n_lines = lines.len().min(rng.usize(2..=8));
    let mut some: Vec<Vec<u8>> = lines.iter().take(n_lines).map(|line| line.to_vec()).collect();
    let length: usize = some.iter().map(Vec::len).sum();
    match rng.bool() {
        true => rng.shuffle(&mut some),
        false => some.reverse(),
    }
    input.splice(start..start + length, some.concat());
}

fn any_line(input: &[u8], rng: &mut Rng) -> Range<usize> {
    scan::line_at(input, rng.usize(0..=input.len()))
}

/// A line that begins or ends something.
fn edge(input: &[u8], rng: &mut Rng) -> Option<Range<usize>> {
    let word = rng.choice(EDGES).copied()?;
    let places: Vec<usize> = input
        .windows(word.len())
        .enumerate()
        .filter(|(_, window)| *window == word)
        .map(|(at, _)| at)
        .collect();
    rng.choice(places).map(|at| scan::line_at(input, at))
}

/// The fields of all objects there, those within others included.
fn fields(input: &[u8], within: Range<usize>) -> Vec<Field> {
    let start = within.start;
    let tokens = scan::tokens(input.get(within).unwrap_or_default());
    let tokens: Vec<Range<usize>> =
        tokens.into_iter().map(|it| it.start + start..it.end + start).collect();
    let pairs = tokens.iter().zip(tokens.iter().skip(1));
    pairs
        .filter(|(key, value)| {
            let between = input.get(key.end..value.start).unwrap_or_default();
            input.get(key.start) == Some(&b'"') && between.trim_ascii() == b":"
        })
        .map(|(key, value)| Field { key: key.clone(), value: value.clone() })
        .collect()
}

fn ids(input: &[u8]) -> Vec<Field> {
    let mut fields = fields(input, 0..input.len());
    fields.retain(|field| is_id(input, field));
    fields
}

fn is_id(input: &[u8], field: &Field) -> bool {
    let key = input.get(field.key.clone()).unwrap_or_default();
    [&b"\"id\""[..], b"_id\"", b"Id\""].iter().any(|end| key.ends_with(end))
}

fn is_parent(input: &[u8], field: &Field) -> bool {
    let key = input.get(field.key.clone()).unwrap_or_default();
    key.windows(5).any(|window| window == b"arent")
}

fn text(input: &[u8], place: &Range<usize>) -> Vec<u8> {
    input.get(place.clone()).unwrap_or_default().to_vec()
}
