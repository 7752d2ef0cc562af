//! Random patches from a fixed seed: the parser and the applier never panic,
//! and what a patch does its reverse undoes.

use hermitcrab::tool::apply_patch::{Action, Hunk, HunkLine, apply, parse};

/// A small generator of numbers (splitmix64): the same in every run.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub(crate) fn of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    fn in_ten(&mut self, chances: usize) -> bool {
        self.below(10) < chances
    }
}

/// What patches are made of, and what spoils them.
const PIECES: [&str; 44] = [
    "*** Begin Patch",
    "*** End Patch",
    "*** Add File: a",
    "*** Add File: ",
    "*** Delete File: b",
    "*** Update File: a",
    "*** Update File: \u{e9}/\u{1f980}",
    "*** Move to: c",
    "*** Move to:",
    "*** End of File",
    "*** Frob",
    "***",
    "@@",
    "@@ one",
    "@@ ",
    "@@x",
    "@@ -1 +1 @@",
    " one",
    " two",
    "-one",
    "-two",
    "-",
    "+one",
    "+two",
    "+",
    " ",
    "",
    "one",
    "\t",
    "\r",
    "\n",
    "\n",
    "\n",
    "\n",
    "\r\n",
    " \u{201c}\u{2014}\u{201d}",
    "-\u{feff}one",
    "\u{a0}",
    "\0",
    "<<EOF",
    "<<'EOF'",
    "EOF",
    "apply_patch <<X",
    "X",
];

const FILES: [&str; 6] = [
    "",
    "one\ntwo\none\n",
    "one\r\ntwo\r\n\r\none",
    "\u{feff}one\n\ntwo",
    "\r\r\none \n\ttwo\n\n\n",
    "\u{201c}\u{2014}\u{201d}\n one\n",
];

#[test]
fn no_text_makes_it_panic() {
    let mut numbers = Numbers::new(1);
    let (mut read, mut applied) = (0, 0);
    for round in 0..60_000 {
        let mut text = String::new();
        let framed = numbers.in_ten(8);
        if framed {
            text += "*** Begin Patch\n*** Update File: a\n";
        }
        for _ in 0..numbers.below(12) {
            text += *numbers.of(&PIECES);
            // Mostly whole lines, or little would be read at all.
            if numbers.in_ten(9) {
                text.push('\n');
            }
        }
        if framed {
            text += "\n*** End Patch";
        }
        let lines = text.split('\n').count();
        let patch = match parse(&text) {
            Ok(patch) => patch,
            Err(error) => {
                assert!(
                    (1..=lines).contains(&error.line),
                    "{round} {text:?}: {error}"
                );
                continue;
            }
        };
        read += 1;
        assert!(!patch.files.is_empty(), "{round} {text:?}");
        for file in &patch.files {
            assert!((1..=lines).contains(&file.line), "{round} {text:?}");
            let Action::Update { hunks, .. } = &file.action else {
                continue;
            };
            assert!(!hunks.is_empty(), "{round} {text:?}");
            for old in FILES {
                match apply(&file.path, old, hunks) {
                    Ok(new) => {
                        applied += 1;
                        let ends = |text: &str| text.ends_with(['\n', '\r']);
                        let is_empty = |text: &str| text.trim_start_matches('\u{feff}').is_empty();
                        assert!(
                            is_empty(&new) || ends(&new) || !(is_empty(old) || ends(old)),
                            "{round} {text:?} {old:?}: {new:?}"
                        );
                    }
                    Err(error) => {
                        assert!(
                            (1..=lines).contains(&error.line),
                            "{round} {text:?}: {error}"
                        );
                    }
                }
            }
        }
    }
    // The generator must not go blind.
    assert!(read > 5_000, "{read} patches were read");
    assert!(applied > 5_000, "{applied} were applied");
}

#[test]
fn no_bytes_make_it_panic() {
    let mut numbers = Numbers::new(2);
    for _ in 0..20_000 {
        let bytes: Vec<u8> = (0..numbers.below(60))
            .map(|_| numbers.next() as u8)
            .collect();
        let text = String::from_utf8_lossy(&bytes);
        let framed = format!("*** Begin Patch\n*** Update File: a\n{text}\n*** End Patch");
        for text in [&*text, &framed] {
            if let Ok(patch) = parse(text) {
                for file in &patch.files {
                    if let Action::Update { hunks, .. } = &file.action {
                        let _ = apply(&file.path, &text.replace('\n', "\r\n"), hunks);
                    }
                }
            }
        }
    }
}

/// A file, the file that it becomes, and the hunks between.
struct Change {
    old: String,
    new: String,
    hunks: Vec<Shown>,
}

/// A hunk and the line that stands before it, which the change keeps.
struct Shown {
    before: Option<String>,
    lines: Vec<HunkLine>,
    hint: Hint,
}

/// What stands after `@@`. A hunk of only added lines needs the line before it.
#[derive(Clone, Copy)]
enum Hint {
    Nothing,
    LineBefore,
    FirstOldLine,
}

