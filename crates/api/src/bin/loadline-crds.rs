//! Writes the definitions of all kinds to a folder: `loadline-crds FOLDER`. Called by `cargo xtask codegen`.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from).ok_or("expected the folder to write to")?;
    fs::create_dir_all(&folder)?;
    for (name, text) in loadline_api::schema::files()? {
        fs::write(folder.join(name), text)?;
    }
    Ok(())
}
