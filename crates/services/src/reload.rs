//! Which settings are in force? The newest that can be used: those that cannot are told, and the last good ones stay.

use crate::cluster::Event;
use loadline_core::object::{Key, Meta};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::interval;

/// How often a file is read again.
const REREAD: Duration = Duration::from_secs(5);

type Read<T> = dyn Fn(&str) -> Result<T, String> + Send + Sync;

/// Makes settings of a text, or says everything that is wrong with it.
#[derive(Clone)]
pub struct Parse<T>(Arc<Read<T>>);

impl<T, F> From<F> for Parse<T>
where
    F: Fn(&str) -> Result<T, String> + Send + Sync + 'static,
{
    fn from(parse: F) -> Self {
        Self(Arc::new(parse))
    }
}

impl<T> fmt::Debug for Parse<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Parse")
    }
}

/// Where settings are.
#[derive(Clone, Debug)]
pub enum Source<T> {
    /// They are these.
    Fixed(Box<T>),
    /// In a file, read again and again.
    File(PathBuf, Parse<T>),
    /// In an entry of a `ConfigMap`, or in its only one.
    ConfigMap { key: Key, entry: Option<String>, parse: Parse<T> },
}

impl<T> Source<T> {
    /// In a file, read again and again.
    pub fn file(path: impl Into<PathBuf>, parse: impl Into<Parse<T>>) -> Self {
        Self::File(path.into(), parse.into())
    }
}

/// The settings in force.
#[derive(Debug)]
pub(crate) struct Reloaded<T> {
    /// What they are called in the log.
    what: &'static str,
    source: Source<T>,
    current: Arc<T>,
    /// Were there ever some that could be used?
    loaded: bool,
    /// The text that was looked at last, whether it could be used or not.
    seen: Option<String>,
    problem: Option<String>,
    pub failures: u64,
    /// The `ConfigMap`, for Events about it.
    about: Option<Meta>,
    /// Is there a problem, or the end of one, that has not been told?
    untold: bool,
}

impl<T: Clone + PartialEq + Default> Reloaded<T> {
    pub fn new(what: &'static str, source: Source<T>) -> Self {
        let (current, loaded) = match &source {
            Source::Fixed(fixed) => (Arc::new((**fixed).clone()), true),
            Source::File(..) | Source::ConfigMap { .. } => (Arc::new(T::default()), false),
        };
        Self {
            what,
            source,
            current,
            loaded,
            seen: None,
            problem: None,
            failures: 0,
            about: None,
            untold: false,
        }
    }

    /// In force.
    pub fn current(&self) -> &Arc<T> {
        &self.current
    }

    pub fn is_loaded(&self) -> bool {
        self.loaded
    }

    /// What is wrong with the newest text.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// What to tell about the object they are in, once: what is wrong with it, or that it is in force.
    pub fn news(&mut self) -> Option<(Meta, Result<(), String>)> {
        let about = self.about.clone().filter(|_| std::mem::take(&mut self.untold))?;
        Some((about, self.problem.clone().map_or(Ok(()), Err)))
    }

    /// The text as it is now, or why there is none; says whether others are in force.
    pub fn take_text(&mut self, read: Result<String, String>) -> bool {
        let (Source::File(_, parse) | Source::ConfigMap { parse, .. }) = &self.source else { return false };
        let text = match read {
            Ok(text) => text,
            Err(problem) => {
                self.fail(problem);
                return false;
            }
        };
        if self.seen.as_ref() == Some(&text) {
            return false;
        }
        let parsed = (parse.0)(&text);
        self.seen = Some(text);
        match parsed {
            Ok(parsed) => {
                let other = !self.loaded || *self.current != parsed;
                self.untold |= self.problem.is_some() || other;
                (self.current, self.loaded, self.problem) = (Arc::new(parsed), true, None);
                tracing::info!(what = self.what, other, "settings loaded");
                other
            }
            Err(problem) => {
                self.fail(problem);
                false
            }
        }
    }

    /// The same for a `ConfigMap`.
    pub fn take_map(&mut self, event: Event<BTreeMap<String, String>>) -> bool {
        let Source::ConfigMap { key, entry, .. } = &self.source else { return false };
        let read = match event {
            Event::Applied(meta, Ok(texts)) => {
                self.about = Some(meta);
                chosen(&texts, entry.as_deref()).map_err(|problem| format!("ConfigMap {key}: {problem}"))
            }
            Event::Applied(_, Err(error)) => Err(format!("ConfigMap {key}: {error}")),
            Event::Deleted(_) => Err(format!("ConfigMap {key} is gone")),
            Event::Listed(_) if self.about.is_none() => Err(format!("there is no ConfigMap {key}")),
            Event::Failed(problem) | Event::Forbidden(problem) if !self.loaded => Err(problem),
            _ => return false,
        };
        self.take_text(read)
    }

