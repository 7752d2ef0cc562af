//! No time zones, where `jiff` looks for its bundled ones.
//!
//! `jq` brings `jiff`, and with it, on platforms without a time-zone database of
//! their own, a copy of all the world's zones: 50 KB of what a page downloads. The
//! sandbox lives in UTC, and `jq` has no function that names another zone but
//! `strptime` with `%Q`. This crate has the interface of the one it stands for.

#![no_std]

/// The TZif data of a zone and its canonical name; there is none.
pub fn get(_name: &str) -> Option<(&'static str, &'static [u8])> {
    None
}

/// The names of all zones; there are none.
pub fn available() -> core::iter::Empty<&'static str> {
    core::iter::empty()
}
