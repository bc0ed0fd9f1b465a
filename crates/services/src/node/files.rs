//! How are the kernel's files read and written? Whole, none that is endless, and none that is not [listed](LISTED).

mod listed;

pub use listed::{How, LISTED, Listed};

use listed::is_listed;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// No file that is read here is longer; what is more is not read, and what was cut is not believed.
const LONGEST: u64 = 1 << 20;

/// The files below a root.
#[derive(Clone, Debug)]
pub struct Files(PathBuf);

impl Files {
    /// Below that folder.
    #[must_use]
    pub fn at(root: &Path) -> Self {
        Self(root.to_owned())
    }

    /// What a file says; none if it cannot be read, or is no text.
    #[must_use]
    pub fn read(&self, file: &str) -> Option<String> {
        let mut text = String::new();
        self.open(file)?.take(LONGEST).read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// The file, to be read now and later; none if it is not there, or may not be read.
    #[must_use]
    pub fn open(&self, file: &str) -> Option<File> {
        if !is_listed(file, How::Read) {
            tracing::error!(file, "not among the files an agent reads; not opened");
            return None;
        }
        File::open(self.0.join(file)).ok()
    }

    #[must_use]
    pub fn exists(&self, file: &str) -> bool {
        self.0.join(file).exists()
    }

    /// Writes into a file that is there, in one piece: the kernel takes each write as a whole.
    ///
    /// # Errors
    /// When it is not there, or the kernel refuses.
    pub fn write(&self, file: &str, text: &str) -> io::Result<()> {
        if !is_listed(file, How::Write) {
            let why = format!("{file} is not among the files an agent writes");
            return Err(io::Error::new(ErrorKind::PermissionDenied, why));
        }
        OpenOptions::new().write(true).truncate(true).open(self.0.join(file))?.write_all(text.as_bytes())
    }

    /// Locks a folder, which ends in `/`, as long as what is returned lives; none while another process has it locked. Nothing is written for
    /// that, and it is the same folder however it is mounted.
    ///
    /// # Errors
    /// When it is not there, or cannot be locked.
    pub fn lock(&self, folder: &str) -> io::Result<Option<File>> {
        if !is_listed(folder, How::Lock) {
            let why = format!("{folder} is not among the folders an agent locks");
            return Err(io::Error::new(ErrorKind::PermissionDenied, why));
        }
        let file = File::open(self.0.join(folder))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Is it still the one that was opened, and none that came in its place?
    #[must_use]
    pub fn is_same(&self, path: &str, file: &File) -> bool {
        let there = std::fs::metadata(self.0.join(path)).map(|there| (there.dev(), there.ino()));
        let open = file.metadata().map(|open| (open.dev(), open.ino()));
        matches!((there, open), (Ok(there), Ok(open)) if there == open)
    }

    /// How many CPUs there are; 0 if nobody can tell.
    #[must_use]
    pub fn cores(&self) -> u32 {
        let text = self.read("proc/stat").unwrap_or_default();
        let is_core = |line: &&str| {
            line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        u32::try_from(text.lines().filter(is_core).count()).unwrap_or_default()
    }

    /// Whole disks, in order.
    #[must_use]
    pub fn disks(&self) -> Vec<Arc<str>> {
        let entries = std::fs::read_dir(self.0.join("sys/block")).into_iter().flatten().flatten();
        let mut names: Vec<Arc<str>> =
            entries.filter_map(|entry| entry.file_name().to_str().map(Arc::from)).collect();
        names.sort();
        names
    }
}

/// What most files need to be read in one piece.
const PIECE: usize = 4096;

/// What an open file says, from its beginning, wherever it was read before. `buffer` is used meanwhile.
pub(super) fn whole(file: &File, buffer: &mut Vec<u8>) -> io::Result<String> {
    let mut length = 0;
    while (length as u64) < LONGEST {
        if buffer.len() < length + PIECE {
            buffer.resize(length + PIECE, 0);
        }
        match file.read_at(&mut buffer[length..], length as u64) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    String::from_utf8(buffer[..length].to_vec())
        .map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_listed_is_not_opened_though_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let group = "sys/fs/cgroup/kubepods/pod1";
        for file in ["etc/shadow", "proc/1/environ", "proc/stat"] {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "text").unwrap();
        }
        std::fs::create_dir_all(folder.path().join(group)).unwrap();
        for name in ["cpu.max", "cgroup.kill"] {
            std::fs::write(folder.path().join(group).join(name), "text").unwrap();
        }
        let files = Files::at(folder.path());
        assert_eq!(files.read("proc/stat").as_deref(), Some("text"));
        for file in ["etc/shadow", "proc/1/environ", "proc/../etc/shadow"] {
            assert_eq!(files.read(file), None, "{file}");
            assert!(files.open(file).is_none(), "{file}");
        }
        files.write(&format!("{group}/cpu.max"), "max").unwrap();
        for file in [&format!("{group}/cgroup.kill"), "proc/stat"] {
            let refused = files.write(file, "1").unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::PermissionDenied, "{file}");
            assert_eq!(std::fs::read_to_string(folder.path().join(file)).unwrap(), "text", "{file}");
        }
    }
}
