//! How a workspace is read, and what in it is protected.
//!
//! A workspace is somebody else's: a file in it may be a link to our environment, a pipe that nobody
//! writes to, or as long as the disk. So nothing in it is opened by its path alone.
//!
//! # How it works
//!
//! [`beneath`] opens a path below a directory and nowhere else. [`Tree`] is such a directory, of which
//! regular files are read, and only so much of them; [`named()`] does the same for a file that the user
//! named, wherever it is. `walk` lists what is below a directory, as git would see it. [`protected`] is
//! the table of what other programs run or obey, for whoever lets others write.
//!
//! # Invariants
//!
//! * What is read is a regular file of a disk: no device, no pipe, nothing of the kernel's.
//! * No link leads out of a [`Tree`], also none that is put there meanwhile.
//! * Every read has a bound, and nothing waits for somebody to write.

pub mod beneath;
mod open;
pub mod protected;
mod real;
mod repository;
#[cfg(feature = "walk")]
pub mod walk;

pub use open::{Content, Entry, Error, Seen, Sort, Tree, named, without_links};
pub use protected::{Guard, Homes, Obeyed};
pub use real::{Astray, Real, real};
pub use repository::Repository;
