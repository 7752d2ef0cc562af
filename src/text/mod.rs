//! Pure string work: truncation, capture, line numbers, line endings, diffs,
//! checks of images and documents, the matching of patterns. It never does I/O
//! and knows no tool, model or session.

pub(crate) mod blob;
mod capture;
mod decode;
pub(crate) mod diff;
mod document;
mod encoding;
mod ending;
mod glob;
mod image;
mod json;
mod locate;
mod near;
mod number;
mod pattern;
mod replace;
mod sorted;
mod truncate;

pub(crate) use capture::CapturedOutput;
pub(crate) use decode::has_nul;
pub(crate) use decode::{NotText, Utf8Decoder, decode_text};
pub use diff::unified_diff;
pub(crate) use diff::unified_diff_from;
pub(crate) use document::{check_document, sniff_pdf};
pub(crate) use encoding::{Encoding, NotEncodable, decode_file};
pub(crate) use ending::{LineEnding, TextFormat};
pub(crate) use glob::{Glob, escape_glob};
#[cfg(test)]
pub(crate) use image::tests::PNG;
pub(crate) use image::{check_image, named_as_image, sniff_image};
pub(crate) use json::from_json;
pub(crate) use locate::plain;
pub(crate) use locate::{Located, MatchKind, NearMiss, locate, nearest};
pub(crate) use near::near_names;
pub(crate) use number::number_from;
pub(crate) use number::number_lines;
pub(crate) use pattern::Pattern;
pub(crate) use replace::replace_ranges;
pub(crate) use sorted::SortedMap;
pub(crate) use truncate::truncate_lines;
pub use truncate::{TruncationMode, truncate_output};
