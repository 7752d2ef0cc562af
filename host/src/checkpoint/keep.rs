//! `Keeper`: notes what a session changes.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use super::scan::{Mark, Marks, now_ns, scan};
use super::state::{State, text};
use super::store::{Change, Checkpoints, Line};
use super::undo::{Restored, UndoError};

/// Characters of a command that are noted.
const SHOWN: usize = 100;
/// Entries below a directory that a tool moves or removes.
const MAX_ENTRIES: usize = 20_000;
/// By how much the clock of a file system may be behind that of the system, in ns.
const CLOCK_LAG_NS: i128 = 20_000_000;

/// Notes changes in checkpoints.
pub(super) struct Keeper {
    checkpoints: Checkpoints,
    directory: PathBuf,
    /// The tree as it was last looked through, and what was at each path.
    tree: LastLook,
}

enum LastLook {
    /// Not yet looked at.
    Unknown,
    Known(Look),
    /// Commands are not watched.
    TooLarge(String),
}

/// What a look through the tree showed.
#[derive(Default)]
struct Look {
    marks: Marks,
    states: BTreeMap<PathBuf, State>,
    /// When it began, ns since 1970.
    began_ns: i128,
}

/// What is at a path that the last look did not show.
enum Origin {
    /// It was made since, or all of it is kept.
    New,
    /// It was there and has not changed since.
    Untouched,
    /// It was there, and may be the only one of its kind.
    Unseen,
}

/// What paths were before a tool.
pub(super) struct Before(BTreeMap<PathBuf, State>, Vec<PathBuf>);

impl Keeper {
    pub(super) fn new(checkpoints: Checkpoints, directory: PathBuf) -> Self {
        Self {
            checkpoints,
            directory,
            tree: LastLook::Unknown,
        }
    }

    /// What follows belongs to this round.
    pub(super) fn set_round(&mut self, round: u64) {
        if round > self.checkpoints.round {
            self.checkpoints.add(vec![Line::Round { round }]);
        }
    }

    /// See [`Checkpoints::undo`].
    pub(super) fn undo(&mut self, from: Option<u64>, partly: bool) -> Result<Restored, UndoError> {
        self.checkpoints.undo(from, partly)
    }

    /// What is at `path` now, with its content kept.
    fn kept(&mut self, path: &Path) -> State {
        let (state, content) = State::of(path, self.checkpoints.limits.file_bytes);
        if let (State::File { hash, .. }, Some(content)) = (&state, &content)
            && let Err(why) = self.checkpoints.keep(hash, content)
        {
            self.uncovered(why);
        }
        state
    }

    fn uncovered(&mut self, why: String) {
        let round = self.checkpoints.round;
        let noted = &self.checkpoints.uncovered;
        if !noted.contains(&(round, why.clone())) {
            self.checkpoints.add(vec![Line::Uncovered { round, why }]);
        }
    }

    /// A tool is about to change `paths`, what is below them, and the directories that
    /// they need.
    pub(super) fn before(&mut self, paths: &[PathBuf]) -> Before {
        let mut all = BTreeMap::new();
        for path in paths {
            let missing = path.ancestors().skip(1).take_while(|dir| !dir.exists());
            let missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
            all.extend(missing.into_iter().map(|dir| (dir, State::Absent)));
            for path in self.below(path) {
                let state = self.kept(&path);
                all.insert(path, state);
            }
        }
        Before(all, paths.to_vec())
    }

    /// The tool is done.
    pub(super) fn after(&mut self, before: Before) {
        let Before(mut before, paths) = before;
        for path in &paths {
            for path in self.below(path) {
                before.entry(path).or_insert(State::Absent);
            }
        }
        let max_bytes = self.checkpoints.limits.file_bytes;
        let changes: Vec<(PathBuf, State, State)> = before
            .into_iter()
            .map(|(path, before)| {
                let after = State::of(&path, max_bytes).0;
                (path, before, after)
            })
            .collect();
        self.note(changes, "file tools");
    }

