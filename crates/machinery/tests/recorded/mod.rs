//! Reads the answers recorded from Kubernetes' own libraries, see `vectors/machinery/README.md`.

#![expect(clippy::panic, reason = "a missing file ends the test")]

use serde::de::DeserializeOwned;

/// A file of `vectors/machinery`.
pub fn read<T: DeserializeOwned>(file: &str) -> T {
    let path = format!("{}/../../vectors/machinery/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{path}: {e}"))
}
