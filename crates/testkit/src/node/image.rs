//! Which image do pods on a real node use, where no registry is?
//!
//! One with a single static program, made here as `docker save` would and imported into containerd.

use super::{containerd, write};
use crate::control_plane::Error;
use crate::parts;
use serde_json::json;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

/// Its name. What runs without arguments waits for its end, as the sandbox of a pod has to.
pub const IMAGE: &str = "loadline.test/workload:1";

/// Tar's unit.
const BLOCK: usize = 512;

/// Makes the image known to containerd.
pub(super) fn import(folder: &Path) -> Result<(), Error> {
    let program = fs::read(parts::find("workload")?).map_err(Error::io("read the pods' program"))?;
    let file = folder.join("image.tar");
    fs::write(&file, archive(&program)).map_err(Error::io("write an image"))?;
    let log = folder.join("import.log");
    let output = Command::new(parts::find("ctr")?)
        .arg(format!("--address={}", containerd::socket(folder).display()))
        .args(["--namespace=k8s.io", "images", "import", "--snapshotter=native"])
        .arg(&file)
        .output()
        .map_err(Error::io("start ctr"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    write(&log, &said)?;
    if !output.status.success() {
        return Err(Error::io("import an image")(io::Error::other(said)));
    }
    Ok(())
}

/// The image as an archive.
fn archive(program: &[u8]) -> Vec<u8> {
    let layer = tar(&[("workload", 0o755, program)]);
    let digest = ring::digest::digest(&ring::digest::SHA256, &layer);
    let digest = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
    let config = json!({
        "architecture": architecture(),
        "os": "linux",
        "config": {"Entrypoint": ["/workload"], "Cmd": ["pause"]},
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{digest}")]},
    });
    let manifest = json!([{"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]);
    tar(&[
        ("manifest.json", 0o644, manifest.to_string().as_bytes()),
        ("config.json", 0o644, config.to_string().as_bytes()),
        ("layer.tar", 0o644, &layer),
    ])
}

/// This machine's, as Go calls it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Plain files, each a name of at most 100 bytes, a mode and what is in it.
fn tar(files: &[(&str, u32, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, mode, content) in files {
        let mut head = [0; BLOCK];
        let mut put = |at: usize, text: &str| head[at..at + text.len()].copy_from_slice(text.as_bytes());
        put(0, name);
        put(100, &format!("{mode:07o}"));
        put(108, "0000000");
        put(116, "0000000");
        put(124, &format!("{:011o}", content.len()));
        put(136, "00000000000");
        // The sum of all bytes, its own eight taken as spaces.
        put(148, "        ");
        put(156, "0");
        put(257, "ustar\x0000");
        let sum: u32 = head.iter().map(|&byte| u32::from(byte)).sum();
        head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        out.extend_from_slice(&head);
        out.extend_from_slice(content);
        out.resize(out.len().next_multiple_of(BLOCK), 0);
    }
    out.resize(out.len() + 2 * BLOCK, 0);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_is_one_that_tar_reads() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("image.tar");
        let program = vec![7; 1000];
        fs::write(&file, archive(&program)).unwrap();
        let unpacked = |file: &Path| {
            let status = Command::new("tar").arg("-xf").arg(file).current_dir(temp.path()).status().unwrap();
            assert!(status.success());
        };
        unpacked(&file);
        unpacked(&temp.path().join("layer.tar"));
        assert_eq!(fs::read(temp.path().join("workload")).unwrap(), program);
    }
}
