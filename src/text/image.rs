//! Images by their bytes: type, size and structure.
//!
//! An image that a provider refuses would be refused again with every later
//! request, because history is append-only. So what is cut off, empty, too
//! large or not what its name says never gets in.

use std::fmt;

/// Largest image that providers take: 5 MB.
pub(crate) const MAX_IMAGE_BYTES: usize = 5 * 1024 * 1024;

/// Longest side that providers take, in pixels.
const MAX_SIDE: u32 = 8000;

/// Why an image must not reach a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadImage {
    /// The bytes are none of png, jpeg, gif, webp.
    Unknown,
    /// More than [`MAX_IMAGE_BYTES`].
    TooLarge(usize),
    /// A side of 0 or of more than 8000 pixels.
    Dimensions(u32, u32),
    /// The file ends early or its parts do not fit together.
    Damaged(&'static str),
}

impl fmt::Display for BadImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("not a PNG, JPEG, GIF or WebP image"),
            Self::TooLarge(size) => write!(
                f,
                "image of {size} bytes, the limit is {MAX_IMAGE_BYTES} bytes"
            ),
            Self::Dimensions(width, height) => write!(
                f,
                "image of {width}x{height} pixels, each side must be 1 to {MAX_SIDE}"
            ),
            Self::Damaged(kind) => write!(f, "damaged or incomplete {kind} image"),
        }
    }
}

/// Media type by the first bytes, if it is an image that models can see.
pub(crate) fn sniff_image(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    }
}

/// Whether the extension of `path` promises an image that models can see.
pub(crate) fn named_as_image(path: &str) -> bool {
    let extension = path.rsplit('.').next().unwrap_or_default();
    ["png", "jpg", "jpeg", "gif", "webp"]
        .iter()
        .any(|known| extension.eq_ignore_ascii_case(known))
}

/// Media type of an image that is fit for a model, or why it is not.
pub(crate) fn check_image(bytes: &[u8]) -> Result<&'static str, BadImage> {
    let media_type = sniff_image(bytes).ok_or(BadImage::Unknown)?;
    if bytes.len() > MAX_IMAGE_BYTES {
        return Err(BadImage::TooLarge(bytes.len()));
    }
    let (kind, size) = match media_type {
        "image/png" => ("PNG", png_size(bytes)),
        "image/jpeg" => ("JPEG", jpeg_size(bytes)),
        "image/gif" => ("GIF", gif_size(bytes)),
        _ => ("WebP", webp_size(bytes)),
    };
    let (width, height) = size.ok_or(BadImage::Damaged(kind))?;
    if width == 0 || height == 0 || width > MAX_SIDE || height > MAX_SIDE {
        return Err(BadImage::Dimensions(width, height));
    }
    Ok(media_type)
}

/// Walks the chunks from `IHDR` to `IEND` (PNG specification 5.3).
fn png_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut rest = bytes.get(8..)?;
    let mut size = None;
    let mut data = false;
    loop {
        let length = usize::try_from(u32_be(rest, 0)?).ok()?;
        let kind = rest.get(4..8)?;
        let body = rest.get(8..8usize.checked_add(length)?)?;
        rest = rest.get(length.checked_add(12)?..)?;
        match kind {
            b"IHDR" => size = Some((u32_be(body, 0)?, u32_be(body, 4)?)),
            b"IDAT" => data = true,
            b"IEND" => return size.filter(|_| data),
            _ if size.is_none() => return None,
            _ => {}
        }
    }
}

/// Walks the segments to the frame header; the end marker must be there too.
fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    if !bytes.windows(2).rev().any(|pair| pair == [0xFF, 0xD9]) {
        return None;
    }
    let mut at = 2;
    loop {
        let [marker, code] = *bytes.get(at..at + 2)? else {
            return None;
        };
        if marker != 0xFF {
            return None;
        }
        match code {
            // Fill bytes, and markers without a body.
            0xFF => at += 1,
            0x01 | 0xD0..=0xD8 => at += 2,
            // Frame headers: all of C0 to CF but the tables C4, C8 and CC.
            0xC0..=0xC3 | 0xC5..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF => {
                let height = u16_be(bytes, at + 5)?;
                let width = u16_be(bytes, at + 7)?;
                return Some((width, height));
            }
            0xD9 | 0xDA => return None,
            _ => at += 2 + usize::try_from(u16_be(bytes, at + 2)?).ok()?.max(2),
        }
    }
}

/// Walks the blocks to the trailer (GIF89a specification, appendix A).
fn gif_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let size = (u16_le(bytes, 6)?, u16_le(bytes, 8)?);
    let mut at = 13 + color_table(*bytes.get(10)?);
    let mut images = 0;
    loop {
        match *bytes.get(at)? {
            0x3B => return (images > 0).then_some(size),
            0x21 => at = skip_sub_blocks(bytes, at + 2)?,
            0x2C => {
                images += 1;
                let table = color_table(*bytes.get(at + 9)?);
                at = skip_sub_blocks(bytes, at + 11 + table)?;
            }
            _ => return None,
        }
    }
}

