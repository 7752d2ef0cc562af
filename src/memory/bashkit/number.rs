//! Numbers as the GNU tools read and print them.

/// A number operand and how many digits its fraction has.
pub(super) struct Operand {
    pub(super) value: f64,
    pub(super) fraction: usize,
}

impl Operand {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let trimmed = text.trim_start();
        if !trimmed
            .trim_start_matches(['+', '-'])
            .starts_with(|c: char| c.is_ascii_digit() || c == '.')
        {
            return None;
        }
        let value: f64 = trimmed.parse().ok()?;
        let (mantissa, exponent) = match trimmed.find(['e', 'E']) {
            Some(at) => (&trimmed[..at], trimmed[at + 1..].parse::<i64>().ok()?),
            None => (trimmed, 0),
        };
        let digits = mantissa
            .split_once('.')
            .map_or(0, |(_, fraction)| fraction.len() as i64);
        Some(Self {
            value,
            fraction: (digits - exponent).clamp(0, 100) as usize,
        })
    }
}

/// `10`, `1K`, `1MB`, `2MiB`: a count of bytes or lines.
pub(crate) fn size(text: &str) -> Option<usize> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let number: usize = text[..end].parse().ok()?;
    let factor = match &text[end..] {
        "" => 1,
        "b" => 512,
        "kB" | "KB" => 1_000,
        "k" | "K" | "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "M" | "MiB" => 1 << 20,
        "GB" => 1_000_000_000,
        "G" | "GiB" => 1 << 30,
        _ => return None,
    };
    Some(number.saturating_mul(factor))
}

/// A `printf` format with exactly one conversion of a floating-point number.
pub(super) struct Format {
    before: String,
    after: String,
    zero: bool,
    left: bool,
    width: usize,
    precision: usize,
    kind: char,
}

impl Format {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (before, rest) = literal(text)?;
        let mut rest = rest?;
        let flags_end = rest.find(|c| !matches!(c, '0' | '-'))?;
        let (zero, left) = (
            rest[..flags_end].contains('0'),
            rest[..flags_end].contains('-'),
        );
        rest = &rest[flags_end..];
        let width_end = rest.find(|c: char| !c.is_ascii_digit())?;
        let width = rest[..width_end].parse().unwrap_or(0);
        rest = &rest[width_end..];
        let mut precision = 6;
        if let Some(after_dot) = rest.strip_prefix('.') {
            let end = after_dot.find(|c: char| !c.is_ascii_digit())?;
            precision = after_dot[..end].parse().unwrap_or(0);
            rest = &after_dot[end..];
        }
        let kind = rest
            .chars()
            .next()
            .filter(|c| matches!(c, 'f' | 'F' | 'g'))?;
        let (after, more) = literal(&rest[1..])?;
        (more.is_none() && width < 1_000 && precision < 100).then_some(Self {
            before,
            after,
            zero,
            left,
            width,
            precision,
            kind,
        })
    }

    pub(super) fn apply(&self, value: f64) -> String {
        let digits = self.precision;
        let body = match self.kind {
            'g' => general(value, digits),
            _ => format!("{value:.digits$}"),
        };
        let pad = self.width.saturating_sub(body.len());
        let body = if self.left {
            body + &" ".repeat(pad)
        } else if self.zero {
            let (sign, number) = match body.strip_prefix('-') {
                Some(number) => ("-", number),
                None => ("", &*body),
            };
            format!("{sign}{}{number}", "0".repeat(pad))
        } else {
            " ".repeat(pad) + &body
        };
        format!("{}{body}{}", self.before, self.after)
    }
}

/// Text up to the next conversion, and what follows its `%`.
fn literal(text: &str) -> Option<(String, Option<&str>)> {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        plain.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        match after.strip_prefix('%') {
            Some(next) => {
                plain.push('%');
                rest = next;
            }
            None => return Some((plain, Some(after))),
        }
    }
    plain.push_str(rest);
    Some((plain, None))
}

/// `%g`: the shorter of `%e` and `%f`, without trailing zeros.
fn general(value: f64, precision: usize) -> String {
    let significant = precision.max(1);
    let scientific = format!("{value:.*e}", significant - 1);
    let exponent: i32 = scientific
        .split_once('e')
        .and_then(|(_, exponent)| exponent.parse().ok())
        .unwrap_or(0);
    let trim = |text: &str| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    if exponent < -4 || exponent >= significant as i32 {
        let mantissa = scientific.split('e').next().unwrap_or_default();
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trim(mantissa), exponent.abs());
    }
    let digits = (significant as i32 - 1 - exponent).max(0) as usize;
    trim(&format!("{value:.digits$}"))
}
