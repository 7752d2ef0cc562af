//! `sort -R`.
//!
//! bashkit's order follows from nothing that a replay has.
//!
//! Seen in bashkit 0.20.2; two runs of one seed, without this file.

/// Why `sort` with `args` cannot be run.
pub(super) fn refusal(args: &[String]) -> Option<String> {
    is_random(args).then(|| "sort: -R is not supported in the sandbox; use shuf".to_owned())
}

/// Whether it is to sort at random.
fn is_random(args: &[String]) -> bool {
    let mut options = args.iter().take_while(|argument| *argument != "--");
    while let Some(argument) = options.next() {
        let (is_key, value) = if let Some(long) = argument.strip_prefix("--") {
            if long == "sort=random" || long.len() > 7 && "random-sort".starts_with(long) {
                return true;
            }
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            (!name.is_empty() && "key".starts_with(name), value)
        } else if let Some(short) = argument.strip_prefix('-') {
            let flags = short.find(['t', 'o', 'S', 'T', 'k']);
            if short[..flags.unwrap_or(short.len())].contains('R') {
                return true;
            }
            let Some(at) = flags else { continue };
            let value = Some(&short[at + 1..]).filter(|value| !value.is_empty());
            if value.is_none() && !short.ends_with('k') {
                // The value of another option.
                options.next();
            }
            (short[at..].starts_with('k'), value)
        } else {
            continue;
        };
        if is_key {
            let key = value.or_else(|| options.next().map(String::as_str));
            if key.is_some_and(|key| key.contains('R')) {
                return true;
            }
        }
    }
    false
}
