//! `tar` as a builtin: what it reads and writes.

use std::fmt::Write as _;
use std::io::Read;

use bashkit::{Builtin, BuiltinContext, ExecResult, async_trait, normalize_path, vfs_join};
use chrono::DateTime;

use super::{Call, Member, Mode, is_within, name_in_archive, parse};
use crate::memory::archive::{pack, unpack};
use crate::memory::bashkit::{gzip, reason};
use crate::memory::clock;
use crate::memory::tree::{LastLink, NodeKind, Tree};

/// Exit code of everything that went wrong.
const TROUBLE: i32 = 2;
/// Bytes of a block; an archive that is shorter is none.
const BLOCK: usize = 512;
/// Level of `gzip`.
const LEVEL: u32 = 6;
/// Characters of owner and size in a long list.
const OWNER_AND_SIZE: usize = 19;
/// Permission bits of a mode.
const BITS: u32 = 0o7777;

/// `tar (-c | -x | -t) [OPTION]... [FILE]...`
pub(in crate::memory::bashkit) struct Tar;

/// What is printed and said so far.
#[derive(Default)]
struct Report {
    output: Vec<u8>,
    errors: String,
    has_failed: bool,
}

impl Report {
    fn fail(&mut self, problem: &str) {
        let _ = writeln!(self.errors, "tar: {problem}");
        self.has_failed = true;
    }

    fn note(&mut self, note: &str) {
        let _ = writeln!(self.errors, "tar: {note}");
    }

    fn name(&mut self, name: &str, to_errors: bool) {
        match to_errors {
            true => self.errors += &format!("{name}\n"),
            false => self
                .output
                .extend_from_slice(format!("{name}\n").as_bytes()),
        }
    }

    fn result(mut self) -> ExecResult {
        if self.has_failed {
            self.note("Exiting with failure status due to previous errors");
        }
        let mut result = ExecResult::ok_bytes(self.output);
        result.exit_code = if self.has_failed { TROUBLE } else { 0 };
        result.stderr = self.errors.into();
        result
    }
}

#[async_trait]
impl Builtin for Tar {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let mut report = Report::default();
        let mut call = match parse(ctx.args) {
            Ok(call) => call,
            Err(message) => {
                let help = "Try 'tar --help' for more information.";
                return Ok(ExecResult::err(
                    format!("tar: {message}\n{help}\n"),
                    TROUBLE,
                ));
            }
        };
        for list in std::mem::take(&mut call.lists) {
            let bytes = match list.name.as_str() {
                "-" => Ok(ctx.stdin_bytes().unwrap_or_default().to_vec()),
                name => {
                    ctx.fs
                        .read_file(&normalize_path(&vfs_join(ctx.cwd, name)))
                        .await
                }
            };
            match bytes {
                Ok(bytes) => {
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    let names = text.lines().filter(|name| !name.is_empty());
                    call.members.extend(names.map(|name| Member {
                        name: name.to_owned(),
                        ..list.clone()
                    }));
                }
                Err(error) => {
                    report.fail(&format!("{}: Cannot open: {}", list.name, reason(&error)))
                }
            }
        }
        match call.mode {
            Mode::Create => create(&call, &ctx, &mut report).await,
            Mode::Extract | Mode::List => read(&call, &ctx, &mut report).await,
        }
        Ok(report.result())
    }
}

/// The path of `name`, as a directory of a call names it.
fn path_of(ctx: &BuiltinContext<'_>, directory: Option<&str>, name: &str) -> String {
    let from = vfs_join(ctx.cwd, directory.unwrap_or("."));
    let path = normalize_path(&vfs_join(&from, name));
    path.to_string_lossy().into_owned()
}

