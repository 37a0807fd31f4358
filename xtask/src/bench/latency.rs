//! What a delta takes from the agent's write to the reader's read, with the store on, beside the
//! same through a bare pipe.

use anyhow::{Context, ensure};
use rustix::time::{ClockId, clock_gettime};

use super::driver::Driver;
use super::output::{JsonLine, Output};
use super::scene::{Running, Scene};
use super::table::{Beside, Goal, Judgement, Line, Quantity};
use super::{median, percentile};

/// Between two deltas.
pub(super) const PACE_MICROS: u64 = 1000;

/// The middle and the tail of one run, in microseconds.
#[derive(Default)]
struct Spread {
    p50: Vec<f64>,
    p99: Vec<f64>,
}

pub(super) fn measure(scene: &Scene) -> anyhow::Result<Vec<Line>> {
    let n_deltas = scene.choose(2000, 1000);
    let n_rounds = scene.choose(9, 1);
    let script = format!("stamped {n_deltas} {PACE_MICROS}");
    let (mut pipe, mut product) = (Spread::default(), Spread::default());
    for _ in 0..n_rounds {
        let bare = scene.start("the fake agent", scene.fake(Driver::Claude, &script)?)?;
        pipe.add(&delays(bare, n_deltas, stamps_of_agent(Driver::Claude))?);
        let home = scene.fresh_dir()?;
        let running = scene.tieline_on_fake(Driver::Claude, home.path(), &script)?;
        product.add(&delays(running, n_deltas, stamps_of_tieline)?);
    }
    let added = median(&product.p99) - median(&pipe.p99);
    // Where other programs keep every core busy, a wake-up may wait for the scheduler's next tick
    // (4 ms). A round that had the machine for itself shows what is our own.
    let in_rounds: Vec<f64> = product.p99.iter().zip(&pipe.p99).map(|(us, it)| us - it).collect();
    let quietest = in_rounds.iter().copied().fold(f64::INFINITY, f64::min);
    let line = |what: &str, product: &[f64], pipe: &[f64]| Line {
        what: what.to_owned(),
        value: Quantity::Micros(median(product)),
        beside: Some(Beside { what: "bare pipe", value: Quantity::Micros(median(pipe)) }),
        judgement: None,
        note: format!(
            "{n_deltas} deltas, one every {PACE_MICROS} µs, from the agent's clock to the \
             reader's; medians of {n_rounds} rounds in turns"
        ),
    };
    let goal = Goal::Below(Quantity::Micros(1000.0));
    let mut p99 = line("latency p99", &product.p99, &pipe.p99);
    p99.note += &format!("; in the quietest round {quietest:.0} µs were added");
    p99.judgement = Some(Judgement::new("added", Quantity::Micros(added), goal));
    Ok(vec![line("latency p50", &product.p50, &pipe.p50), p99])
}

impl Spread {
    fn add(&mut self, micros: &[f64]) {
        self.p50.push(median(micros));
        self.p99.push(percentile(micros, 0.99));
    }
}

/// Finds the stamps in a line.
pub(super) type Stamps = fn(&[u8]) -> anyhow::Result<Option<String>>;

/// How long each stamped delta took, in microseconds.
fn delays(mut running: Running, n_deltas: usize, stamps: Stamps) -> anyhow::Result<Vec<f64>> {
    let mut output = Output::with_room_for(n_deltas * 400);
    let mut arrivals = Vec::new();
    while output.read(&mut running.stdout)? > 0 {
        arrivals.push((output.bytes().len(), monotonic_nanos()));
    }
    running.finish()?;
    delays_in(output.bytes(), &arrivals, n_deltas, stamps)
}

/// The same in what was read: `arrivals` has the end of each read and its time.
pub(super) fn delays_in(
    bytes: &[u8],
    arrivals: &[(usize, u64)],
    n_deltas: usize,
    stamps: Stamps,
) -> anyhow::Result<Vec<f64>> {
    let mut delays = Vec::with_capacity(n_deltas);
    let mut arrivals = arrivals.iter().peekable();
    let (mut end, mut newest) = (0, 0);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        end += line.len();
        // A line is there when the read that brought its last byte returns.
        while arrivals.next_if(|(until, _)| *until < end).is_some() {}
        let (_, arrived) = **arrivals.peek().context("every byte was read some time")?;
        for stamp in stamps(line)?.iter().flat_map(|text| text.split_whitespace()) {
            let sent: u64 = stamp.parse().with_context(|| format!("no stamp: {stamp:?}"))?;
            // A reader that fell behind is told again what it knows.
            if sent > newest {
                newest = sent;
                delays.push(arrived.saturating_sub(sent) as f64 / 1e3);
            }
        }
    }
    ensure!(delays.len() == n_deltas, "{} of {n_deltas} deltas arrived", delays.len());
    Ok(delays)
}

fn stamps_of_tieline(line: &[u8]) -> anyhow::Result<Option<String>> {
    let line: JsonLine<'_> = serde_json::from_slice(line)?;
    Ok((line.kind == "delta").then(|| line.text.into_owned()))
}

/// What finds the stamps in the lines of an agent.
pub(super) fn stamps_of_agent(driver: Driver) -> Stamps {
    match driver {
        Driver::Claude => |line| Ok(Driver::Claude.delta(line).map(|text| text.to_string())),
        _ => |line| Ok(Driver::Codex.delta(line).map(|text| text.to_string())),
    }
}

/// The clock of the fake agent's stamps.
pub(super) fn monotonic_nanos() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}
