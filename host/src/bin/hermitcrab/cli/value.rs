//! Values of options, from their text.

use std::path::PathBuf;
use std::str::FromStr;

/// A name and a file, `NAME=FILE`.
pub(super) fn program(text: &str) -> Result<(String, PathBuf), &'static str> {
    text.split_once('=')
        .filter(|(name, file)| !name.is_empty() && !name.contains('/') && !file.is_empty())
        .map(|(name, file)| (name.to_owned(), PathBuf::from(file)))
        .ok_or("give a name and a file, such as jsfmt=jsfmt.wasm")
}

/// A seed, as hexadecimal digits.
pub(super) fn seed(text: &str) -> Result<[u8; 32], &'static str> {
    let wrong = "give 64 hexadecimal digits";
    let digits = text.as_bytes();
    let mut seed = [0; 32];
    if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(wrong);
    }
    for (at, byte) in seed.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| wrong)?;
    }
    Ok(seed)
}

/// The number of a shard and of all, `i/n`.
pub(super) fn shard(text: &str) -> Result<(u32, u32), &'static str> {
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number > 0);
    text.split_once('/')
        .and_then(|(shard, of)| Some((number(shard)?, number(of)?)))
        .filter(|(shard, of)| shard <= of)
        .ok_or("give the number of the shard and of all, such as 1/4")
}

/// A price in US dollars.
pub(super) fn dollars(text: &str) -> Result<f64, &'static str> {
    let number = text.trim_start_matches('$').parse().ok();
    number
        .filter(|number: &f64| number.is_finite() && *number > 0.0)
        .ok_or("give a number above 0")
}

/// A number that something may reach.
pub(super) fn limit<N: FromStr + PartialOrd + From<u8>>(text: &str) -> Result<N, &'static str> {
    let number = text.parse().ok().filter(|number| *number >= N::from(1));
    number.ok_or("give a whole number from 1 on")
}
