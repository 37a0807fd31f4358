//! The store from outside: processes that die, disks that fill, files that break.

#[cfg(test)]
mod append;
#[cfg(test)]
mod files;
#[cfg(test)]
mod fork;
#[cfg(test)]
mod frames;
#[cfg(test)]
mod full;
#[cfg(test)]
mod kill;
#[cfg(test)]
mod lease;
mod locked;
mod mail;
#[cfg(test)]
mod place;
mod remove;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod support;
