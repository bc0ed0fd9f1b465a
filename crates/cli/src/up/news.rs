//! What does somebody watching `up` see? A line for what is worth knowing, never a flood.

use super::estimator::Estimator;
use super::site::Site;
use crate::out::{bold, dim, line};
use loadline_apiserver::ApiServer;
use loadline_services::ctx::Notice;
use loadline_sim::World;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// News are printed this often.
const PAGE: Duration = Duration::from_millis(500);
/// And at most this many lines each time; the rest is counted.
const LINES: usize = 5;
/// News that may wait for the next page; who has more waits.
const WAITING: usize = 256;

/// Prints news until the time is over or somebody ends it; says which.
pub async fn follow(
    (sites, hub): (&mut [Site], Option<mpsc::Receiver<Notice>>),
    estimator: Option<&Estimator>,
    time: Option<Duration>,
    started: Instant,
    ended: impl Future<Output = &'static str>,
) -> String {
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
    tokio::pin!(ended);
    let mut notices = gather(sites, hub);
    let mut pages = tokio::time::interval(PAGE);
    let mut page = Page::default();
    let mut pods = (0, 0);
    let mut room = String::new();
    loop {
        tokio::select! {
            why = &mut over => return why,
            why = &mut ended => return why.to_owned(),
            Some(notice) = notices.recv() => page.add(notice),
            _ = pages.tick() => {
                let bound = sites.iter().map(|site| site.world.counts().scheduler.bound.get()).sum::<u64>();
                let now = (bound, sites.iter().map(|site| site.world.running()).sum::<usize>());
                if now != pods {
                    pods = now;
                    page.last.push(format!("pods: {} bound so far, {} running now", now.0, now.1));
                }
                if let Some(now) = estimator.and_then(Estimator::room).filter(|now| *now != room) {
                    page.last.push(now.clone());
                    room = now;
                }
                for text in page.turn() {
                    line(&format!("{} {text}", dim(&format!("{:>6.1}s", started.elapsed().as_secs_f64()))));
                }
            }
        }
    }
}

/// What is worth knowing of all clusters, with the name of the cluster where there are several.
fn gather(sites: &mut [Site], hub: Option<mpsc::Receiver<Notice>>) -> mpsc::Receiver<String> {
    let (sender, all) = mpsc::channel(WAITING);
    let several = sites.len() > 1;
    let name = |site: &Site| if several { format!("{} ", site.name) } else { String::new() };
    let sites = sites.iter_mut().filter_map(|site| Some((name(site), site.world.notices()?)));
    for (name, mut notices) in sites.chain(hub.map(|notices| (format!("{} ", super::hub::NAME), notices))) {
        let sender = sender.clone();
        tokio::spawn(async move {
            while let Some(notice) = notices.recv().await {
                if sender.send(format!("{name}{notice}")).await.is_err() {
                    return;
                }
            }
        });
    }
    all
}

/// What is printed next.
#[derive(Default)]
struct Page {
    lines: Vec<String>,
    more: usize,
    /// Figures, which are always printed.
    last: Vec<String>,
}

impl Page {
    fn add(&mut self, notice: String) {
        if self.lines.len() < LINES {
            self.lines.push(notice);
        } else {
            self.more += 1;
        }
    }

    fn turn(&mut self) -> Vec<String> {
        let mut lines = std::mem::take(&mut self.lines);
        if self.more > 0 {
            lines.push(format!("… and {} more", std::mem::take(&mut self.more)));
        }
        lines.append(&mut self.last);
        lines
    }
}

/// What happened, in a few lines.
pub fn summary(title: &str, world: &World, server: &ApiServer, started: Instant) -> String {
    let counts = world.counts();
    let cluster = world.cluster();
    let nodes = cluster.nodes.count(|_| true);
    let ready = cluster.nodes.count(|node| node.ready);
    let pods = cluster.pods.count(|_| true);
    let relief = [
        ("throttled", &counts.agent.throttled),
        ("evicted", &counts.agent.evicted),
        ("given back", &counts.agent.restored),
    ];
    let relief = relief.map(|(what, count)| format!("{} {what}", count.get())).join(", ");
    let mut rows = vec![
        ("time", format!("{:.1}s", started.elapsed().as_secs_f64())),
        ("nodes", format!("{nodes}, {ready} ready")),
        ("pods", format!("{pods}, {} running", world.running())),
        ("bound", counts.scheduler.bound.get().to_string()),
        ("load", load(world)),
        ("started", counts.started.get().to_string()),
        ("ended", format!("{} by themselves, {} deleted", counts.succeeded.get(), counts.stopped.get())),
        ("waited", format!("{} that fitted nowhere at first", counts.scheduler.unschedulable.get())),
        ("writes", format!("{} to the API server", server.revision())),
    ];
    if counts.agent.throttled.get() + counts.agent.evicted.get() > 0 {
        rows.push(("relief", relief));
    }
    let rows: Vec<String> = rows.iter().map(|(name, value)| format!("  {name:<8}  {value}")).collect();
    format!("{}\n{}", bold(title), rows.join("\n"))
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
            page.add(format!("pod {i} waits"));
        }
        let lines = page.turn();
        assert_eq!(lines.len(), LINES + 1);
        assert_eq!(lines[LINES], "… and 7 more");
        assert!(page.turn().is_empty(), "nothing is printed twice");
    }
}
