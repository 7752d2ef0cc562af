//! sed scripts that only transform: none that runs a command or writes a file.
//!
//! ```text
//! script  := { [ address [ "," address ] ] { "!" } function ( ";" | newline | "}" ) }
//! address := number | "$" | "/" regex "/" flags | "\" c regex c flags | number "~" number
//! ```

use std::iter::Peekable;
use std::str::Chars;

use super::script::Argument;

/// Why these arguments of sed ask, if they do.
pub(super) fn concern(arguments: &[Argument]) -> Option<String> {
    const PLAIN: [&str; 13] = [
        "-n",
        "-E",
        "-r",
        "-s",
        "-u",
        "-z",
        "-nE",
        "-En",
        "-nr",
        "--quiet",
        "--silent",
        "--regexp-extended",
        "--posix",
    ];
    let mut scripts: Vec<&str> = Vec::new();
    let mut first_operand = None;
    let mut rest = arguments.iter();
    let mut has_option_e = false;
    while let Some(argument) = rest.next() {
        match argument.literal() {
            None if argument.may_be_option() || first_operand.is_none() && !has_option_e => {
                return Some("sed has a script that is only known when it runs".to_owned());
            }
            None => {}
            Some(text) if PLAIN.contains(&text) => {}
            Some("-e" | "--expression" | "-ne") => {
                has_option_e = true;
                match rest.next().map(Argument::literal) {
                    Some(Some(script)) => scripts.push(script),
                    _ => {
                        return Some("sed has a script that is only known when it runs".to_owned());
                    }
                }
            }
            Some(text) if text.starts_with("--expression=") => {
                has_option_e = true;
                scripts.push(&text["--expression=".len()..]);
            }
            Some(text) if text.starts_with('-') && text != "-" => {
                return Some(format!(
                    "sed {text} writes files or takes in another script"
                ));
            }
            Some(text) => {
                first_operand.get_or_insert(text);
            }
        }
    }
    if !has_option_e {
        scripts.extend(first_operand);
    }
    // Parts given one by one are lines of one script.
    let script = scripts.join("\n");
    only_transforms(&script)
        .is_none()
        .then(|| "sed has a script that may run a command or write a file".to_owned())
}

/// `Some` if every function of `script` is known to be harmless.
fn only_transforms(script: &str) -> Option<()> {
    let mut chars = script.chars().peekable();
    while let Some(char) = chars.peek().copied() {
        if matches!(char, ' ' | '\t' | '\n' | ';' | '{' | '}') {
            chars.next();
        } else {
            function(&mut chars)?;
        }
    }
    Some(())
}

/// One function with its addresses.
fn function(chars: &mut Peekable<Chars>) -> Option<()> {
    if address(chars)? {
        skip(chars, &[' ', '\t']);
        if chars.next_if_eq(&',').is_some() {
            skip(chars, &[' ', '\t', '+', '~']);
            if !address(chars)? {
                return None;
            }
        }
    }
    skip(chars, &[' ', '\t', '!']);
    match chars.next()? {
        '{' | '}' => return Some(()),
        'p' | 'P' | 'd' | 'D' | '=' | 'n' | 'N' | 'h' | 'H' | 'g' | 'G' | 'x' | 'F' | 'z' => {}
        'q' | 'Q' | 'l' => {
            skip(chars, &[' ']);
            number(chars);
        }
        's' => {
            let delimiter = chars.next()?;
            delimited(chars, delimiter)?;
            delimited(chars, delimiter)?;
            while chars
                .next_if(|flag| matches!(flag, 'g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9'))
                .is_some()
            {}
        }
        'y' => {
            let delimiter = chars.next()?;
            delimited(chars, delimiter)?;
            delimited(chars, delimiter)?;
        }
        _ => return None,
    }
    skip(chars, &[' ', '\t']);
    match chars.peek() {
        None | Some(';' | '\n' | '}') => Some(()),
        Some(_) => None,
    }
}

/// Whether there is an address; `None` if it is not understood.
fn address(chars: &mut Peekable<Chars>) -> Option<bool> {
    match chars.peek()? {
        '$' => {
            chars.next();
        }
        '0'..='9' => {
            number(chars);
            if chars.next_if_eq(&'~').is_some() {
                number(chars);
            }
        }
        '/' => {
            chars.next();
            delimited(chars, '/')?;
            while chars.next_if(|flag| matches!(flag, 'I' | 'M')).is_some() {}
        }
        '\\' => {
            chars.next();
            let delimiter = chars.next()?;
            delimited(chars, delimiter)?;
            while chars.next_if(|flag| matches!(flag, 'I' | 'M')).is_some() {}
        }
        _ => return Some(false),
    }
    Some(true)
}

/// The text up to an unescaped `delimiter`. Seds differ on a delimiter within
/// brackets, so there it is not understood.
fn delimited(chars: &mut Peekable<Chars>, delimiter: char) -> Option<()> {
    if delimiter.is_alphanumeric() || matches!(delimiter, '\\' | '\n' | ' ' | '[' | ']') {
        return None;
    }
    let mut in_brackets = false;
    loop {
        match chars.next()? {
            '\\' => {
                chars.next()?;
            }
            char if char == delimiter => return (!in_brackets).then_some(()),
            '[' => in_brackets = true,
            ']' => in_brackets = false,
            '\n' => return None,
            _ => {}
        }
    }
}

fn number(chars: &mut Peekable<Chars>) {
    while chars.next_if(char::is_ascii_digit).is_some() {}
}

fn skip(chars: &mut Peekable<Chars>, what: &[char]) {
    while chars.next_if(|char| what.contains(char)).is_some() {}
}