async fn create(call: &Call, ctx: &BuiltinContext<'_>, report: &mut Report) {
    if call.members.is_empty() {
        report.fail("Cowardly refusing to create an empty archive");
        return;
    }
    let own = call.archive.as_deref().map(|name| path_of(ctx, None, name));
    let packed = {
        let Some(files) = clock::current().and_then(|timeline| timeline.files()) else {
            report.fail("cannot be called from here");
            return;
        };
        let tree = files.borrow();
        let mut builder = tar::Builder::new(Vec::new());
        for member in &call.members {
            let path = path_of(ctx, member.directory.as_deref(), &member.name);
            let (name, taken) = match call.absolute_names {
                true => (member.name.as_str(), ""),
                false => name_in_archive(&member.name),
            };
            if !taken.is_empty() {
                report.note(&format!("Removing leading `{taken}' from member names"));
            }
            let resolved = tree.resolve(&path, LastLink::Keep);
            let found = resolved.as_ref().is_ok_and(|path| tree.get(path).is_ok());
            match resolved {
                Ok(path) if found && !member.name.is_empty() => {
                    let name = if name.is_empty() { "." } else { name };
                    let added = add(
                        &mut builder,
                        &tree,
                        (&path, name),
                        call,
                        own.as_deref(),
                        report,
                    );
                    if let Err(error) = added {
                        report.fail(&error.to_string());
                    }
                }
                _ => report.fail(&format!(
                    "{}: Cannot stat: No such file or directory",
                    member.name
                )),
            }
        }
        builder.into_inner().unwrap_or_default()
    };
    clock::spend((packed.len() / 1_000) as u64);
    let packed = match call.packs {
        true => gzip::pack(&packed, LEVEL),
        false => packed,
    };
    let Some(name) = &call.archive else {
        report.output.extend(packed);
        return;
    };
    let path = normalize_path(&vfs_join(ctx.cwd, name));
    let written = match ctx.fs.stat(&path).await {
        Ok(found) if found.file_type.is_dir() => Err("Is a directory".to_owned()),
        _ => ctx
            .fs
            .write_file(&path, &packed)
            .await
            .map_err(|error| reason(&error)),
    };
    if let Err(reason) = written {
        report.fail(&format!("{name}: Cannot open: {reason}"));
    }
}

/// Adds what is at a path, under a name, with all that is below.
fn add(
    builder: &mut tar::Builder<Vec<u8>>,
    tree: &Tree,
    (path, name): (&str, &str),
    call: &Call,
    own: Option<&str>,
    report: &mut Report,
) -> std::io::Result<()> {
    if call.excludes(name) {
        return Ok(());
    }
    if own == Some(path) {
        report.note(&format!("{name}: file is the archive; not dumped"));
        return Ok(());
    }
    let Ok(node) = tree.get(path) else {
        return Ok(());
    };
    let name = name.trim_end_matches('/');
    let is_directory = node.is_directory();
    if call.verbose {
        let end = if is_directory { "/" } else { "" };
        report.name(&format!("{name}{end}"), call.archive.is_none());
    }
    pack(builder, name, node)?;
    if let NodeKind::Directory(directory) = &node.kind {
        let path = path.trim_end_matches('/');
        for (child, _) in directory.iter() {
            let place = (format!("{path}/{child}"), format!("{name}/{child}"));
            add(builder, tree, (&place.0, &place.1), call, own, report)?;
        }
    }
    Ok(())
}

/// Lists or unpacks an archive.
async fn read(call: &Call, ctx: &BuiltinContext<'_>, report: &mut Report) {
    let archive = match &call.archive {
        None => ctx.stdin_bytes().unwrap_or_default().to_vec(),
        Some(name) => {
            let content = ctx
                .fs
                .read_file(&normalize_path(&vfs_join(ctx.cwd, name)))
                .await;
            match content {
                Ok(content) => content,
                Err(error) => {
                    report.fail(&format!("{name}: Cannot open: {}", reason(&error)));
                    return;
                }
            }
        }
    };
    let most = ctx.fs.limits().max_total_bytes;
    let archive = match gzip::is_packed(&archive) {
        true => match gzip::unpack(&archive, most) {
            Ok(archive) => archive,
            Err(problem) => {
                report.fail(&format!("gzip: {problem}"));
                return;
            }
        },
        false => archive,
    };
    clock::spend((archive.len() / 1_000) as u64);
    if archive.len() < BLOCK {
        report.fail("This does not look like a tar archive");
        return;
    }
    let directory = path_of(ctx, call.directory.as_deref(), ".");
    let Some(timeline) = clock::current() else {
        return;
    };
    let Some(files) = timeline.files() else {
        report.fail("cannot be called from here");
        return;
    };
    let mut tree = files.borrow().clone();
    let directory = match tree.resolve(&directory, LastLink::Follow) {
        Ok(path) if tree.get(&path).is_ok_and(|node| node.is_directory()) => path.into_owned(),
        _ => {
            let name = call.directory.as_deref().unwrap_or(".");
            report.fail(&format!("{name}: Cannot open: No such file or directory"));
            return;
        }
    };
    let place = Place {
        directory: &directory,
        now_us: timeline.now_us(),
    };
    entries(call, &archive, &mut tree, &place, report);
    if call.mode == Mode::Extract && !call.to_output {
        *files.borrow_mut() = tree;
    }
}

/// Where entries go, and when.
struct Place<'a> {
    directory: &'a str,
    now_us: u64,
}

