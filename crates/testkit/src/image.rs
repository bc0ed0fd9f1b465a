//! How is a container image made, without a daemon and without a registry?
//!
//! One layer of files, as an archive in the OCI layout, which `ctr images import`, `podman load`, `docker load` and `skopeo` take.
//! The same files give the same archive, byte for byte: entries are sorted, and nothing in it says when, where or by whom.

mod program;

use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, Write as _};

/// Tar's unit.
const BLOCK: usize = 512;
/// When everything was made.
const EPOCH: &str = "1970-01-01T00:00:00Z";

/// What is in an image, and how it is run.
#[derive(Clone, Debug, Default)]
pub struct Image {
    /// With its tag, such as `docker.io/library/loadline:0.1.0`.
    pub name: String,
    /// Absolute paths without the first slash, and what is there.
    pub files: BTreeMap<String, File>,
    /// What is run, with what.
    pub entrypoint: Vec<String>,
    pub arguments: Vec<String>,
    /// User and group, by number.
    pub user: String,
    /// As Go calls it: `amd64`, `arm64`.
    pub architecture: String,
    pub labels: BTreeMap<String, String>,
    /// Smaller, and slower to make.
    pub compressed: bool,
}

/// A file of an image.
#[derive(Clone, Debug, Default)]
pub struct File {
    pub mode: u32,
    pub content: Vec<u8>,
}

/// This machine's architecture, as Go calls it.
#[must_use]
pub fn architecture() -> &'static str {
    architecture_of(std::env::consts::ARCH)
}

