//! What does the next agent have to know if this one ends now? What was taken from whom, in a file.
//!
//! It is written **before** anything is done, as if nobody knew what came of it, and again afterwards, with what did. Whoever
//! finds the first of the two looks the outcome up in the quotas there are ([`Throttled`](loadline_core::qos::Throttled)); so whenever an agent
//! is killed, nothing it took is forgotten, and nothing is done twice. Nothing is done that cannot be written down.
//!
//! The file is replaced whole, so it is never half of one. A damaged one is put aside when there is something better to write, and what was
//! taken is told by the difference between quotas and what pods were promised ([`adopt`](loadline_core::qos::adopt)). For how many more looks
//! that is looked for stands in the journal, too: an agent that only looks, or ends, leaves it to the next. A lock keeps a second agent waiting.

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
const VERSION: &str = "loadline.dev/v1alpha1";
/// For how many cycles is looked for what an agent took whose journal is lost? Containers may be late to be seen.
pub(super) const ADOPTING: u32 = 3;
/// No journal is longer: a thousand pods take a few hundred kilobytes.
const LONGEST: u64 = 64 << 20;

/// The journal of the agent of one node. It is locked as long as this lives.
#[derive(Debug)]
pub(super) struct Journal {
    folder: PathBuf,
    node: String,
    /// None in a folder that cannot be written, where nobody can write a journal either.
    lock: Option<File>,
    /// What the file says, as far as it matters.
    last: Option<Left>,
    /// Is the file none that can be read?
    is_damaged: bool,
}

/// What an earlier agent left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Left {
    pub state: State,
    /// For how many more cycles whatever is held to less than it was promised counts as taken by an earlier agent.
    pub adopting: u32,
}

impl Journal {
    /// Takes the journal in a folder, which is made if it is not there. None while another agent has it. In a folder that cannot be written
    /// it says what is there, and nothing can be kept.
    pub fn open(folder: &Path, node: &str) -> Option<Self> {
        let lock = match locked(folder) {
            Ok(None) => return None,
            Ok(lock) => lock,
            Err(error) => {
                tracing::error!(folder = %folder.display(), %error, "no journal can be kept there");
                None
            }
        };
        let (folder, node) = (folder.to_owned(), node.to_owned());
        Some(Self { folder, node, lock, last: None, is_damaged: false })
    }

    /// Can anything be kept, as far as is known?
    pub fn can_keep(&self) -> bool {
        self.lock.is_some()
    }

    /// What an earlier agent left; none if nothing. What cannot be read stays there until there is something to write.
    pub fn read(&mut self) -> Option<Left> {
        let mut text = Vec::new();
        let read =
            File::open(self.folder.join(FILE)).and_then(|file| file.take(LONGEST).read_to_end(&mut text));
        let read = match read {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return None;
            }
            // Whatever it says, an agent was here before.
            Err(error) => Err(error.to_string()),
            Ok(_) => self.parse(&text),
        };
        match read {
            Ok(left) => {
                tracing::info!(throttled = left.state.throttled.len(), left.adopting, "journal read");
                self.last = Some(left.clone());
                Some(left)
            }
            Err(why) => {
                tracing::error!(folder = %self.folder.display(), why, "journal damaged: what is held to less than promised is given back");
                self.is_damaged = true;
                Some(Left { state: State::default(), adopting: ADOPTING })
            }
        }
    }

    fn parse(&self, text: &[u8]) -> Result<Left, String> {
        let tree = Tree::parse(text, Skip::NOTHING).map_err(|error| error.to_string())?;
        let version = tree["apiVersion"].as_str().unwrap_or_default();
        if version != VERSION {
            return Err(format!("expected a document of {VERSION}, found {version:?}"));
        }
        let kind = tree["kind"].as_str().unwrap_or_default();
        if kind != KIND {
            return Err(format!("expected a document of kind {KIND}, found {kind:?}"));
        }
        let node = tree["node"].as_str().unwrap_or_default();
        if node != self.node {
            return Err(format!("expected the journal of node {}, found that of {node:?}", self.node));
        }
        let (state, _) = read_state(&tree).map_err(|error| error.to_string())?;
        let adopting = tree["adopting"].as_i64().unwrap_or_default();
        Ok(Left { state, adopting: u32::try_from(adopting).unwrap_or(ADOPTING).min(ADOPTING) })
    }

    /// Writes a state down, unless that is what is written already.
    ///
    /// # Errors
    /// When the file cannot be written; what it said before stands.
    pub fn keep(&mut self, state: &State, adopting: u32, now: Timestamp) -> io::Result<()> {
        if self.lock.is_none() {
            // It can be written now, or this is why not.
            self.lock = locked(&self.folder)?;
            self.lock.as_ref().ok_or_else(|| io::Error::other("another agent has it"))?;
        }
        let is_known = |last: &Left| last.adopting == adopting && says_the_same(&last.state, state);
        if self.last.as_ref().is_some_and(is_known) {
            return Ok(());
        }
        let mut document = json!({
            "apiVersion": VERSION, "kind": KIND, "node": self.node, "time": now.to_string(),
            "state": render_state(state),
        });
        if adopting > 0 {
            document["adopting"] = json!(adopting);
        }
        let (new, file) = (self.folder.join(NEW), self.folder.join(FILE));
        let mut out = File::create(&new)?;
        out.write_all(document.to_string().as_bytes())?;
        out.sync_all()?;
        drop(out);
        if self.is_damaged {
            // Whoever looks after the node may want to see it. Linked, so that there is a journal at every moment.
            let aside = self.folder.join(DAMAGED);
            let _ = fs::remove_file(&aside);
            // What cannot be linked, as a folder, is no journal either.
            if let Err(error) = fs::hard_link(&file, &aside).or_else(|_| fs::rename(&file, &aside)) {
                tracing::warn!(%error, "damaged journal not kept");
            }
            self.is_damaged = false;
        }
        fs::rename(&new, &file)?;
        File::open(&self.folder)?.sync_all()?;
        self.last = Some(Left { state: state.clone(), adopting });
        Ok(())
    }
}