fn entries(call: &Call, archive: &[u8], tree: &mut Tree, place: &Place<'_>, report: &mut Report) {
    let mut reader = tar::Archive::new(archive);
    let Ok(entries) = reader.entries() else {
        report.fail("This does not look like a tar archive");
        return;
    };
    let mut found = vec![false; call.members.len()];
    let mut times = Vec::new();
    for (count, entry) in entries.enumerate() {
        let mut entry = match entry {
            Ok(entry) => entry,
            Err(_) if count == 0 => {
                report.fail("This does not look like a tar archive");
                break;
            }
            Err(_) => {
                report.fail("Unexpected EOF in archive");
                break;
            }
        };
        let kind = entry.header().entry_type();
        if kind.is_pax_global_extensions() {
            continue;
        }
        let Ok(name) = String::from_utf8(entry.path_bytes().into_owned()) else {
            let name = entry.path_bytes().escape_ascii().to_string();
            report.fail(&format!(
                "{name}: the name is not UTF-8, which is not supported in the sandbox"
            ));
            continue;
        };
        let mut wanted = call.members.is_empty();
        for (at, member) in call.members.iter().enumerate() {
            if is_within(&name, &member.name) {
                (wanted, found[at]) = (true, true);
            }
        }
        if !wanted || call.excludes(&name) {
            continue;
        }
        if call.mode == Mode::List {
            let line = match call.verbose {
                true => long(&entry, &name),
                false => name,
            };
            report.name(&line, false);
            continue;
        }
        let Some(target) = call.place(&name) else {
            continue;
        };
        if call.verbose {
            report.name(&name, call.to_output);
        }
        if call.to_output {
            if let Err(error) = entry.read_to_end(&mut report.output) {
                report.fail(&format!("{name}: {error}"));
            }
            continue;
        }
        let path = format!(
            "{}/{}",
            place.directory.trim_end_matches('/'),
            target.trim_end_matches('/')
        );
        let is_directory = kind.is_dir() || name.ends_with('/');
        if call.keeps_old && !is_directory && tree.get(&path).is_ok() {
            report.fail(&format!("{target}: Cannot open: File exists"));
            continue;
        }
        if matches!(target.trim_end_matches('/'), "." | "") {
            continue;
        }
        match unpack(tree, place.directory, target, &mut entry, place.now_us) {
            Ok(time) => {
                let mode = entry.header().mode().unwrap_or(0o644) & BITS;
                let is_link = tree
                    .get(&path)
                    .is_ok_and(|node| matches!(node.kind, NodeKind::Link(_)));
                if !is_link {
                    let _ = tree.set_mode(&path, mode);
                }
                if call.touches {
                    let _ = tree.set_modified(&path, place.now_us);
                } else {
                    times.extend(time);
                }
            }
            Err(error) => report.fail(&error.to_string()),
        }
    }
    crate::memory::archive::set_times(tree, times);
    for (member, _) in call
        .members
        .iter()
        .zip(&found)
        .filter(|(_, found)| !**found)
    {
        report.fail(&format!("{}: Not found in archive", member.name));
    }
}

/// A line as `tar -tv` prints it.
fn long<R: Read>(entry: &tar::Entry<'_, R>, name: &str) -> String {
    let header = entry.header();
    let kind = header.entry_type();
    let (letter, link) = match kind {
        tar::EntryType::Directory => ('d', ""),
        tar::EntryType::Symlink => ('l', " -> "),
        tar::EntryType::Link => ('h', " link to "),
        _ => ('-', ""),
    };
    let mode = header.mode().unwrap_or_default();
    let bits = (0..9).map(|at| match mode & (0o400 >> at) {
        0 => '-',
        _ => ['r', 'w', 'x'][at % 3],
    });
    let mut line = String::from(letter);
    line.extend(bits);
    let owner = format!("{}/{}", owner(header.username()), owner(header.groupname()));
    let size = entry.size().to_string();
    let width = OWNER_AND_SIZE
        .saturating_sub(owner.len() + 1)
        .max(size.len());
    let seconds = header.mtime().ok().and_then(|it| i64::try_from(it).ok());
    let time = DateTime::from_timestamp(seconds.unwrap_or_default(), 0).unwrap_or_default();
    let _ = write!(
        line,
        " {owner} {size:>width$} {} {name}",
        time.format("%Y-%m-%d %H:%M")
    );
    if !link.is_empty() {
        let target = entry.link_name_bytes().unwrap_or_default();
        let _ = write!(line, "{link}{}", String::from_utf8_lossy(&target));
    }
    line
}

/// The name of an owner; archives of the sandbox have none.
fn owner(name: Result<Option<&str>, std::str::Utf8Error>) -> &str {
    match name {
        Ok(Some(name)) if !name.is_empty() => name,
        _ => "user",
    }
}