/// The architecture of a target of Rust's, such as `aarch64-unknown-linux-musl`, or of the first part of one, as Go calls it.
#[must_use]
pub fn architecture_of(target: &str) -> &str {
    match target.split('-').next().unwrap_or_default() {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

impl Image {
    /// The archive, and the digest by which the image is known.
    ///
    /// # Errors
    /// When a path is too long for an archive.
    pub fn archive(&self) -> io::Result<(Vec<u8>, String)> {
        let mut blobs = BTreeMap::new();
        let mut blob = |content: Vec<u8>, kind: &str| -> Value {
            let digest = digest(&content);
            let described =
                json!({"mediaType": kind, "digest": format!("sha256:{digest}"), "size": content.len()});
            blobs.insert(format!("blobs/sha256/{digest}"), File { mode: 0o644, content });
            described
        };
        let layer = tar(&self.files)?;
        let unpacked = digest(&layer);
        let layer = if self.compressed {
            blob(gzip(&layer)?, "application/vnd.oci.image.layer.v1.tar+gzip")
        } else {
            blob(layer, "application/vnd.oci.image.layer.v1.tar")
        };
        let config = json!({
            "architecture": self.architecture,
            "os": "linux",
            "created": EPOCH,
            "config": {
                "Entrypoint": self.entrypoint, "Cmd": self.arguments, "User": self.user, "Labels": self.labels,
                "WorkingDir": "/",
            },
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{unpacked}")]},
            "history": [{"created": EPOCH, "created_by": "cargo xtask image"}],
        });
        let config = blob(config.to_string().into_bytes(), "application/vnd.oci.image.config.v1+json");
        // For readers of what `docker save` wrote before it wrote this.
        let place = |of: &Value| {
            format!(
                "blobs/sha256/{}",
                of["digest"].as_str().unwrap_or_default().trim_start_matches("sha256:")
            )
        };
        let older = json!([{"Config": place(&config), "RepoTags": [self.name], "Layers": [place(&layer)]}]);
        let kind = "application/vnd.oci.image.manifest.v1+json";
        let manifest = json!({"schemaVersion": 2, "mediaType": kind, "config": config, "layers": [layer]});
        let mut manifest = blob(manifest.to_string().into_bytes(), kind);
        let known_by = manifest["digest"].as_str().unwrap_or_default().to_owned();
        manifest["platform"] = json!({"architecture": self.architecture, "os": "linux"});
        let tag = self.name.rsplit(':').next().unwrap_or_default();
        manifest["annotations"] =
            json!({"io.containerd.image.name": self.name, "org.opencontainers.image.ref.name": tag});
        let index = json!({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [manifest],
        });
        let texts = [
            ("index.json", index),
            ("manifest.json", older),
            ("oci-layout", json!({"imageLayoutVersion": "1.0.0"})),
        ];
        blobs.extend(texts.map(|(name, text)| {
            (name.to_owned(), File { mode: 0o644, content: text.to_string().into_bytes() })
        }));
        Ok((tar(&blobs)?, known_by))
    }
}

/// SHA-256, as it is written.
#[must_use]
pub fn digest(content: &[u8]) -> String {
    Sha256::digest(content).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// These files as a compressed archive; the same files give the same one, byte for byte.
///
/// # Errors
/// When a path is too long for an archive.
pub fn tgz(files: &BTreeMap<String, File>) -> io::Result<Vec<u8>> {
    gzip(&tar(files)?)
}

fn gzip(content: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    encoder.write_all(content)?;
    encoder.finish()
}

/// Files in the order of their names, each after the folders it is in.
fn tar(files: &BTreeMap<String, File>) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut folders = BTreeSet::new();
    for (name, file) in files {
        let parents = name.match_indices('/').map(|(at, _)| &name[..=at]);
        for folder in parents.filter(|folder| folders.insert(*folder)) {
            out.extend(head(folder, 0o755, 0, '5')?);
        }
        out.extend(head(name, file.mode, file.content.len(), '0')?);
        out.extend(&file.content);
        out.resize(out.len().next_multiple_of(BLOCK), 0);
    }
    // The end is two empty blocks.
    out.resize(out.len() + 2 * BLOCK, 0);
    Ok(out)
}

fn head(name: &str, mode: u32, size: usize, kind: char) -> io::Result<[u8; BLOCK]> {
    if name.len() > 100 {
        return Err(io::Error::other(format!("{name}: expected a path of 100 bytes at most")));
    }
    let mut head = [0; BLOCK];
    let mut put = |at: usize, text: &str| head[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, &format!("{mode:07o}"));
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{size:011o}"));
    put(136, "00000000000");
    // The sum of all bytes, its own eight taken as spaces.
    put(148, "        ");
    put(156, &kind.to_string());
    put(257, "ustar\x0000");
    let sum: u32 = head.iter().map(|&byte| u32::from(byte)).sum();
    head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn image(content: &[u8]) -> Image {
        let file = |content: &[u8]| File { mode: 0o755, content: content.to_vec() };
        Image {
            name: "loadline.test/one:1".into(),
            files: [("program".to_owned(), file(content)), ("lib/a/b.so".to_owned(), file(b"b"))].into(),
            entrypoint: vec!["/program".into()],
            user: "65532:65532".into(),
            architecture: "amd64".into(),
            compressed: true,
            ..Image::default()
        }
    }

    #[test]
    fn the_same_files_give_the_same_image_and_others_another() {
        let (archive, digest) = image(b"one").archive().unwrap();
        assert_eq!(image(b"one").archive().unwrap(), (archive, digest.clone()));
        assert_ne!(image(b"two").archive().unwrap().1, digest);
    }

    #[test]
    fn a_digest_is_that_of_the_standard() {
        assert_eq!(digest(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn an_architecture_is_called_as_go_calls_it() {
        for (target, want) in [
            ("x86_64-unknown-linux-musl", "amd64"),
            ("aarch64-unknown-linux-musl", "arm64"),
            ("aarch64", "arm64"),
            ("riscv64gc-unknown-linux-gnu", "riscv64gc"),
        ] {
            assert_eq!(architecture_of(target), want);
        }
        // What a target is for is what the image says it is for.
        let other =
            Image { architecture: architecture_of("aarch64-unknown-linux-musl").into(), ..image(b"one") };
        let (archive, _) = other.archive().unwrap();
        let said = String::from_utf8_lossy(&archive);
        assert!(said.contains(r#""architecture":"arm64""#) && !said.contains("amd64"));
    }

    #[test]
    fn tar_finds_every_file_in_it() {
        let layer = tar(&image(b"one").files).unwrap();
        let mut listing = Command::new("tar")
            .arg("-tf")
            .arg("-")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        listing.stdin.take().unwrap().write_all(&layer).unwrap();
        let listed = listing.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&listed.stdout), "lib/\nlib/a/\nlib/a/b.so\nprogram\n");
        let long = [("x".repeat(101), File::default())].into();
        assert!(tar(&long).unwrap_err().to_string().contains("100 bytes"));
    }
}
