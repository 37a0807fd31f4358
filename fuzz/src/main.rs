//! Tries inputs; `cargo xtask fuzz` builds and starts this.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
mod guided;
#[cfg(not(fuzzing))]
mod seeded;

#[cfg(not(fuzzing))]
fn main() -> std::process::ExitCode {
    seeded::main()
}