/// Random edits. Where lines repeat, a hunk shows the whole file; where each is
/// unique, some lines around a change are enough, or the line before it.
fn change(numbers: &mut Numbers) -> Change {
    let unique = numbers.in_ten(5);
    let ending = *numbers.of(&["\n", "\r\n"]);
    let mut serial = 0;
    let mut line = |numbers: &mut Numbers| {
        serial += 1;
        if unique {
            format!("{}line {serial}", numbers.of(&["", "  ", "\t", "\u{2014}"]))
        } else {
            (*numbers.of(&[
                "",
                "a",
                " a",
                "a ",
                "b",
                "\u{2013}",
                "-",
                "+",
                "@@",
                "*** End Patch",
            ]))
            .to_owned()
        }
    };
    let mut all = Vec::new();
    for _ in 0..=numbers.below(30) {
        all.push(match numbers.below(10) {
            0 | 1 => HunkLine::Add(line(numbers)),
            2 | 3 => HunkLine::Remove(line(numbers)),
            _ => HunkLine::Context(line(numbers)),
        });
    }
    // A first line on both sides: neither is empty, and both have one ending.
    all.insert(0, HunkLine::Context(line(numbers)));
    let text = |skip: fn(&HunkLine) -> bool| {
        let mut text = String::new();
        for line in all.iter().filter(|line| !skip(line)) {
            let (HunkLine::Context(line) | HunkLine::Remove(line) | HunkLine::Add(line)) = line;
            text += line;
            text += ending;
        }
        text
    };
    let old = text(|line| matches!(line, HunkLine::Add(_)));
    let new = text(|line| matches!(line, HunkLine::Remove(_)));
    let hunks = if unique {
        split(&all, numbers)
    } else {
        vec![Shown {
            before: None,
            lines: all,
            hint: Hint::Nothing,
        }]
    };
    Change { old, new, hunks }
}

/// Hunks with up to three lines around each change.
fn split(all: &[HunkLine], numbers: &mut Numbers) -> Vec<Shown> {
    let context = numbers.below(4);
    let is_near = |index: usize| {
        let near = index.saturating_sub(context)..=(index + context).min(all.len() - 1);
        all[near]
            .iter()
            .any(|line| !matches!(line, HunkLine::Context(_)))
    };
    let mut hunks: Vec<Shown> = Vec::new();
    let mut before = None;
    let mut open = false;
    for (index, line) in all.iter().enumerate() {
        let near = is_near(index);
        if near && !open {
            hunks.push(Shown {
                before: before.clone(),
                lines: Vec::new(),
                hint: *numbers.of(&[Hint::Nothing, Hint::LineBefore, Hint::FirstOldLine]),
            });
        }
        open = near;
        if let (true, Some(hunk)) = (near, hunks.last_mut()) {
            hunk.lines.push(line.clone());
        }
        if let HunkLine::Context(line) = line {
            before = Some(line.clone());
        }
    }
    hunks
}

/// The patch as text; `reverse` swaps what goes and what comes.
fn patch(hunks: &[Shown], reverse: bool) -> String {
    let mut text = "*** Begin Patch\n*** Update File: a\n".to_owned();
    for hunk in hunks {
        let lines = hunk.lines.iter().map(|line| match (line, reverse) {
            (HunkLine::Context(line), _) => (' ', line),
            (HunkLine::Remove(line), false) | (HunkLine::Add(line), true) => ('-', line),
            (HunkLine::Add(line), false) | (HunkLine::Remove(line), true) => ('+', line),
        });
        let first_old = lines.clone().find(|(mark, _)| *mark != '+');
        let hint = match (hunk.hint, first_old) {
            (Hint::LineBefore, _) | (_, None) => hunk.before.as_ref(),
            (Hint::FirstOldLine, Some((_, line))) => Some(line),
            (Hint::Nothing, Some(_)) => None,
        };
        text += "@@";
        if let Some(hint) = hint {
            text.push(' ');
            text += hint;
        }
        text.push('\n');
        for (mark, line) in lines {
            text.push(mark);
            text += line;
            text.push('\n');
        }
    }
    text + "*** End Patch\n"
}

fn hunks(text: &str) -> Vec<Hunk> {
    let patch = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    match &patch.files[..] {
        [file] => match &file.action {
            Action::Update { hunks, .. } => hunks.clone(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_reverse_gives_the_original() {
    let mut numbers = Numbers::new(3);
    let mut played = 0;
    for round in 0..10_000 {
        let Change {
            old,
            new,
            hunks: all,
        } = change(&mut numbers);
        if all.is_empty() {
            continue;
        }
        played += 1;
        let forth = patch(&all, false);
        let found = apply("a", &old, &hunks(&forth));
        assert_eq!(found.as_deref(), Ok(&*new), "{round}\n{old}\n{forth}");
        let back = patch(&all, true);
        let found = apply("a", &new, &hunks(&back));
        assert_eq!(found.as_deref(), Ok(&*old), "{round}\n{new}\n{back}");
    }
    assert!(played > 9_000, "{played}");
}
