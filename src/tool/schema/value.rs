//! Values as JSON Schema compares them: 1 equals 1.0, exactly and at any size.

use std::cmp::Ordering;

use serde_json::{Number, Value};

pub(super) fn is_integer(number: &Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|n| n.fract() == 0.0)
}

/// Equality of JSON Schema: 1 equals 1.0, and the order of keys does not count.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare(a, b) == Ordering::Equal,
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        _ => a == b,
    }
}

/// A text that two values share when they are [`equal`].
pub(super) fn canonical(value: &Value) -> String {
    match value {
        Value::Number(number) => match whole(number) {
            Some(whole) => whole.to_string(),
            None => number.to_string(),
        },
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(object) => {
            let mut members: Vec<_> = object
                .iter()
                .map(|(name, value)| format!("{name:?}:{}", canonical(value)))
                .collect();
            members.sort_unstable();
            format!("{{{}}}", members.join(","))
        }
        other => other.to_string(),
    }
}

/// Order by value; exact, also between large integers and floats.
pub(super) fn compare(a: &Number, b: &Number) -> Ordering {
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => {
            let float = |number: &Number| number.as_f64().unwrap_or(f64::NAN);
            float(a).total_cmp(&float(b))
        }
    }
}

/// Whether `number` is a whole multiple of `of`, as decimals: 19.99 is one of
/// 0.01, which the division of floats denies.
pub(super) fn is_multiple(number: &Number, of: &Number) -> bool {
    let exact = || {
        let (a, b) = (decimal(number)?, decimal(of)?);
        let exponent = a.1.min(b.1);
        let scaled = |(digits, by): (i128, i32)| {
            let factor = 10_i128.checked_pow(u32::try_from(by - exponent).ok()?)?;
            digits.checked_mul(factor)
        };
        scaled(a)?.checked_rem(scaled(b)?).map(|rest| rest == 0)
    };
    let roughly = || Some((number.as_f64()? / of.as_f64()?).fract() == 0.0);
    exact().or_else(roughly).unwrap_or(false)
}

/// Digits and the power of ten that they are multiplied by.
fn decimal(number: &Number) -> Option<(i128, i32)> {
    let text = number.to_string();
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().ok()?;
    let (before, after) = digits.split_once('.').unwrap_or((digits, ""));
    let after = after.trim_end_matches('0');
    let digits = format!("{before}{after}").parse().ok()?;
    Some((
        digits,
        exponent.checked_sub(i32::try_from(after.len()).ok()?)?,
    ))
}

fn whole(number: &Number) -> Option<i128> {
    if let Some(number) = number.as_i64() {
        return Some(number.into());
    }
    if let Some(number) = number.as_u64() {
        return Some(number.into());
    }
    let number = number.as_f64()?;
    (number.fract() == 0.0 && number.abs() < 1e38).then_some(number as i128)
}
