//! What was measured, as a table for people or as JSON.

use std::fs;
use std::io::{self, Write};

use serde::Serialize;

use super::scene::Scene;

/// One measurement.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    pub(super) what: String,
    pub(super) value: Quantity,
    /// The floor or peer, measured in the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) beside: Option<Beside>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) judgement: Option<Judgement>,
    /// How it was measured, and whatever a reader of the number must know.
    pub(super) note: String,
}

#[derive(Debug, Serialize)]
pub(super) struct Beside {
    pub(super) what: &'static str,
    pub(super) value: Quantity,
}

/// A number and the goal it has.
#[derive(Debug, Serialize)]
pub(super) struct Judgement {
    what: &'static str,
    number: Quantity,
    goal: String,
    ok: bool,
}

/// A number with its unit.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "unit", content = "number", rename_all = "snake_case")]
pub(super) enum Quantity {
    LinesPerSecond(f64),
    Micros(f64),
    Bytes(f64),
    Ratio(f64),
    /// It could not be measured; the note says why.
    Missing,
}

/// What a number is to be.
#[derive(Debug, Clone, Copy)]
pub(super) enum Goal {
    AtLeast(Quantity),
    AtMost(Quantity),
    Below(Quantity),
}

impl Judgement {
    pub(super) fn new(what: &'static str, number: Quantity, goal: Goal) -> Self {
        let (sign, limit, ok) = match goal {
            Goal::AtLeast(limit) => ("≥", limit, number.number() >= limit.number()),
            Goal::AtMost(limit) => ("≤", limit, number.number() <= limit.number()),
            Goal::Below(limit) => ("<", limit, number.number() < limit.number()),
        };
        Self { what, number, goal: format!("{sign} {}", limit.show()), ok }
    }
}

impl Quantity {
    fn number(self) -> f64 {
        match self {
            Self::LinesPerSecond(it) | Self::Micros(it) | Self::Bytes(it) | Self::Ratio(it) => it,
            Self::Missing => f64::NAN,
        }
    }

    fn show(self) -> String {
        match self {
            Self::LinesPerSecond(it) => format!("{:.0} k lines/s", it / 1e3),
            Self::Micros(it) if it.abs() >= 1000.0 => format!("{:.2} ms", it / 1e3),
            Self::Micros(it) => format!("{it:.2} µs"),
            Self::Bytes(it) if it >= 1024.0 * 1024.0 => format!("{:.1} MB", it / 1e6),
            Self::Bytes(it) => format!("{:.0} KiB", it / 1024.0),
            Self::Ratio(it) => format!("{it:.2}"),
            Self::Missing => "is missing".to_owned(),
        }
    }
}

/// All measurements and the conditions they were made under.
#[derive(Debug, Serialize)]
pub(super) struct Table {
    n_cores: usize,
    /// Of the last minute, before and after.
    load: (f64, f64),
    file_system: String,
    quick: bool,
    lines: Vec<Line>,
}

impl Table {
    pub(super) fn new(scene: &Scene) -> anyhow::Result<Self> {
        Ok(Self {
            n_cores: std::thread::available_parallelism()?.get(),
            load: (load()?, 0.0),
            file_system: scene.file_system()?,
            quick: scene.quick,
            lines: Vec::new(),
        })
    }

    pub(super) fn extend(&mut self, lines: Vec<Line>) {
        self.lines.extend(lines);
    }

    pub(super) fn print(mut self, json: bool) -> anyhow::Result<()> {
        self.load.1 = load()?;
        let mut stdout = io::stdout().lock();
        if json {
            serde_json::to_writer_pretty(&mut stdout, &self)?;
            writeln!(stdout)?;
        } else {
            stdout.write_all(self.to_text().as_bytes())?;
        }
        Ok(stdout.flush()?)
    }

    fn to_text(&self) -> String {
        let mut rows = vec![["what", "value", "beside", "ratio or goal", ""].map(str::to_owned)];
        rows.extend(self.lines.iter().map(Line::cells));
        let widths: [usize; 5] = std::array::from_fn(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        });
        let mut text = String::new();
        for row in &rows {
            let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
            text += cells.collect::<Vec<_>>().join(" | ").trim_end();
            text += "\n";
        }
        text += "\n";
        for line in &self.lines {
            text += &format!("{}: {}\n", line.what, line.note);
        }
        text += &format!(
            "{} cores, load {:.1} before and {:.1} after, store on {}{}\n",
            self.n_cores,
            self.load.0,
            self.load.1,
            self.file_system,
            if self.quick { ", quick: only an order of magnitude" } else { "" },
        );
        text
    }
}

impl Line {
    fn cells(&self) -> [String; 5] {
        let beside = self.beside.as_ref();
        let judgement = self.judgement.as_ref();
        [
            self.what.clone(),
            self.value.show(),
            beside.map_or_else(String::new, |it| format!("{} {}", it.what, it.value.show())),
            judgement
                .map_or_else(String::new, |it| {
                    format!("{} {}, goal {}", it.what, it.number.show(), it.goal)
                })
                .trim_start()
                .to_owned(),
            judgement.map_or("", |it| if it.ok { "ok" } else { "missed" }).to_owned(),
        ]
    }
}

/// The load of the last minute.
fn load() -> anyhow::Result<f64> {
    let text = fs::read_to_string("/proc/loadavg")?;
    Ok(text.split_whitespace().next().unwrap_or_default().parse()?)
}
