//! `printf '\x00'`.
//!
//! bashkit's leaves out a NUL byte that is written in hexadecimal; in octal it prints it.
//!
//! Seen in bashkit 0.20.2; gone when `printf` of `tests/it/bashkit.rs` fails.

/// The arguments of `printf` with every `\xHH` of its format as `\OOO`, which
/// is the same byte.
pub(in crate::memory) fn octal_escapes(args: &mut [String]) {
    let mut format = 0;
    if args.first().is_some_and(|first| first == "-v") {
        format = 2;
    }
    if args.get(format).is_some_and(|first| first == "--") {
        format += 1;
    }
    let Some(format) = args.get_mut(format).filter(|text| text.contains("\\x")) else {
        return;
    };
    let mut octal = String::with_capacity(format.len());
    let mut rest = format.as_str();
    while let Some(at) = rest.find('\\') {
        octal.push_str(&rest[..at]);
        let escape = &rest[at + 1..];
        let digits = escape.strip_prefix('x').unwrap_or_default().bytes();
        let digits = digits.take(2).take_while(u8::is_ascii_hexdigit).count();
        let byte = u8::from_str_radix(escape.get(1..=digits).unwrap_or_default(), 16);
        rest = match byte {
            Ok(byte) => {
                octal.push_str(&format!("\\{byte:03o}"));
                &escape[1 + digits..]
            }
            Err(_) => {
                let escaped = escape.chars().next();
                octal.push('\\');
                octal.extend(escaped);
                &escape[escaped.map_or(0, char::len_utf8)..]
            }
        };
    }
    octal.push_str(rest);
    *format = octal;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_octal(args: &[&str], expected: &[&str]) {
        let mut args: Vec<String> = args.iter().map(|text| (*text).to_owned()).collect();
        octal_escapes(&mut args);
        assert_eq!(args, expected);
    }

    #[test]
    fn hexadecimal_escapes_become_octal() {
        check_octal(&["a\\x00b"], &["a\\000b"]);
        check_octal(&["\\xff\\x0g\\x41\\n"], &["\\377\\000g\\101\\n"]);
        check_octal(&["\\\\x00\\xz\\x"], &["\\\\x00\\xz\\x"]);
        check_octal(&["-v", "a", "--", "\\x7e"], &["-v", "a", "--", "\\176"]);
        check_octal(&["%s", "\\x00"], &["%s", "\\x00"]);
        check_octal(&["ü\\x", "x\\"], &["ü\\x", "x\\"]);
    }
}
