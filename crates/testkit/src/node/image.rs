//! Which image do pods on a real node use, where no registry is?
//!
//! One with a single static program, made here and imported into containerd.

use super::{containerd, write};
use crate::control_plane::Error;
use crate::image::{File, Image, architecture};
use crate::parts;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

/// Its name. What runs without arguments waits for its end, as the sandbox of a pod has to.
pub const IMAGE: &str = "loadline.test/workload:1";

/// Makes the image known to containerd.
pub(super) fn import(folder: &Path) -> Result<(), Error> {
    let content = fs::read(parts::find("workload")?).map_err(Error::io("read the pods' program"))?;
    let image = Image {
        name: IMAGE.to_owned(),
        files: [("workload".to_owned(), File { mode: 0o755, content })].into(),
        entrypoint: vec!["/workload".to_owned()],
        arguments: vec!["pause".to_owned()],
        architecture: architecture().to_owned(),
        ..Image::default()
    };
    let file = folder.join("image.tar");
    let (archive, _) = image.archive().map_err(Error::io("make an image"))?;
    fs::write(&file, archive).map_err(Error::io("write an image"))?;
    import_archive(folder, &file)
}

/// Makes the images of an archive known to containerd.
pub(super) fn import_archive(folder: &Path, file: &Path) -> Result<(), Error> {
    let log = folder.join("import.log");
    let output = Command::new(parts::find("ctr")?)
        .arg(format!("--address={}", containerd::socket(folder).display()))
        .args(["--namespace=k8s.io", "images", "import", "--snapshotter=native"])
        .arg(file)
        .output()
        .map_err(Error::io("start ctr"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    write(&log, &said)?;
    if !output.status.success() {
        return Err(Error::io("import an image")(io::Error::other(said)));
    }
    Ok(())
}
