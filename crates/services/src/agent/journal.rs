//! What does the next agent have to know if this one ends now? What was taken from whom, in a file.
//!
//! It is written **before** anything is done, as if nobody knew what came of it, and again afterwards, with what did. Whoever
//! finds the first of the two looks the outcome up in the quotas there are ([`Throttled`](loadline_core::qos::Throttled)); so whenever an agent
//! is killed, nothing it took is forgotten, and nothing is done twice. Nothing is done that cannot be written down.
//!
//! The file is replaced whole, so it is never half of one. A damaged one is put aside, and what was taken is told by the
//! difference between quotas and what pods were promised ([`adopt`](loadline_core::qos::adopt)). A lock keeps a second agent waiting.

use jiff::Timestamp;
use loadline_api::json::{Skip, Tree};
use loadline_api::qos::snapshot::{read_state, render_state};
use loadline_core::qos::State;
use serde_json::json;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

const FILE: &str = "journal.json";
/// What will be the journal once it is complete.
const NEW: &str = "journal.json.new";
/// What was one.
const DAMAGED: &str = "journal.damaged";
const LOCK: &str = "lock";
const KIND: &str = "AgentJournal";
/// No journal is longer: a thousand pods take a few hundred kilobytes.
const LONGEST: u64 = 64 << 20;

/// The journal of the agent of one node. It is locked as long as this lives.
#[derive(Debug)]
pub(super) struct Journal {
    folder: PathBuf,
    node: String,
    _lock: File,
    /// What the file says, as far as it matters.
    last: Option<State>,
}

/// What an earlier agent left.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Left {
    Nothing,
    State(State),
    /// There was something, and it cannot be read: why.
    Damaged(String),
}

impl Journal {
    /// Takes the journal in a folder, which is made if it is not there. None while another agent has it.
    ///
    /// # Errors
    /// When the folder cannot be had.
    pub fn open(folder: &Path, node: &str) -> io::Result<Option<Self>> {
        fs::create_dir_all(folder)?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join(LOCK))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        Ok(Some(Self { folder: folder.to_owned(), node: node.to_owned(), _lock: lock, last: None }))
    }

    /// What an earlier agent left. What cannot be read is put aside.
    ///
    /// # Errors
    /// When that cannot be found out.
    pub fn read(&mut self) -> io::Result<Left> {
        let path = self.folder.join(FILE);
        let mut text = Vec::new();
        match File::open(&path) {
            Ok(file) => file.take(LONGEST).read_to_end(&mut text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Left::Nothing),
            Err(error) => return Err(error),
        };
        match self.parse(&text) {
            Ok(state) => {
                self.last = Some(state.clone());
                Ok(Left::State(state))
            }
            Err(why) => {
                fs::rename(&path, self.folder.join(DAMAGED))?;
                Ok(Left::Damaged(why))
            }
        }
    }

    fn parse(&self, text: &[u8]) -> Result<State, String> {
        let tree = Tree::parse(text, Skip::NOTHING).map_err(|error| error.to_string())?;
        let kind = tree["kind"].as_str().unwrap_or_default();
        if kind != KIND {
            return Err(format!("expected a document of kind {KIND}, found {kind:?}"));
        }
        let node = tree["node"].as_str().unwrap_or_default();
        if node != self.node {
            return Err(format!("expected the journal of node {}, found that of {node:?}", self.node));
        }
        let (state, _) = read_state(&tree).map_err(|error| error.to_string())?;
        Ok(state)
    }

    /// Writes a state down, unless that is what is written already.
    ///
    /// # Errors
    /// When the file cannot be written; what it said before stands.
    pub fn keep(&mut self, state: &State, now: Timestamp) -> io::Result<()> {
        if self.last.as_ref().is_some_and(|last| says_the_same(last, state)) {
            return Ok(());
        }
        let document = json!({
            "apiVersion": "loadline.dev/v1alpha1", "kind": KIND, "node": self.node, "time": now.to_string(),
            "state": render_state(state),
        });
        let (new, file) = (self.folder.join(NEW), self.folder.join(FILE));
        let mut out = File::create(&new)?;
        out.write_all(document.to_string().as_bytes())?;
        out.sync_all()?;
        drop(out);
        fs::rename(&new, &file)?;
        File::open(&self.folder)?.sync_all()?;
        self.last = Some(state.clone());
        Ok(())
    }
}

