//! The host of the processes that this crate's tests start: the `main` of a test program is not
//! ours to begin.

fn main() {
    tieline_proc::init();
}