    fn fail(&mut self, problem: String) {
        if self.problem.as_ref() != Some(&problem) {
            let loaded = self.loaded;
            tracing::warn!(
                what = self.what,
                problem,
                loaded,
                "settings cannot be used; the last good ones stay"
            );
            self.failures += 1;
            self.untold = true;
        }
        self.problem = Some(problem);
    }
}

/// Reads a file again and again. Mounted files change by their folder being exchanged: only the content tells.
pub(crate) async fn reread<M>(path: PathBuf, events: mpsc::Sender<M>, wrap: fn(Result<String, String>) -> M) {
    let mut ticks = interval(REREAD);
    loop {
        tokio::select! {
            () = events.closed() => return,
            _ = ticks.tick() => {}
        }
        let read = tokio::fs::read_to_string(&path).await;
        let read = read.map_err(|error| format!("{}: {error}", path.display()));
        if events.send(wrap(read)).await.is_err() {
            return;
        }
    }
}

fn chosen(texts: &BTreeMap<String, String>, entry: Option<&str>) -> Result<String, String> {
    let names = || texts.keys().cloned().collect::<Vec<_>>().join(", ");
    match (entry, texts.len()) {
        (Some(entry), _) => {
            texts.get(entry).cloned().ok_or_else(|| format!("no entry {entry}, there are: {}", names()))
        }
        (None, 1) => Ok(texts.values().next().cloned().unwrap_or_default()),
        (None, 0) => Err("it is empty".to_owned()),
        (None, _) => Err(format!("name one of its entries: {}", names())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_core::load::policy::{Policy, Rules};
    use loadline_core::load::settings::Settings;

    /// `limit 0.5` is a policy with nothing but crane's metrics and that limit on the first.
    fn parse(text: &str) -> Result<Rules, String> {
        let limit = text.strip_prefix("limit ").and_then(|l| l.parse().ok()).ok_or("no policy")?;
        let mut policy = Policy::default();
        policy.predicates[0].limit = limit;
        Rules::new(policy, Settings::default()).map(|(rules, _)| rules).map_err(|_| "refused".to_owned())
    }

    fn limit(policies: &Reloaded<Rules>) -> f64 {
        policies.current().policy().predicates[0].limit
    }

    #[test]
    fn the_last_good_policy_stays_while_a_new_one_cannot_be_used() {
        let mut policies = Reloaded::new("policy", Source::file("p", parse));
        assert!(!policies.is_loaded());
        for (read, other, now, problem, failures, why) in [
            (Err("not there"), false, 0.65, Some("not there"), 1, "nothing yet"),
            (Ok("limit 0.5"), true, 0.5, None, 1, "the first"),
            (Ok("limit 0.5"), false, 0.5, None, 1, "the same"),
            (Ok("rubbish"), false, 0.5, Some("no policy"), 2, "one that does not read"),
            (Ok("rubbish"), false, 0.5, Some("no policy"), 2, "is told once"),
            (Ok("limit 65"), false, 0.5, Some("refused"), 3, "one that is refused"),
            (Err("not there"), false, 0.5, Some("not there"), 4, "none"),
            (Ok("limit 0.7"), true, 0.7, None, 4, "a good one"),
        ] {
            assert_eq!(policies.take_text(read.map(str::to_owned).map_err(str::to_owned)), other, "{why}");
            assert_eq!(
                (limit(&policies), policies.problem(), policies.failures),
                (now, problem, failures),
                "{why}"
            );
        }
    }

    #[test]
    fn the_entry_of_a_config_map_is_the_one_named_or_the_only_one() {
        let map = |texts: &[(&str, &str)]| {
            texts.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<BTreeMap<_, _>>()
        };
        for (texts, entry, want) in [
            (map(&[("a", "1")]), None, Ok("1")),
            (map(&[("a", "1"), ("b", "2")]), Some("b"), Ok("2")),
            (map(&[("a", "1"), ("b", "2")]), None, Err("name one of its entries: a, b")),
            (map(&[("a", "1")]), Some("c"), Err("no entry c, there are: a")),
            (map(&[]), None, Err("it is empty")),
        ] {
            assert_eq!(chosen(&texts, entry), want.map(str::to_owned).map_err(str::to_owned));
        }
    }
}
