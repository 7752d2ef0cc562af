//! Opens what a lent program consists of: one tar archive, usually gzipped.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

/// Bytes that an archive may have, packed and unpacked; that of Python has a
/// tenth of it.
const LIMIT: u64 = 256 << 20;

/// The bytes of the archive at `path`.
///
/// # Errors
/// A sentence that names the path.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let shown = path.display();
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => format!("there is no {shown}"),
        io::ErrorKind::PermissionDenied => format!("cannot read {shown}: permission denied"),
        _ => format!("cannot read {shown}: {error}"),
    };
    let metadata = fs::metadata(path).map_err(failed)?;
    if metadata.is_dir() {
        return Err(format!("{shown} is a directory and not an archive"));
    }
    // Nobody waits for the end of a pipe or a device.
    if !metadata.is_file() || metadata.len() > LIMIT {
        return Err(format!("{shown} is not an archive of a program"));
    }
    fs::read(path).map_err(failed)
}

/// The files of an archive, by name.
///
/// # Errors
/// What is wrong with it, to be said after its name.
pub(super) fn unpack(archive: &[u8]) -> Result<BTreeMap<String, Vec<u8>>, &'static str> {
    let plain = match archive.starts_with(&[0x1f, 0x8b]) {
        true => decompressed(archive)?,
        false => archive.to_vec(),
    };
    let untar = || -> io::Result<BTreeMap<String, Vec<u8>>> {
        let mut files = BTreeMap::new();
        for entry in tar::Archive::new(&*plain).entries()? {
            let mut entry = entry?;
            if !entry.header().entry_type().is_file() {
                continue;
            }
            let name = entry.path()?.to_string_lossy().into_owned();
            let mut content = Vec::new();
            entry.read_to_end(&mut content)?;
            if content.len() as u64 != entry.size() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            files.insert(name, content);
        }
        Ok(files)
    };
    match untar() {
        Ok(files) if !files.is_empty() => Ok(files),
        _ => Err("is not a tar archive"),
    }
}

fn decompressed(archive: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut plain = Vec::new();
    MultiGzDecoder::new(archive)
        .take(LIMIT + 1)
        .read_to_end(&mut plain)
        .map_err(|_| "is damaged")?;
    match plain.len() as u64 > LIMIT {
        true => Err("unpacks to far more than a program has"),
        false => Ok(plain),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn tar_of(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, content) in files {
            let mut header = tar::Header::new_ustar();
            header.set_size(content.len() as u64);
            builder
                .append_data(&mut header, name, *content)
                .expect("a file");
        }
        builder.into_inner().expect("a tar")
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).expect("written");
        encoder.finish().expect("finished")
    }

    fn check(archive: &[u8], expected: Result<&[(&str, &[u8])], &'static str>) {
        let expected = expected.map(|files| {
            let files = files.iter();
            files
                .map(|(name, content)| ((*name).to_owned(), content.to_vec()))
                .collect()
        });
        assert_eq!(unpack(archive), expected);
    }

    #[test]
    fn plain_and_gzipped() {
        let files: &[(&str, &[u8])] = &[("a", b"1"), ("b.zip", b"PK")];
        check(&tar_of(files), Ok(files));
        check(&gzip(&tar_of(files)), Ok(files));
    }

    #[test]
    fn what_is_no_archive() {
        check(b"", Err("is not a tar archive"));
        check(&[b'x'; 2048], Err("is not a tar archive"));
        check(&gzip(b"hello"), Err("is not a tar archive"));
        let tar = tar_of(&[("a", &[7; 4096])]);
        check(&tar[..2048], Err("is not a tar archive"));
        let packed = gzip(&tar);
        check(&packed[..packed.len() / 2], Err("is damaged"));
        let mut flipped = packed.clone();
        let end = flipped.len() - 6;
        flipped[end] ^= 1;
        check(&flipped, Err("is damaged"));
    }

    #[test]
    fn a_bomb_is_not_unpacked() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let zeros = vec![0; 1 << 20];
        for _ in 0..257 {
            encoder.write_all(&zeros).expect("written");
        }
        let bomb = encoder.finish().expect("finished");
        check(&bomb, Err("unpacks to far more than a program has"));
    }

    #[test]
    fn a_path_that_is_none() {
        let directory = tempfile::tempdir().expect("a directory");
        let shown = directory.path().display();
        let missing = directory.path().join("nothing");
        assert_eq!(read(&missing), Err(format!("there is no {shown}/nothing")));
        assert_eq!(
            read(directory.path()),
            Err(format!("{shown} is a directory and not an archive"))
        );
    }
}