    fn note(&mut self, changes: Vec<(PathBuf, State, State)>, by: &str) {
        let round = self.checkpoints.round;
        let mut lines = Vec::new();
        for (path, before, after) in changes {
            if before == after {
                continue;
            }
            let Some(path) = text(&path) else {
                let why = "names of files that are not UTF-8 are not noted";
                self.uncovered(why.to_owned());
                continue;
            };
            lines.push(Line::Change(Change {
                round,
                path: path.to_owned(),
                before,
                after,
                by: by.to_owned(),
            }));
        }
        if !lines.is_empty() {
            self.checkpoints.add(lines);
        }
    }

    /// A command is about to run. What is in the tree now is kept where one `looks`; what
    /// differs is noted if another command was `cut_off`.
    pub(super) fn before_command(&mut self, command: &str, looks: bool, cut_off: bool) {
        if cut_off {
            self.after_cut_off();
        } else if looks {
            self.look(None);
        }
        let (round, command) = (self.checkpoints.round, shown(command));
        self.checkpoints.add(vec![Line::Began { round, command }]);
    }

    /// A command was cut off, and no other one runs.
    pub(super) fn after_cut_off(&mut self) {
        self.look(Some("a command that was cut off"));
        self.checkpoints.end_commands();
    }

    fn ended(&mut self, command: &str) {
        let command = shown(command);
        self.checkpoints.add(vec![Line::Ended { command }]);
    }

    /// A command has run.
    pub(super) fn after_command(&mut self, command: &str) {
        self.look(Some(&shown(command)));
        self.ended(command);
    }

    /// A command has ended that began in an earlier round.
    pub(super) fn after_background(&mut self, command: &str) {
        self.ended(command);
        self.uncovered(format!(
            "what {} changed in the background is not noted",
            shown(command)
        ));
    }

    /// Looks through the tree and keeps what is new there. What differs from the last
    /// look was changed `by` a command, if one is given, else by somebody else.
    fn look(&mut self, by: Option<&str>) {
        let limits = self.checkpoints.limits;
        let began_ns = now_ns();
        let (old, is_first) = match std::mem::replace(&mut self.tree, LastLook::Unknown) {
            LastLook::TooLarge(why) => {
                if by.is_some() {
                    self.uncovered(format!("what commands change is not noted: {why}"));
                }
                self.tree = LastLook::TooLarge(why);
                return;
            }
            LastLook::Unknown => (Look::default(), true),
            LastLook::Known(look) => (look, false),
        };
        let marks = match scan(&self.directory, &limits, Instant::now() + limits.scan) {
            Ok(marks) => marks,
            Err(why) => return self.give_up(why, by),
        };
        let inodes = inodes(&old, &marks);
        let until = Instant::now() + limits.scan;
        let mut fresh = Vec::new();
        let mut changes = Vec::new();
        let mut untouched = Vec::new();
        for (path, mark) in &marks {
            let known = old.marks.get(path);
            if known.is_some_and(|known| known.is_same(mark)) {
                continue;
            }
            let after = self.kept(path);
            let before = match old.states.get(path) {
                Some(before) => before.clone(),
                None if is_first => State::Absent,
                None => match self.origin(path, mark, &old, &inodes) {
                    Origin::New => State::Absent,
                    Origin::Unseen => State::Unseen,
                    Origin::Untouched => {
                        untouched.push(path);
                        after.clone()
                    }
                },
            };
            fresh.push((path.clone(), after.clone()));
            changes.push((path.clone(), before, after));
            if Instant::now() > until {
                let ms = limits.scan.as_millis();
                return self.give_up(format!("keeping its files takes more than {ms} ms"), by);
            }
        }
        let mut states = old.states;
        states.extend(fresh);
        for path in old.marks.keys().filter(|path| !marks.contains_key(*path)) {
            // Gone, or ignored from now on.
            let after = State::of(path, limits.file_bytes).0;
            let before = states.remove(path).unwrap_or(State::Absent);
            changes.push((path.clone(), before, after));
        }
        if let Some(by) = by {
            self.note(changes, by);
            if let Some(first) = untouched.first() {
                let first = first.strip_prefix(&self.directory).unwrap_or(first);
                let more = match untouched.len() {
                    1 => String::new(),
                    count => format!(" and {} more", count - 1),
                };
                self.uncovered(format!(
                    "{}{more} was there before but was not looked at (ignored until then, or moved here): it stays",
                    first.display()
                ));
            }
        }
        self.tree = LastLook::Known(Look {
            marks,
            states,
            began_ns,
        });
    }

