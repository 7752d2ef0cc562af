//! Pure string work: truncation, capture, line numbers, line endings, diffs,
//! checks of images and documents, the matching of patterns. It never does I/O
//! and knows no tool, model or session.

pub(crate) mod blob;
mod capture;
mod decode;
mod diff;
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

pub use capture::{Captured, CapturedOutput, DEFAULT_MAX_CAPTURED_BYTES};
pub(crate) use decode::has_nul;
pub use decode::{NotText, Utf8Decoder, decode_text};
pub use diff::{unified_diff, unified_diff_from};
pub use document::{BadDocument, MAX_PDF_BYTES, MAX_TEXT_BYTES, check_document, sniff_pdf};
pub use encoding::{Encoding, NotEncodable, decode_file};
pub use ending::{LineEnding, TextFormat};
pub(crate) use glob::{Glob, escape_glob};
#[cfg(test)]
pub(crate) use image::tests::PNG;
pub use image::{BadImage, MAX_IMAGE_BYTES, check_image, named_as_image, sniff_image};
pub(crate) use json::from_json;
pub(crate) use locate::plain;
pub use locate::{Located, MatchKind, NearMiss, locate, nearest};
pub use near::near_names;
pub(crate) use number::number_from;
pub use number::{NumberedLines, number_lines};
pub(crate) use pattern::Pattern;
pub use replace::replace_ranges;
pub(crate) use sorted::SortedMap;
pub use truncate::{TruncationMode, truncate_lines, truncate_output};
