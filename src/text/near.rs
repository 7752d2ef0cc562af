//! Names that someone may have meant.

/// At most `max` of `candidates` that are close to `name`: equal but for case,
/// one inside the other, or a few letters apart; closest first.
pub(crate) fn near_names<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
    max: usize,
) -> Vec<&'a str> {
    let wanted: Vec<char> = name.to_lowercase().chars().take(MAX_CHARS).collect();
    let mut near: Vec<(usize, &str)> = candidates
        .filter_map(|candidate| {
            let chars: Vec<char> = candidate.to_lowercase().chars().take(MAX_CHARS).collect();
            let distance = edit_distance(&wanted, &chars);
            let contained = wanted.len().min(chars.len()) > 2
                && (contains(&wanted, &chars) || contains(&chars, &wanted));
            (contained || distance <= wanted.len() / 3).then_some((distance, candidate))
        })
        .collect();
    near.sort_unstable();
    near.truncate(max);
    near.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Longer names are compared by their beginning.
const MAX_CHARS: usize = 80;

fn contains(text: &[char], part: &[char]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Levenshtein distance.
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let above = row[j + 1];
            let change = diagonal + usize::from(x != y);
            row[j + 1] = change.min(above + 1).min(row[j] + 1);
            diagonal = above;
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, candidates: &[&str], expected: &[&str]) {
        assert_eq!(near_names(name, candidates.iter().copied(), 3), expected);
    }

    #[test]
    fn close_names() {
        check(
            "main.rs",
            &["mian.rs", "lib.rs", "MAIN.rs", "other.txt"],
            &["MAIN.rs", "mian.rs"],
        );
        check(
            "util.py",
            &["utils.py", "my_util.py"],
            &["utils.py", "my_util.py"],
        );
        check("a", &["b", "ab"], &[]);
        check("", &["b"], &[]);
    }
}