fn color_table(flags: u8) -> usize {
    if flags & 0x80 == 0 {
        0
    } else {
        3 << ((flags & 7) + 1)
    }
}

fn skip_sub_blocks(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *bytes.get(at)? {
            0 => return Some(at + 1),
            length => at += 1 + usize::from(length),
        }
    }
}

/// Reads the first chunk of the container (RFC 9649).
fn webp_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let length = usize::try_from(u32_le(bytes, 4)?).ok()?;
    if bytes.len() < length.checked_add(8)? {
        return None;
    }
    match bytes.get(12..16)? {
        b"VP8 " => {
            if bytes.get(23..26)? != [0x9D, 0x01, 0x2A] {
                return None;
            }
            Some((u16_le(bytes, 26)? & 0x3FFF, u16_le(bytes, 28)? & 0x3FFF))
        }
        b"VP8L" => {
            if *bytes.get(20)? != 0x2F {
                return None;
            }
            let bits = u32_le(bytes, 21)?;
            Some(((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1))
        }
        b"VP8X" => {
            let width = u32_le(bytes, 24)? & 0x00FF_FFFF;
            // Three bytes each; the last one ends the chunk.
            let height = u32_le(bytes, 26)? >> 8;
            Some((width + 1, height + 1))
        }
        _ => None,
    }
}

fn u16_be(bytes: &[u8], at: usize) -> Option<u32> {
    let [a, b] = *bytes.get(at..at.checked_add(2)?)? else {
        return None;
    };
    Some(u32::from(u16::from_be_bytes([a, b])))
}

fn u16_le(bytes: &[u8], at: usize) -> Option<u32> {
    u16_be(bytes, at).map(|value| (value >> 8) | (value & 0xFF) << 8)
}

fn u32_be(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u16_be(bytes, at)? << 16 | u16_be(bytes, at.checked_add(2)?)?)
}

fn u32_le(bytes: &[u8], at: usize) -> Option<u32> {
    u32_be(bytes, at).map(u32::swap_bytes)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// One white pixel as PNG.
    pub(crate) const PNG: &[u8] = &[
        0x89, b'P', b'N', b'G', 13, 10, 26, 10, 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0,
        0, 0, 1, 8, 0, 0, 0, 0, 0x3A, 0x7E, 0x9B, 0x55, 0, 0, 0, 10, b'I', b'D', b'A', b'T', 0x78,
        0x9C, 0x63, 0xF8, 0x0F, 0, 1, 1, 1, 0, 0x1B, 0xB6, 0xEE, 0x56, 0, 0, 0, 0, b'I', b'E',
        b'N', b'D', 0xAE, 0x42, 0x60, 0x82,
    ];
    const GIF: &[u8] = b"GIF89a\x02\0\x01\0\0\0\0\x2C\0\0\0\0\x02\0\x01\0\0\x02\x02\x44\x01\0\x3B";
    const JPEG: &[u8] =
        b"\xFF\xD8\xFF\xE0\0\x04ab\xFF\xC0\0\x0B\x08\0\x03\0\x04\x01\x01\x11\0\xFF\xDA\0\x02x\xFF\xD9";
    const WEBP: &[u8] = b"RIFF\x16\0\0\0WEBPVP8L\x0A\0\0\0\x2F\x04\xC0\0\0zzzzz";

    fn check(bytes: &[u8], expected: Result<&str, BadImage>) {
        assert_eq!(check_image(bytes), expected);
    }

    #[test]
    fn good_images() {
        check(PNG, Ok("image/png"));
        check(GIF, Ok("image/gif"));
        check(JPEG, Ok("image/jpeg"));
        check(WEBP, Ok("image/webp"));
    }

    #[test]
    fn sizes() {
        assert_eq!(png_size(PNG), Some((1, 1)));
        assert_eq!(gif_size(GIF), Some((2, 1)));
        assert_eq!(jpeg_size(JPEG), Some((4, 3)));
        assert_eq!(webp_size(WEBP), Some((5, 4)));
    }

    #[test]
    fn every_cut_is_noticed() {
        for (image, kind) in [(PNG, "PNG"), (GIF, "GIF"), (JPEG, "JPEG"), (WEBP, "WebP")] {
            for end in 0..image.len() {
                let expected = match sniff_image(&image[..end]) {
                    Some(_) => BadImage::Damaged(kind),
                    None => BadImage::Unknown,
                };
                check(&image[..end], Err(expected));
            }
        }
    }

    #[test]
    fn limits() {
        let mut large = PNG.to_vec();
        large.resize(MAX_IMAGE_BYTES + 1, 0);
        check(&large, Err(BadImage::TooLarge(MAX_IMAGE_BYTES + 1)));
        let mut wide = PNG.to_vec();
        wide[18] = 0x40;
        check(&wide, Err(BadImage::Dimensions(0x4001, 1)));
        let mut empty = PNG.to_vec();
        empty[19] = 0;
        check(&empty, Err(BadImage::Dimensions(0, 1)));
    }

    #[test]
    fn names() {
        assert!(named_as_image("a/b.PNG"));
        assert!(!named_as_image("a.png/b"));
        assert!(!named_as_image("png.rs"));
    }
}