/// Would the next agent do the same? How often in a row a line was passed it counts itself.
fn says_the_same(one: &State, other: &State) -> bool {
    let rules = |state: &State| {
        let kept = state.rules.iter().filter(|(_, rule)| rule.active);
        kept.map(|(name, rule)| (name.clone(), rule.restoring, rule.last_triggered)).collect::<Vec<_>>()
    };
    one.throttled == other.throttled && one.evictions == other.evictions && rules(one) == rules(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_core::object::Key;
    use loadline_core::qos::policy::RuleName;
    use loadline_core::qos::{Eviction, Reply, RuleState, Throttled};
    use std::sync::Arc;

    fn state() -> State {
        let rule = Arc::new(RuleName { object: "nq".into(), rule: "cpu".into() });
        let at: Timestamp = "2026-01-05T10:00:00Z".parse().unwrap();
        State {
            cycles: Some(7),
            rules: [(
                rule.clone(),
                RuleState {
                    above: 2,
                    active: true,
                    last_triggered: Some(at),
                    definition: Some("d".into()),
                    cool_down_seconds: Some(60),
                    ..RuleState::default()
                },
            )]
            .into(),
            throttled: vec![Throttled {
                pod: Key::new("default", "a"),
                uid: "u1".into(),
                container: "main".into(),
                original_us: -1,
                written_us: 20_000,
                unsure_us: vec![16_000],
                rules: vec![rule],
                back_since: Some(at),
            }],
            evictions: vec![Eviction {
                pod: Key::new("default", "b"),
                uid: "u2".into(),
                at,
                reply: Reply::Granted,
                grace_seconds: Some(30),
            }],
            leaving: Vec::new(),
        }
    }

    fn open(folder: &Path) -> Journal {
        Journal::open(folder, "n1").unwrap().expect("nobody else has it")
    }

    #[test]
    fn what_one_agent_writes_the_next_reads() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("deep/folder");
        let mut first = open(&folder);
        assert_eq!(first.read().unwrap(), Left::Nothing);
        first.keep(&state(), Timestamp::UNIX_EPOCH).unwrap();
        drop(first);
        assert_eq!(open(&folder).read().unwrap(), Left::State(state()));
    }

    #[test]
    fn of_two_agents_one_waits() {
        let temp = tempfile::tempdir().unwrap();
        let first = open(temp.path());
        assert!(Journal::open(temp.path(), "n1").unwrap().is_none());
        drop(first);
        assert!(Journal::open(temp.path(), "n1").unwrap().is_some());
    }

    #[test]
    fn what_is_no_journal_of_this_node_is_put_aside() {
        let whole = {
            let temp = tempfile::tempdir().unwrap();
            open(temp.path()).keep(&state(), Timestamp::UNIX_EPOCH).unwrap();
            fs::read(temp.path().join(FILE)).unwrap()
        };
        let foreign = String::from_utf8(whole.clone()).unwrap().replace("\"n1\"", "\"n2\"").into_bytes();
        let without = br#"{"kind":"AgentJournal","node":"n1","state":{"throttled":[{"pod":"a"}]}}"#.to_vec();
        let table = [
            (Vec::new(), "empty"),
            (whole[..whole.len() / 2].to_vec(), "cut in the middle"),
            (vec![0; 100], "zeroes, as file systems leave them"),
            (b"{\"kind\":\"Pod\"}".to_vec(), "something else"),
            (foreign, "another node's"),
            (without, "a quota without a figure"),
        ];
        for (content, why) in table {
            let temp = tempfile::tempdir().unwrap();
            fs::write(temp.path().join(FILE), &content).unwrap();
            let mut journal = open(temp.path());
            let left = journal.read().unwrap();
            assert!(matches!(&left, Left::Damaged(problem) if !problem.is_empty()), "{why}: {left:?}");
            assert_eq!(fs::read(temp.path().join(DAMAGED)).unwrap(), content, "{why}: it is kept to look at");
            assert_eq!(journal.read().unwrap(), Left::Nothing, "{why}: and is not read again");
            journal.keep(&state(), Timestamp::UNIX_EPOCH).unwrap();
            assert_eq!(journal.read().unwrap(), Left::State(state()), "{why}");
        }
    }

    #[test]
    fn what_cannot_be_written_leaves_what_was() {
        let temp = tempfile::tempdir().unwrap();
        let mut journal = open(temp.path());
        journal.keep(&state(), Timestamp::UNIX_EPOCH).unwrap();
        // A folder in the place of the new file: it cannot be made, whoever tries.
        fs::create_dir(temp.path().join(NEW)).unwrap();
        let other = State { throttled: Vec::new(), ..state() };
        journal.keep(&other, Timestamp::UNIX_EPOCH).unwrap_err();
        fs::remove_dir(temp.path().join(NEW)).unwrap();
        assert_eq!(journal.read().unwrap(), Left::State(state()));
        // What is written there meets a disk that is full.
        std::os::unix::fs::symlink("/dev/full", temp.path().join(NEW)).unwrap();
        let error = journal.keep(&other, Timestamp::UNIX_EPOCH).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        fs::remove_file(temp.path().join(NEW)).unwrap();
        assert_eq!(journal.read().unwrap(), Left::State(state()));
        journal.keep(&other, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(journal.read().unwrap(), Left::State(other), "tried again, it is written");
    }

    #[test]
    fn only_what_the_next_agent_would_do_otherwise_is_worth_a_write() {
        let temp = tempfile::tempdir().unwrap();
        let mut journal = open(temp.path());
        journal.keep(&state(), Timestamp::UNIX_EPOCH).unwrap();
        fs::create_dir(temp.path().join(NEW)).unwrap();
        let mut counted = state();
        counted.cycles = Some(8);
        counted.rules.values_mut().for_each(|rule| rule.above += 1);
        journal.keep(&counted, Timestamp::UNIX_EPOCH).expect("nothing has to be written");
        counted.rules.values_mut().for_each(|rule| rule.restoring = true);
        journal.keep(&counted, Timestamp::UNIX_EPOCH).unwrap_err();
    }
}
