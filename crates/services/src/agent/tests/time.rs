//! A clock that is set, and looks that take too long.

use super::*;
use tokio::time::Instant;

const DAY: SignedDuration = SignedDuration::from_hours(24);

impl Stage {
    /// The clock is set by so much.
    fn set_clock(&mut self, by: SignedDuration) {
        self.now += by;
        self.state.clock_set(by);
    }
}

#[tokio::test]
async fn a_clock_that_is_set_keeps_no_node_closed_and_sends_nobody_away() {
    for by in [DAY, -DAY] {
        let mut stage = Stage::new().await;
        stage.ask_for(only_evict()).await;
        stage.run("shop", 29, false).await;
        for (name, percent) in [("a", 12), ("b", 11), ("c", 10)] {
            stage.run(name, percent, true).await;
        }
        for _ in 0..4 {
            assert!(stage.cycle().await.is_empty());
        }
        stage.wants("shop", 59);
        stage.cycle().await;
        assert_eq!(stage.asked(), [("default/a".to_owned(), Reply::Granted)]);
        stage.set_clock(by);
        // It is on its way out as before; its kubelet takes its time.
        for _ in 0..3 {
            stage.cycle().await;
        }
        assert_eq!(stage.asked().len(), 1, "{by}: nobody else goes");
        stage.quotas().await;
        stage.wants("shop", 20);
        let mut cycles = 0;
        while stage.says().await.0 {
            stage.cycle().await;
            cycles += 1;
            assert!(cycles < 20, "{by}: the taint stays, though 10 s of cool-down are over");
        }
        assert!(cycles > 2, "{by}: and not less than that");
    }
}

#[tokio::test]
async fn a_journal_of_the_future_is_as_of_now() {
    let mut stage = Stage::new().await;
    stage.ask_for(only_evict()).await;
    stage.run("shop", 95, false).await;
    while !stage.says().await.0 {
        stage.cycle().await;
    }
    let left = stage.state.memory_mut(&NODE.into()).state.clone();
    stage.restart().await;
    stage.now -= DAY;
    stage.state.remember(NODE, left, stage.now);
    stage.wants("shop", 20);
    for _ in 0..20 {
        stage.cycle().await;
    }
    assert!(!stage.says().await.0, "a day later by the old clock would be too long");
}

/// Measures for five seconds, and notes when it began.
#[derive(Debug, Default)]
struct SlowHost(Mutex<Vec<Instant>>);

#[tonic::async_trait]
impl Host for SlowHost {
    async fn measure(&self, _: &Ask<'_>) -> Usage {
        self.0.lock().expect("nobody panicked").push(Instant::now());
        tokio::time::sleep(Duration::from_secs(5)).await;
        Usage::default()
    }

    async fn set_quota(&self, _: &Located<'_>, _: CpuQuota) -> Result<(), HostError> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn looks_that_are_due_while_one_is_under_way_are_left_out() {
    let mut stage = Stage::new().await;
    stage.ask_for(rules()).await;
    let host = Arc::<SlowHost>::default();
    let mut options =
        Options::new(Access::Client(stage.client.clone()), Nodes::One(NODE.to_owned()), host.clone());
    options.every = Duration::from_secs(2);
    let metrics = options.metrics.clone();
    let stop = CancellationToken::new();
    let running = tokio::spawn(run(Ctx::new("test", stop.clone()), options));
    while metrics.cycles.get() < 4 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    stop.cancel();
    running.await.expect("it ends").expect("it could start");
    let began = host.0.lock().expect("nobody panicked").clone();
    let between: BTreeSet<u64> = began.windows(2).map(|two| (two[1] - two[0]).as_secs()).collect();
    assert_eq!(between, BTreeSet::from([6]), "of looks after 2, 4 and 6 s, the one after it has ended");
    assert_eq!(metrics.skipped.get(), 2 * metrics.cycles.get(), "two each time");
}
