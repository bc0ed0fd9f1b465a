//! What does a component really ask of API servers? Each kind of request once, in a file, for whoever checks its account.
//!
//! Off unless [`FOLDER`] names a folder. Then every process has a file of its own there, to which it appends a line when a
//! component makes a request of a kind it has not made before: for audits, and for `cargo xtask check-calls`, which compares
//! what was recorded with the roles that are shipped.

use super::Call;
use serde_json::json;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::process;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// The variable of the environment that switches it on.
pub const FOLDER: &str = "LOADLINE_RECORD_CALLS";
/// Lines of a file. There are about fifty kinds of requests to a component.
const MOST: usize = 4096;

static RECORD: LazyLock<Option<Record>> = LazyLock::new(|| Record::open(std::env::var_os(FOLDER).as_deref()));

/// Notes a request that was sent.
pub(super) fn note(component: &'static str, call: Call, path: &str) {
    if let Some(record) = &*RECORD {
        record.note(component, call, path);
    }
}

/// Who asks, what, and of one namespace only?
type Kind = (&'static str, Call, bool);

struct Record(Mutex<(HashSet<Kind>, File)>);

impl Record {
    /// A new file in that folder; nothing without a folder, or in one that cannot be written to.
    fn open(folder: Option<&OsStr>) -> Option<Self> {
        let folder = Path::new(folder.filter(|folder| !folder.is_empty())?);
        match create(folder) {
            Ok(file) => Some(Self(Mutex::new((HashSet::new(), file)))),
            Err(error) => {
                let folder = folder.display();
                tracing::warn!(%folder, %error, "requests are not recorded, {FOLDER} expects a folder to write to");
                None
            }
        }
    }

    fn note(&self, component: &'static str, call: Call, path: &str) {
        let kind = (component, call, is_namespaced(call, path));
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (seen, file) = &mut *held;
        if seen.len() >= MOST || !seen.insert(kind) {
            return;
        }
        if let Err(error) = file.write_all(line(kind).as_bytes()) {
            tracing::warn!(%error, "a request is not recorded");
        }
    }
}

/// Processes come and go, and numbers of theirs come again.
fn create(folder: &Path) -> io::Result<File> {
    std::fs::create_dir_all(folder)?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let name = format!("{}-{since}.jsonl", process::id());
    OpenOptions::new().create(true).append(true).open(folder.join(name))
}

fn line((component, call, namespaced): Kind) -> String {
    let Call { verb, resource, subresource } = call;
    let line = json!({
        "component": component, "verb": verb.to_string(), "group": resource.group, "resource": resource.plural,
        "subresource": subresource, "namespaced": namespaced,
    });
    format!("{line}\n")
}

/// Is it about one namespace, so that a role there is enough?
fn is_namespaced(call: Call, path: &str) -> bool {
    call.resource.plural != "namespaces" && path.contains("/namespaces/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::connection::Verb;
    use crate::cluster::resource::{LEASES, NAMESPACES, NODES, Resource};

    fn call(verb: Verb, resource: Resource, subresource: &'static str) -> Call {
        Call { verb, resource, subresource }
    }

    #[test]
    fn every_kind_of_request_is_written_once_in_a_file_of_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("calls");
        let record = Record::open(Some(inner.as_os_str())).unwrap();
        for _ in 0..3 {
            record.note("one", call(Verb::List, NODES, ""), "/api/v1/nodes");
            record.note("two", call(Verb::List, NODES, ""), "/api/v1/nodes?limit=500");
            record.note("one", call(Verb::Patch, NODES, "status"), "/api/v1/nodes/n1/status");
            record.note(
                "one",
                call(Verb::Get, LEASES, ""),
                "/apis/coordination.k8s.io/v1/namespaces/a/leases/b",
            );
            record.note("one", call(Verb::Get, NAMESPACES, ""), "/api/v1/namespaces/shop");
        }
        let files: Vec<_> = std::fs::read_dir(&inner).unwrap().map(|file| file.unwrap().path()).collect();
        assert_eq!(files.len(), 1);
        let text = std::fs::read_to_string(&files[0]).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        let nodes = json!({
            "component": "one", "verb": "list", "group": "", "resource": "nodes", "subresource": "", "namespaced": false
        });
        assert_eq!(serde_json::from_str::<serde_json::Value>(lines[0]).unwrap(), nodes);
        let scoped: Vec<bool> = lines.iter().map(|line| line.contains(r#""namespaced":true"#)).collect();
        assert_eq!(scoped, [false, false, false, true, false], "{text}");
    }

    #[test]
    fn without_a_folder_nothing_is_recorded_and_one_that_cannot_be_is_no_reason_to_fail() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(Record::open(None).is_none());
        assert!(Record::open(Some(OsStr::new(""))).is_none());
        assert!(Record::open(Some(file.as_os_str())).is_none());
    }
}