    /// Where `path` comes from, which the look `old` did not show; `inodes` are those that
    /// it showed.
    fn origin(
        &self,
        path: &Path,
        mark: &Mark,
        old: &Look,
        inodes: &HashMap<u64, &PathBuf>,
    ) -> Origin {
        let earlier = inodes.get(&mark.inode).copied();
        let renamed = earlier.filter(|earlier| {
            let earlier = old.marks.get(*earlier);
            earlier.is_some_and(|earlier| mark.is_renamed_from(earlier))
        });
        if let Some(earlier) = renamed {
            // What is noted of the old name brings it back.
            let is_kept = text(earlier).is_some()
                && match old.states.get(earlier) {
                    Some(State::File { hash, .. }) => self.checkpoints.has(hash),
                    Some(State::Link { .. } | State::Dir { .. }) => true,
                    _ => false,
                };
            return if is_kept { Origin::New } else { Origin::Unseen };
        }
        let since = old.began_ns - CLOCK_LAG_NS;
        if mark.changed_ns < since {
            return Origin::Untouched;
        }
        match born_ns(path).is_some_and(|born| born < since) {
            true => Origin::Unseen,
            false => Origin::New,
        }
    }

    /// `path` and what is below it, links not followed.
    fn below(&mut self, path: &Path) -> Vec<PathBuf> {
        let walk = ignore::WalkBuilder::new(path)
            .standard_filters(false)
            .build();
        let found = walk.flatten().map(ignore::DirEntry::into_path);
        let mut found: Vec<PathBuf> = found.take(MAX_ENTRIES + 1).collect();
        if found.len() > MAX_ENTRIES {
            found.truncate(MAX_ENTRIES);
            self.uncovered(format!(
                "of a directory with more than {MAX_ENTRIES} entries the rest is not noted"
            ));
        }
        if found.is_empty() {
            found.push(path.to_owned());
        }
        found
    }

    fn give_up(&mut self, why: String, by: Option<&str>) {
        if by.is_some() {
            self.uncovered(format!("what commands change is not noted: {why}"));
        }
        self.tree = LastLook::TooLarge(why);
    }
}

/// When the file at `path` was made, ns since 1970, where the file system knows.
fn born_ns(path: &Path) -> Option<i128> {
    let born = std::fs::symlink_metadata(path).ok()?.created().ok()?;
    let since = born.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    i128::try_from(since.as_nanos()).ok()
}

/// The paths that `old` showed by their inodes, if `marks` has paths that it did not.
fn inodes<'a>(old: &'a Look, marks: &Marks) -> HashMap<u64, &'a PathBuf> {
    match marks.keys().all(|path| old.marks.contains_key(path)) {
        true => HashMap::new(),
        false => old
            .marks
            .iter()
            .map(|(path, mark)| (mark.inode, path))
            .collect(),
    }
}

/// The first line of a command, as texts name it.
fn shown(command: &str) -> String {
    let line = command.lines().next().unwrap_or_default();
    let mut shown: String = line.chars().take(SHOWN).collect();
    if shown.len() < command.trim_end().len() {
        shown.push('…');
    }
    format!("`{shown}`")
}
