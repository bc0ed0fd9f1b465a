//! An agent that only looks changes nothing: not at its end, and not for who comes after it.

use super::*;
use std::path::Path;

/// How the agent is kept from acting.
#[derive(Clone, Copy, Debug)]
enum Preview {
    /// It is started so.
    Flag,
    /// The node says so.
    Annotation,
}

impl Stage {
    async fn annotate(&mut self, preview: Option<&str>) {
        let patch = json!({"metadata": {"annotations": {loadline_api::qos::PREVIEW: preview}}});
        let key = Key::new("", NODE);
        self.writer.patch(NODES.whole(), &key, Patch::Merge, &patch).await.expect("the node is there");
        let is_known =
            |state: &State| state.node(&key).is_some_and(|(_, node)| node.view.preview == preview.is_some());
        self.until("the annotation is known", is_known).await;
    }

    /// The very same as a service, until it has looked some times.
    async fn runs_and_ends(&mut self, folder: &Path, is_dry: bool) {
        let (client, host) = (self.client.clone(), self.host.clone());
        let mut options = Options::new(Access::Client(client), Nodes::One(NODE.to_owned()), host);
        options.every = Duration::from_millis(20);
        options.journal = Some(folder.to_owned());
        options.restore_on_exit = true;
        options.planning.dry_run = is_dry;
        let metrics = options.metrics.clone();
        let stop = CancellationToken::new();
        let running = tokio::spawn(run(Ctx::new("test", stop.clone()), options));
        let looks = async {
            while metrics.cycles.get() < 3 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, looks).await.expect("it looks");
        stop.cancel();
        running.await.expect("it ends").expect("it could start");
    }
}

#[tokio::test]
async fn an_agent_that_only_looks_leaves_a_damaged_journal_to_who_acts() {
    for how in [Preview::Flag, Preview::Annotation] {
        let mut stage = Stage::new().await;
        let folder = tempfile::tempdir().expect("a folder");
        let journal = folder.path().join("journal.json");
        std::fs::write(&journal, "{").expect("written");
        stage.run("a", 10, true).await;
        let uid = stage.uid("a");
        stage.host.lock().get_mut(&uid).expect("it runs").quota = CpuQuota::Us(30_000);
        if matches!(how, Preview::Annotation) {
            stage.annotate(Some("true")).await;
        }
        stage.restart_from(folder.path()).await;
        stage.agent.planning.dry_run = matches!(how, Preview::Flag);
        for _ in 0..5 {
            stage.cycle().await;
        }
        assert_eq!(stage.quotas().await["a"], Some(3), "{how:?}: nothing is changed");
        if matches!(how, Preview::Flag) {
            assert_eq!(std::fs::read(&journal).expect("it is there"), b"{", "not even the journal");
        }
        stage.annotate(None).await;
        stage.restart_from(folder.path()).await;
        stage.cycle().await;
        assert_eq!(stage.quotas().await["a"], Some(10), "{how:?}: its limit");
        for _ in 0..3 {
            stage.cycle().await;
        }
        stage.restart_from(folder.path()).await;
        assert_eq!(
            stage.agent.adopting, 0,
            "{how:?}: others lower quotas, too: it was looked for long enough"
        );
    }
}

#[tokio::test]
async fn an_agent_that_only_looks_gives_nothing_back_at_its_end() {
    for how in [Preview::Flag, Preview::Annotation] {
        let mut stage = Stage::new().await;
        let folder = tempfile::tempdir().expect("a folder");
        stage.restart_from(folder.path()).await;
        stage.ask_for(rules()).await;
        stage.run("shop", 72, false).await;
        stage.run("a", 10, true).await;
        for _ in 0..3 {
            stage.cycle().await;
        }
        let left = (stage.quotas().await, stage.says().await);
        assert_eq!((left.0["a"], left.1.0), (Some(5), true), "{how:?}: it acted");
        if matches!(how, Preview::Annotation) {
            stage.annotate(Some("true")).await;
        }
        // The lock goes with its journal.
        stage.agent.journal = None;
        stage.runs_and_ends(folder.path(), matches!(how, Preview::Flag)).await;
        assert_eq!((stage.quotas().await, stage.says().await), left, "{how:?}");
        if matches!(how, Preview::Annotation) {
            stage.annotate(None).await;
        }
        stage.runs_and_ends(folder.path(), false).await;
        assert_eq!(
            (stage.quotas().await["a"], stage.says().await.0),
            (Some(10), false),
            "{how:?}: who acts does"
        );
    }
}