/// The lock of a folder, which is made if it is not there. None while another agent has it.
fn locked(folder: &Path) -> io::Result<Option<File>> {
    fs::create_dir_all(folder)?;
    let lock = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join(LOCK))?;
    match lock.try_lock() {
        Ok(()) => Ok(Some(lock)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Would the next agent do the same? How often in a row a line was passed it counts itself.
fn says_the_same(one: &State, other: &State) -> bool {
    let rules = |state: &State| {
        let kept = state.rules.iter().filter(|(_, rule)| rule.active);
        kept.map(|(name, rule)| (name.clone(), rule.restoring, rule.only_said, rule.last_triggered))
            .collect::<Vec<_>>()
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
                    only_said: true,
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

    fn left(state: State) -> Left {
        Left { state, adopting: 0 }
    }

    fn open(folder: &Path) -> Journal {
        Journal::open(folder, "n1").expect("nobody else has it")
    }

    #[test]
    fn what_one_agent_writes_the_next_reads() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("deep/folder");
        let mut first = open(&folder);
        assert_eq!(first.read(), None);
        first.keep(&state(), 0, Timestamp::UNIX_EPOCH).unwrap();
        drop(first);
        let mut second = open(&folder);
        assert_eq!(second.read(), Some(left(state())));
        // The same state, and two looks more for what is not in it.
        second.keep(&state(), 2, Timestamp::UNIX_EPOCH).unwrap();
        drop(second);
        assert_eq!(open(&folder).read(), Some(Left { state: state(), adopting: 2 }));
    }

    #[test]
    fn of_two_agents_one_waits() {
        let temp = tempfile::tempdir().unwrap();
        let first = open(temp.path());
        assert!(Journal::open(temp.path(), "n1").is_none());
        drop(first);
        assert!(Journal::open(temp.path(), "n1").is_some());
    }

    #[test]
    fn a_folder_that_cannot_be_written_says_what_is_there_and_keeps_nothing_until_it_can() {
        let temp = tempfile::tempdir().unwrap();
        open(temp.path()).keep(&state(), 0, Timestamp::UNIX_EPOCH).unwrap();
        // A folder in the place of the lock: it cannot be opened, whoever tries.
        fs::remove_file(temp.path().join(LOCK)).unwrap();
        fs::create_dir(temp.path().join(LOCK)).unwrap();
        let mut journal = open(temp.path());
        assert_eq!(journal.read(), Some(left(state())));
        let other = State { throttled: Vec::new(), ..state() };
        journal.keep(&other, 0, Timestamp::UNIX_EPOCH).unwrap_err();
        assert_eq!(journal.read(), Some(left(state())));
        fs::remove_dir(temp.path().join(LOCK)).unwrap();
        journal.keep(&other, 0, Timestamp::UNIX_EPOCH).unwrap();
        assert!(Journal::open(temp.path(), "n1").is_none(), "and it is locked");
        // A file in the place of the folder: there never was a journal.
        let mut journal = open(&temp.path().join(FILE));
        assert_eq!(journal.read(), None);
        journal.keep(&other, 0, Timestamp::UNIX_EPOCH).unwrap_err();
    }

    #[test]
    fn a_folder_in_the_place_of_the_journal_is_put_aside() {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir(temp.path().join(FILE)).unwrap();
        let mut journal = open(temp.path());
        assert_eq!(journal.read().map(|left| left.adopting), Some(ADOPTING), "an agent was here before");
        journal.keep(&state(), 0, Timestamp::UNIX_EPOCH).unwrap();
        assert!(temp.path().join(DAMAGED).is_dir());
        assert_eq!(journal.read(), Some(left(state())));
    }

    #[test]
    fn what_is_no_journal_of_this_node_is_put_aside() {
        let whole = {
            let temp = tempfile::tempdir().unwrap();
            open(temp.path()).keep(&state(), 0, Timestamp::UNIX_EPOCH).unwrap();
            fs::read(temp.path().join(FILE)).unwrap()
        };
        let foreign = String::from_utf8(whole.clone()).unwrap().replace("\"n1\"", "\"n2\"").into_bytes();
        let newer = String::from_utf8(whole.clone()).unwrap().replace("v1alpha1", "v2").into_bytes();
        let without = br#"{"apiVersion":"loadline.dev/v1alpha1","kind":"AgentJournal","node":"n1","state":{"throttled":[{"pod":"a"}]}}"#.to_vec();
        let table = [
            (Vec::new(), "empty"),
            (whole[..whole.len() / 2].to_vec(), "cut in the middle"),
            (vec![0; 100], "zeroes, as file systems leave them"),
            (b"{\"kind\":\"Pod\"}".to_vec(), "something else"),
            (foreign, "another node's"),
            (newer, "of another version"),
            (without, "a quota without a figure"),
        ];
        for (content, why) in table {
            let temp = tempfile::tempdir().unwrap();
            fs::write(temp.path().join(FILE), &content).unwrap();
            let mut journal = open(temp.path());
            let lost = Some(Left { state: State::default(), adopting: ADOPTING });
            for _ in 0..2 {
                assert_eq!(journal.read(), lost, "{why}: who only looks leaves it to the next");
            }
            journal.keep(&state(), 0, Timestamp::UNIX_EPOCH).unwrap();
            assert_eq!(fs::read(temp.path().join(DAMAGED)).unwrap(), content, "{why}: it is kept to look at");
            assert_eq!(journal.read(), Some(left(state())), "{why}");
        }
    }

    #[test]
    fn what_cannot_be_written_leaves_what_was() {
        let temp = tempfile::tempdir().unwrap();
        let mut journal = open(temp.path());
        journal.keep(&state(), 0, Timestamp::UNIX_EPOCH).unwrap();
        // A folder in the place of the new file: it cannot be made, whoever tries.
        fs::create_dir(temp.path().join(NEW)).unwrap();
        let other = State { throttled: Vec::new(), ..state() };
        journal.keep(&other, 0, Timestamp::UNIX_EPOCH).unwrap_err();
        fs::remove_dir(temp.path().join(NEW)).unwrap();
        assert_eq!(journal.read(), Some(left(state())));
        // What is written there meets a disk that is full.
        std::os::unix::fs::symlink("/dev/full", temp.path().join(NEW)).unwrap();
        let error = journal.keep(&other, 0, Timestamp::UNIX_EPOCH).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        fs::remove_file(temp.path().join(NEW)).unwrap();
        assert_eq!(journal.read(), Some(left(state())));
        journal.keep(&other, 0, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(journal.read(), Some(left(other)), "tried again, it is written");
    }

    #[test]
    fn only_what_the_next_agent_would_do_otherwise_is_worth_a_write() {
        let temp = tempfile::tempdir().unwrap();
        let mut journal = open(temp.path());
        journal.keep(&state(), 0, Timestamp::UNIX_EPOCH).unwrap();
        fs::create_dir(temp.path().join(NEW)).unwrap();
        let mut counted = state();
        counted.cycles = Some(8);
        counted.rules.values_mut().for_each(|rule| rule.above += 1);
        journal.keep(&counted, 0, Timestamp::UNIX_EPOCH).expect("nothing has to be written");
        counted.rules.values_mut().for_each(|rule| rule.restoring = true);
        journal.keep(&counted, 0, Timestamp::UNIX_EPOCH).unwrap_err();
    }
}
