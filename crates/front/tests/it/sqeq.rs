//! The queue protocol with a whole hub behind it, and an agent that does what its prompt says.

mod client;
mod listen;
mod play;
mod sequences;
mod session;
mod table;
