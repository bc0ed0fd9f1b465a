//! Where are the sources of a pinned Go module? Tests read definitions of other projects from there, so that none of
//! them is copied.

use crate::control_plane::Error;
use crate::parts::Module;
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the Go module called `name`, in the version that `pin` asks for: in Go's module cache, to which it is
/// fetched if need be.
pub(crate) fn folder(pin: &Module, name: &str) -> Result<PathBuf, Error> {
    let pinned = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../xtask/control-plane").join(pin.folder);
    let mut go = Command::new("go");
    go.args(["mod", "download", "-json", name]).current_dir(pinned).env("GOWORK", "off");
    let step = "ask Go for the sources of a module";
    let output = go.output().map_err(Error::io(step))?;
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let folder = answer["Dir"].as_str().filter(|folder| !folder.is_empty()).map(PathBuf::from);
    folder.ok_or_else(|| {
        let said = answer["Error"].as_str().map(str::to_owned);
        let said = said.unwrap_or_else(|| String::from_utf8_lossy(&output.stderr).trim().to_owned());
        Error::io(step)(io::Error::other(said))
    })
}
