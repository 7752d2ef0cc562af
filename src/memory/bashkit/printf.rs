//! `printf '\x00'` and `printf '\U1f600'`.
//!
//! bashkit's leaves out a NUL byte that is written in hexadecimal; in octal it prints it.
//! It refuses a character with fewer digits than it could have.
//!
//! Seen in bashkit 0.20.2; gone when `printf` of `tests/it/bashkit.rs` fails.

/// The arguments of `printf` with every `\xHH` of its format as `\OOO`, which
/// is the same byte, and every `\uHHHH` and `\UHHHHHHHH` as the bytes of that character.
pub(in crate::memory) fn octal_escapes(args: &mut [String]) {
    let mut format = 0;
    if args.first().is_some_and(|first| first == "-v") {
        format = 2;
    }
    if args.get(format).is_some_and(|first| first == "--") {
        format += 1;
    }
    let Some(format) = args
        .get_mut(format)
        .filter(|text| text.contains("\\x") || text.contains("\\u") || text.contains("\\U"))
    else {
        return;
    };
    let mut octal = String::with_capacity(format.len());
    let mut rest = format.as_str();
    while let Some(at) = rest.find('\\') {
        octal.push_str(&rest[..at]);
        let escape = &rest[at + 1..];
        let most = match escape.bytes().next() {
            Some(b'x') => 2,
            Some(b'u') => 4,
            Some(b'U') => 8,
            _ => 0,
        };
        let digits = escape.bytes().skip(1).take(most);
        let digits = digits.take_while(u8::is_ascii_hexdigit).count();
        let number = u32::from_str_radix(escape.get(1..=digits).unwrap_or_default(), 16).ok();
        let bytes = match number.map(u8::try_from) {
            Some(Ok(byte)) if most == 2 => Some(vec![byte]),
            _ => number
                .and_then(char::from_u32)
                .map(|it| it.to_string().into_bytes()),
        };
        rest = match bytes {
            Some(bytes) => {
                octal.extend(bytes.iter().map(|byte| format!("\\{byte:03o}")));
                &escape[1 + digits..]
            }
            None => {
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
        check_octal(&["\\ue4\\u20acb\\n"], &["\\303\\244\\342\\202\\254b\\n"]);
        check_octal(&["\\U1f600x"], &["\\360\\237\\230\\200x"]);
        check_octal(&["\\U00000041\\ud800\\u"], &["\\101\\ud800\\u"]);
    }
}
