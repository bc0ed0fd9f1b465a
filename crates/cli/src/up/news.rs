//! What does somebody watching `up` see? A line for what is worth knowing, never a flood.

use std::time::{Duration, Instant};

use loadline_apiserver::ApiServer;
use loadline_sim::{Notice, World};

use super::signal;
use crate::out::{bold, dim, line};

/// News are printed this often.
const PAGE: Duration = Duration::from_millis(500);
/// And at most this many lines each time; the rest is counted.
const LINES: usize = 5;

/// Prints news until the time is over or somebody ends it; says which.
pub async fn follow(world: &mut World, time: Option<Duration>, started: Instant) -> String {
    let over = async {
        match time {
            Some(time) => {
                tokio::time::sleep(time).await;
                format!("{time:?} are over")
            }
            None => std::future::pending().await,
        }
    };
    tokio::pin!(over);
    let ended = signal::ended();
    tokio::pin!(ended);
    let mut notices = world.notices();
    let mut pages = tokio::time::interval(PAGE);
    let mut page = Page::default();
    let mut pods = (0, 0);
    loop {
        let next = async {
            match &mut notices {
                Some(notices) => notices.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            why = &mut over => return why,
            why = &mut ended => return why.to_owned(),
            notice = next => match notice {
                Some(notice) => page.add(&notice),
                None => notices = None,
            },
            _ = pages.tick() => {
                let now = (world.counts().bound.get(), world.running());
                if now != pods {
                    pods = now;
                    page.last = Some(format!("pods: {} bound so far, {} running now", now.0, now.1));
                }
                for text in page.turn() {
                    line(&format!("{} {text}", dim(&format!("{:>6.1}s", started.elapsed().as_secs_f64()))));
                }
            }
        }
    }
}

/// What is printed next.
#[derive(Default)]
struct Page {
    lines: Vec<String>,
    more: usize,
    last: Option<String>,
}

impl Page {
    fn add(&mut self, notice: &Notice) {
        if self.lines.len() < LINES {
            self.lines.push(notice.to_string());
        } else {
            self.more += 1;
        }
    }

    fn turn(&mut self) -> Vec<String> {
        let mut lines = std::mem::take(&mut self.lines);
        if self.more > 0 {
            lines.push(format!("… and {} more", std::mem::take(&mut self.more)));
        }
        lines.extend(self.last.take());
        lines
    }
}

/// What happened, in a few lines.
pub fn summary(world: &World, server: &ApiServer, started: Instant) -> String {
    let counts = world.counts();
    let cluster = world.cluster();
    let nodes = cluster.nodes.count(|_| true);
    let ready = cluster.nodes.count(|node| node.ready);
    let pods = cluster.pods.count(|_| true);
    let rows = [
        ("time", format!("{:.1}s", started.elapsed().as_secs_f64())),
        ("nodes", format!("{nodes}, {ready} ready")),
        ("pods", format!("{pods}, {} running", world.running())),
        ("bound", counts.bound.get().to_string()),
        ("load", load(world)),
        ("started", counts.started.get().to_string()),
        ("ended", format!("{} by themselves, {} deleted", counts.succeeded.get(), counts.stopped.get())),
        ("waited", format!("{} that fitted nowhere at first", counts.unschedulable.get())),
        ("writes", format!("{} to the API server", server.store().revision())),
    ];
    let rows = rows.map(|(name, value)| format!("  {name:<8}  {value}"));
    format!("{}\n{}", bold("Summary"), rows.join("\n"))
}

/// How hot it got.
fn load(world: &World) -> String {
    let tally = world.tally();
    let peak = tally.peak.map_or_else(String::new, |peak| {
        format!(", at most {:.0}% {} on {}", peak.share.to_f64() * 100.0, peak.resource, peak.node)
    });
    format!("{} node-seconds over target{peak}", tally.node_seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_not_printed() {
        let mut page = Page::default();
        for i in 0..12 {
            page.add(&Notice { from: "pod", about: i.to_string(), what: "waits".into() });
        }
        let lines = page.turn();
        assert_eq!(lines.len(), LINES + 1);
        assert_eq!(lines[LINES], "… and 7 more");
        assert!(page.turn().is_empty(), "nothing is printed twice");
    }
}
