//! Rules below the targets of the scheduler.

use super::*;
use loadline_core::load::Both;
use loadline_core::load::policy::{Policy as LoadPolicy, Rules};
use loadline_core::load::ratio::Ratio;
use loadline_core::load::settings::Settings;

/// What fills nodes to that share of their CPU.
fn targets(text: &str) -> Result<Rules, String> {
    let share: f64 = text.parse().map_err(|_| format!("expected a share, found {text:?}"))?;
    let settings =
        Settings { targets: Both { cpu: Ratio::from_f64(share), memory: None }, ..Settings::default() };
    Rules::new(LoadPolicy::default(), settings).map(|(rules, _)| rules).map_err(|_| "refused".to_owned())
}

#[tokio::test]
async fn a_rule_below_the_schedulers_target_is_told_once() {
    let mut stage = Stage::new().await;
    let targets = targets("0.8").expect("well-formed");
    stage.agent.agreement = Agreement::new(Some(Source::Fixed(Box::new(targets))));
    assert!(stage.cycle().await.is_empty(), "there are no rules");
    stage.ask_for(rules()).await;
    // Lines at 70 % and 85 %, a target of 0.8, 10 CPUs that are all for pods.
    let told = stage.cycle().await;
    let text = "pods come until 8 of cpu are used (target 0.8), but rule overload/busy acts above 7 (70%): 1 too many";
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains(text), "{told:?}");
    assert_eq!(stage.agent.metrics.lines_disagree.get(), 1);
    assert!(stage.cycle().await.is_empty(), "told once");
    stage.told(&[("Node", "LinesDisagree")]).await;

    stage.agent.agreement = Agreement::new(None);
    assert!(stage.cycle().await.is_empty(), "nobody says what the scheduler goes by");
    assert_eq!(stage.agent.metrics.lines_disagree.get(), 0);
}

#[tokio::test]
async fn the_file_of_the_schedulers_targets_is_read_again_when_it_changes() {
    let mut stage = Stage::new().await;
    stage.ask_for(rules()).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("policy.yaml");
    std::fs::write(&file, "0.8").expect("written");
    let (client, host) = (stage.client.clone(), stage.host.clone());
    let mut options = Options::new(Access::Client(client), Nodes::One(NODE.to_owned()), host);
    options.every = Duration::from_millis(20);
    options.planning.dry_run = true;
    options.targets = Some(Source::file(&file, targets));
    let (metrics, status) = (options.metrics.clone(), options.status.clone());
    let stop = CancellationToken::new();
    let running = tokio::spawn(run(Ctx::new("test", stop.clone()), options));
    let until = async |what: &str, is_so: &dyn Fn() -> bool| {
        let waits = async {
            while !is_so() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waits).await.expect(what);
    };
    until("a rule is below the target", &|| metrics.lines_disagree.get() == 1).await;
    std::fs::write(&file, "many").expect("written");
    let told = || status.readiness().progress.contains("policy: expected a share, found \"many\"");
    until("the problem is told", &told).await;
    assert!(status.readiness().ready, "nothing is decided by it");
    assert_eq!(metrics.lines_disagree.get(), 1, "the last good one stays");
    std::fs::write(&file, "0.5").expect("written");
    until("no rule is below the target", &|| metrics.lines_disagree.get() == 0).await;
    assert!(!told(), "{:?}", status.readiness());
    stop.cancel();
    running.await.expect("it ends").expect("it could start");
}
