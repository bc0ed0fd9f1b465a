//! What does somebody watching `up` see? A line for what is worth knowing, never a flood.

use super::estimator::Estimator;
use super::site::Site;
use super::stock::StockScheduler;
use super::twin::Twin;
use crate::out::{bold, dim, line};
use anyhow::{Result, anyhow};
use loadline_apiserver::ApiServer;
use loadline_services::ctx::Notice;
use loadline_services::scheduler::heat::Peak;
use loadline_sim::World;
use loadline_sim::observe::Placed;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// News are printed this often.
const PAGE: Duration = Duration::from_millis(500);
/// And at most this many lines each time; the rest is counted.
const LINES: usize = 5;
/// While a story is told, figures are printed this often, whatever happens.
const BEAT: Duration = Duration::from_secs(5);
/// News that may wait for the next page; who has more waits.
const WAITING: usize = 256;

/// What runs beside the clusters.
pub struct Beside<'a> {
    pub estimator: Option<&'a Estimator>,
    pub twin: Option<&'a mut Twin>,
    pub stock: Option<&'a mut StockScheduler>,
}

/// Prints news until the time is over or somebody ends it; says which.
///
/// # Errors
/// When a program that was to run until the end has ended.
pub async fn follow(
    (sites, hub): (&mut [Site], Option<mpsc::Receiver<Notice>>),
    Beside { estimator, mut twin, stock }: Beside<'_>,
    time: Option<Duration>,
    started: Instant,
    ended: impl Future<Output = &'static str>,
) -> Result<String> {
    let over = async {
        match time {
            Some(time) => {
                tokio::time::sleep(time).await;
                format!("{time:?} are over")
            }
            None => std::future::pending().await,
        }
    };
    let gone = async {
        match stock {
            Some(stock) => stock.ended().await,
            None => std::future::pending().await,
        }
    };
    let story = twin.as_ref().map(|twin| twin.story);
    let told = async {
        match story {
            Some(story) => tokio::time::sleep(story).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(over, ended, gone, told);
    let mut is_told = false;
    let mut beats = tokio::time::interval_at(tokio::time::Instant::now() + BEAT, BEAT);
    let mut notices = gather(sites, hub);
    let mut pages = tokio::time::interval(PAGE);
    let mut page = Page::default();
    let mut pods = (0, 0);
    let mut room = String::new();
    loop {
        tokio::select! {
            why = &mut over => return Ok(why),
            why = &mut ended => return Ok(why.to_owned()),
            why = &mut gone => return Err(anyhow!(why)),
            () = &mut told, if !is_told => {
                is_told = true;
                if let (Some(twin), Some(site)) = (twin.as_deref_mut(), sites.first()) {
                    page.last.push(format!("story over: {}", twin.told(&site.world).await));
                    page.last.push("story over: the cluster stays as it is; try the commands above".to_owned());
                }
            }
            Some(notice) = notices.recv() => page.add(notice),
            _ = beats.tick(), if story.is_some() && !is_told => {
                page.last.extend(sites.first().and_then(|site| measured(&site.world)));
            }
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

/// How hot it is, in a line.
fn measured(world: &World) -> Option<String> {
    let tally = world.tally();
    let Peak { node, resource, share } = tally.hottest?;
    let percent = share.to_f64() * 100.0;
    Some(format!(
        "measured: {} nodes over target; the hottest is {node}, {percent:.0}% {resource}",
        tally.hot
    ))
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
    let placed = world.tally().placed;
    if placed.len() > 1 {
        let one = |(name, placed): (&String, &Placed)| {
            format!("{} by {name}, {} of them on hot nodes", placed.pods, placed.onto_hot)
        };
        rows.push(("placed", placed.iter().map(one).collect::<Vec<_>>().join("; ")));
    }
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
