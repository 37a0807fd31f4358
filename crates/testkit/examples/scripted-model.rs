//! Runs the scripted model for an agent that is started by hand.
//!
//! Prints the URL, then obeys `release GATE N`, `reached GATE N`, `abandoned GATE N`
//! and `requests` from stdin until it closes.

use std::io::{self, BufRead, Write};

use tieline_testkit::model::ModelServer;

// The workers serve while this thread blocks on stdin.
#[tokio::main(worker_threads = 1)]
async fn main() -> io::Result<()> {
    let server = ModelServer::start().await;
    writeln!(io::stdout(), "{}", server.url())?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["release", gate, n] => server.gate(gate).release(number(n)),
            ["reached", gate, n] => server.gate(gate).reached(number(n)).await,
            ["abandoned", gate, n] => server.gate(gate).abandoned(number(n)).await,
            ["requests"] => {
                for request in server.requests() {
                    let method = &request.method;
                    writeln!(io::stdout(), "{method} {} {}", request.path, request.body)?;
                }
            }
            _ => {}
        }
        writeln!(io::stdout(), "ok")?;
    }
    Ok(())
}

fn number(text: &str) -> usize {
    text.parse().unwrap_or(1)
}
