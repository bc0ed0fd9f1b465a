//! Where does kubectl find the server? In a file of our own that only its user can read.

use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The first line of every file of ours: nothing else is ever overwritten.
const MARK: &str = "# Written by `loadline up`; replaced the next time.\n";

/// A written kubeconfig. One at a place of our own choosing is removed in the end.
#[derive(Debug)]
pub struct Kubeconfig {
    path: PathBuf,
    ours: bool,
}

impl Kubeconfig {
    /// Writes a kubeconfig with a context for each cluster, by name and URL, at `path` or in the user's cache folder.
    /// The first is the current one.
    pub fn write(path: Option<&Path>, clusters: &[(&str, &str)], port: u16) -> Result<Self> {
        let (path, ours) = match path {
            Some(path) => (std::path::absolute(path).unwrap_or_else(|_| path.to_owned()), false),
            None => (home().join(format!("up-{port}.kubeconfig")), true),
        };
        let shown = path.display().to_string();
        refuse_foreign(&path)?;
        if ours && let Some(folder) = path.parent() {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        }
        replace(&path, &text(clusters)).with_context(|| format!("cannot write the kubeconfig {shown}"))?;
        Ok(Self { path, ours })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        if self.ours {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Somebody's own kubeconfig must not be lost to a slip of the fingers.
fn refuse_foreign(path: &Path) -> Result<()> {
    match fs::read_to_string(path) {
        Ok(text) if text.is_empty() || text.starts_with(MARK) => Ok(()),
        Ok(_) => bail!("{} exists and was not written by loadline: choose another path", path.display()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot write the kubeconfig {}", path.display())),
    }
}

/// Whoever reads sees the old file or the new one, never half of one.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
    name.push(format!(".{}", std::process::id()));
    let beside = path.with_file_name(name);
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&beside).and_then(|mut file| file.write_all(text.as_bytes()));
    written.and_then(|()| fs::rename(&beside, path)).inspect_err(|_| {
        let _ = fs::remove_file(&beside);
    })
}

fn text(clusters: &[(&str, &str)]) -> String {
    let all = |item: &dyn Fn(&str, &str) -> String| -> String {
        clusters.iter().map(|(name, url)| item(name, url)).collect()
    };
    format!(
        "{MARK}apiVersion: v1\nkind: Config\ncurrent-context: {}\nclusters:\n{}contexts:\n{}users:\n{}",
        clusters.first().map_or("", |(name, _)| name),
        all(&|name, url| format!("- name: {name}\n  cluster:\n    server: {url}\n")),
        all(&|name, _| format!("- name: {name}\n  context:\n    cluster: {name}\n    user: {name}\n")),
        all(&|name, _| format!("- name: {name}\n  user: {{}}\n")),
    )
}

fn home() -> PathBuf {
    let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    cache.unwrap_or_else(std::env::temp_dir).join("loadline")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_somebody_else_wrote_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        fs::write(&path, "apiVersion: v1\n").unwrap();
        let error = Kubeconfig::write(Some(&path), &[("one", "http://127.0.0.1:1")], 1).unwrap_err();
        assert!(error.to_string().contains("was not written by loadline"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "apiVersion: v1\n");
    }

    #[test]
    fn our_own_file_is_replaced_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        drop(Kubeconfig::write(Some(&path), &[("one", "http://127.0.0.1:1")], 1).unwrap());
        drop(Kubeconfig::write(Some(&path), &[("one", "http://127.0.0.1:2")], 2).unwrap());
        assert!(fs::read_to_string(&path).unwrap().contains("http://127.0.0.1:2"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn every_cluster_has_a_context_and_the_first_is_current() {
        let written = text(&[("member1", "http://127.0.0.1:1"), ("member2", "http://127.0.0.1:2")]);
        let read: kube::config::Kubeconfig = serde_saphyr::from_str(&written).unwrap();
        assert_eq!(read.current_context.as_deref(), Some("member1"));
        let names: Vec<_> = read.contexts.iter().map(|context| context.name.as_str()).collect();
        assert_eq!(names, ["member1", "member2"]);
        assert_eq!((read.clusters.len(), read.auth_infos.len()), (2, 2));
    }
}
