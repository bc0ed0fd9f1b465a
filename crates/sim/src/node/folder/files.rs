//! How does nobody ever see half a file? It is written elsewhere and moved to its place.
//!
//! The same goes for folders: they appear with everything in them, and vanish with it, as those of the kernel do.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Writes below one folder. What is not finished is in another one, on the same file system.
#[derive(Debug)]
pub struct Files {
    top: PathBuf,
    unfinished: PathBuf,
}

impl Files {
    /// Of a folder that is not there yet; `unfinished` is nobody else's.
    pub fn new(top: PathBuf, unfinished: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&unfinished)?;
        Ok(Self { top, unfinished })
    }

    /// Where something is.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.top.join(path)
    }

    /// Writes one file anew.
    pub fn write(&self, path: impl AsRef<Path>, text: &str) -> io::Result<()> {
        let unfinished = self.unfinished.join("file");
        fs::write(&unfinished, text)?;
        fs::rename(unfinished, self.path(path))
    }

    /// Makes a folder with files in it, which may be in folders themselves. The empty path is the top.
    pub fn add(&self, folder: impl AsRef<Path>, files: &[(&str, String)]) -> io::Result<()> {
        let unfinished = self.unfinished.join("folder");
        clear(&unfinished)?;
        fs::create_dir(&unfinished)?;
        for (path, text) in files {
            let path = unfinished.join(path);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(path, text)?;
        }
        fs::rename(unfinished, self.place(folder.as_ref()))
    }

    /// Removes a folder with everything in it; one that is gone is fine.
    pub fn remove(&self, folder: impl AsRef<Path>) -> io::Result<()> {
        let unfinished = self.unfinished.join("gone");
        clear(&unfinished)?;
        match fs::rename(self.place(folder.as_ref()), &unfinished) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.and_then(|()| fs::remove_dir_all(unfinished)),
        }
    }

    fn place(&self, folder: &Path) -> PathBuf {
        // Joined with nothing, a path would end with a slash.
        if folder.as_os_str().is_empty() { self.top.clone() } else { self.top.join(folder) }
    }
}

/// Away with what an attempt that failed has left.
fn clear(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // Whatever is left goes with the folder both are in.
        let _ = self.remove("");
        let _ = fs::remove_dir_all(&self.unfinished);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_appear_and_vanish_whole_and_leave_nothing() {
        let temporary = tempfile::tempdir().unwrap();
        let top = temporary.path().join("top");
        let files = Files::new(top.clone(), temporary.path().join("unfinished")).unwrap();
        files.add("", &[("a/b", "1".to_owned())]).unwrap();
        files.add("a/c", &[("d", "2".to_owned()), ("e/f", "3".to_owned())]).unwrap();
        files.write("a/b", "4").unwrap();
        let read = |path: &str| fs::read_to_string(top.join(path)).ok();
        assert_eq!(
            (read("a/b").unwrap(), read("a/c/d").unwrap(), read("a/c/e/f").unwrap()),
            ("4".into(), "2".into(), "3".into())
        );
        files.remove("a/c").unwrap();
        files.remove("a/c").unwrap();
        assert_eq!((read("a/c/d"), read("a/b")), (None, Some("4".into())));
        drop(files);
        assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
    }
}
