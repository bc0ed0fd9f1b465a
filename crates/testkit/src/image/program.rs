//! What goes into the image of one program: the program, and whatever it is linked to.

use super::{File, Image, architecture};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

/// Nobody, by the number that many images have for that.
const USER: &str = "65532:65532";

impl Image {
    /// An image with this program, which runs it as nobody. What it is linked to comes along, from where it is on this
    /// machine: nothing for a static one.
    ///
    /// # Errors
    /// When the program, or what it is linked to, cannot be read.
    pub fn of_program(program: &Path, name: &str) -> io::Result<Self> {
        let executable = |path: &Path| -> io::Result<File> {
            let wrong =
                |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
            Ok(File { mode: 0o755, content: fs::read(path).map_err(wrong)? })
        };
        let stem = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut files = BTreeMap::from([(stem.clone(), executable(program)?)]);
        for library in linked(program)? {
            files.insert(library.trim_start_matches('/').to_owned(), executable(Path::new(&library))?);
        }
        Ok(Self {
            name: name.to_owned(),
            files,
            entrypoint: vec![format!("/{stem}")],
            user: USER.to_owned(),
            architecture: architecture().to_owned(),
            ..Self::default()
        })
    }
}

/// The shared libraries of a program, and what loads them.
fn linked(program: &Path) -> io::Result<Vec<String>> {
    let output = Command::new("ldd").arg(program).output()?;
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    libraries(&said).map_err(|missing| io::Error::other(format!("{}: {missing}", program.display())))
}

/// The paths in what `ldd` says.
fn libraries(said: &str) -> Result<Vec<String>, String> {
    if said.contains("not a dynamic executable") || said.contains("statically linked") {
        return Ok(Vec::new());
    }
    if let Some(line) = said.lines().find(|line| line.contains("not found")) {
        return Err(line.trim().to_owned());
    }
    let path = |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(str::to_owned);
    Ok(said.lines().filter_map(path).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_those_that_ldd_names() {
        let said = "\tlinux-vdso.so.1 (0x00007f14ff8e9000)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f14f981e000)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f14ff8eb000)\n";
        let expected = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(libraries(said).unwrap(), expected);
        assert_eq!(libraries("\tnot a dynamic executable\n").unwrap(), [""; 0]);
        assert_eq!(libraries("\tstatically linked\n").unwrap(), [""; 0]);
        assert!(libraries("\tlibx.so => not found\n").unwrap_err().contains("libx.so"));
    }
}
