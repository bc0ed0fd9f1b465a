//! Which of the kernel's files stay open from one look to the next? Those every look reads, as many as there is room for.
//!
//! The kernel makes up what such a file says as it is read, so one that is open says what is so now, and reading it costs a sixth of
//! opening, reading and closing it. When its cgroup goes, so does it: from then on reading fails, also when another cgroup of that name
//! has come (`ENODEV`, with both versions of cgroups). It is opened anew then, and what it says is not compared with before.
//!
//! A file on a disk that is replaced would go on saying what it said; it is opened every time.

use super::files::whole;
use loadline_core::qos::cgroup::Figure;
use std::collections::HashMap;
use std::fs::{self, File};

/// So many are kept at most, which is enough for 400 pods of two containers. The kernel keeps a page with each: ten megabytes.
const MOST: usize = 2048;

/// Files that are kept open.
#[derive(Debug)]
pub(super) struct Kept {
    /// By group.
    groups: HashMap<Box<str>, Vec<Open>>,
    /// How many there are.
    count: usize,
    most: usize,
    /// Which look this is.
    look: u64,
    /// What is read goes here first.
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Open {
    figure: Figure,
    file: File,
    /// In which look it was read last.
    look: u64,
}

/// What a file says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub text: String,
    /// The group it was read of before is gone, and this is another one in its place.
    pub is_another: bool,
}

impl Kept {
    /// Keeps as many as this process may, and leaves half of what it may open to others.
    pub fn new() -> Self {
        let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
        Self::at_most(MOST.min(open_files(&limits).unwrap_or_default() / 2))
    }

    fn at_most(most: usize) -> Self {
        Self { groups: HashMap::new(), count: 0, most, look: 0, buffer: Vec::new() }
    }

    /// What is said of a group, by the file that is kept or else by the one `open` finds.
    pub fn read(&mut self, group: &str, figure: Figure, open: impl FnOnce() -> Option<File>) -> Option<Said> {
        let mut is_another = false;
        let of_group = self.groups.get_mut(group);
        if let Some(of_group) = of_group
            && let Some(at) = of_group.iter().position(|open| open.figure == figure)
        {
            if let Ok(text) = whole(&of_group[at].file, &mut self.buffer) {
                of_group[at].look = self.look;
                return Some(Said { text, is_another });
            }
            of_group.swap_remove(at);
            self.count -= 1;
            is_another = true;
        }
        let file = open()?;
        let text = whole(&file, &mut self.buffer).ok()?;
        if self.count < self.most && !text.is_empty() && is_made_up(&file) {
            let of_group = self.groups.entry(group.into()).or_default();
            of_group.push(Open { figure, file, look: self.look });
            self.count += 1;
        }
        Some(Said { text, is_another })
    }

    /// Closes what was not read in this look; the next one begins.
    pub fn end_look(&mut self) {
        let look = self.look;
        self.groups.retain(|_, of_group| {
            of_group.retain(|open| open.look == look);
            !of_group.is_empty()
        });
        self.count = self.groups.values().map(Vec::len).sum();
        self.look += 1;
    }
}

/// Is a file that says something made up as it is read? Its length is not known before, so it is said to be 0.
fn is_made_up(file: &File) -> bool {
    file.metadata().is_ok_and(|about| about.len() == 0)
}

/// How many files a process may have open, by its `limits` in `/proc`.
fn open_files(limits: &str) -> Option<usize> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_ascii_whitespace().next()? {
        "unlimited" => Some(usize::MAX),
        number => number.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::process::{Child, Command, Stdio};

    /// A process, whose files the kernel makes up; they go with it.
    fn process() -> Child {
        Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("there is cat")
    }

    fn read(kept: &mut Kept, group: &str, path: impl AsRef<Path>) -> Option<String> {
        kept.read(group, Figure::CpuUsage, || File::open(path).ok()).map(|said| said.text)
    }

    /// Of the one that is kept; there is nothing else.
    fn kept_only(kept: &mut Kept, group: &str) -> Option<Said> {
        kept.read(group, Figure::CpuUsage, || None)
    }

    #[test]
    fn what_is_kept_says_what_is_so_now() {
        let mut kept = Kept::at_most(10);
        let mut child = process();
        let file = format!("/proc/{}/oom_score_adj", child.id());
        let before = read(&mut kept, "g", &file).expect("it runs");
        fs::write(&file, "700").expect("our own child");
        assert_ne!(before, "700\n");
        let said = kept_only(&mut kept, "g").expect("it is kept");
        assert_eq!(said, Said { text: "700\n".to_owned(), is_another: false });
        assert_eq!(kept.read("g", Figure::Quota, || None), None, "another figure is another file");

        child.kill().and_then(|()| child.wait()).expect("it ends");
        assert_eq!(kept_only(&mut kept, "g"), None, "what is gone says nothing");
        assert_eq!(kept.count, 0, "and is not kept");
    }

    #[test]
    fn what_comes_in_the_place_of_one_that_is_gone_is_another() {
        let mut kept = Kept::at_most(10);
        let mut child = process();
        read(&mut kept, "g", format!("/proc/{}/comm", child.id())).expect("it runs");
        child.kill().and_then(|()| child.wait()).expect("it ends");
        let said = kept.read("g", Figure::CpuUsage, || File::open("/proc/self/comm").ok());
        assert!(said.expect("it is read").is_another);
        assert!(!kept_only(&mut kept, "g").expect("it is kept").is_another);
    }

    #[test]
    fn what_is_replaced_on_a_disk_is_opened_every_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, new) = (folder.path().join("file"), folder.path().join("new"));
        let mut kept = Kept::at_most(10);
        for text in ["1\n", "2\n", ""] {
            fs::write(&new, text).and_then(|()| fs::rename(&new, &file)).expect("it is written");
            assert_eq!(read(&mut kept, "g", &file).as_deref(), Some(text));
            assert_eq!(kept.count, 0);
        }
    }

    #[test]
    fn no_more_are_kept_than_there_is_room_for_and_none_that_nobody_reads() {
        let mut kept = Kept::at_most(2);
        for group in ["a", "b", "c"] {
            assert!(read(&mut kept, group, "/proc/self/stat").is_some(), "{group} is read");
        }
        assert_eq!((kept.count, kept_only(&mut kept, "c")), (2, None));
        kept.end_look();
        assert!(kept_only(&mut kept, "b").is_some());
        kept.end_look();
        assert_eq!((kept.count, kept_only(&mut kept, "a")), (1, None), "nobody read it in the last look");
        assert!(read(&mut kept, "c", "/proc/self/stat").is_some());
        assert_eq!(kept.count, 2, "now there is room");
    }

    #[test]
    fn half_of_what_may_be_open_is_for_others() {
        let line = |soft: &str| {
            format!("Limit   Soft Limit  Hard Limit  Units\nMax open files   {soft}   524288   files\n")
        };
        for (limits, expected) in [
            (line("1024"), Some(1024)),
            (line("unlimited"), Some(usize::MAX)),
            (line("many"), None),
            (String::new(), None),
        ] {
            assert_eq!(open_files(&limits), expected, "{limits}");
        }
        assert!(Kept::new().most <= MOST);
    }
}
